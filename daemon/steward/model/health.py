"""Findings of checks on a node, and the trial of a check that may change (a site's own).

A check on trial only reports, until its results on some nodes show that it is sane.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Annotated

from steward.model.bounds import Lenient, MaxLen, Printable, Sparse
from steward.model.ids import BootId, InstanceId, NodeName, UnixTime


class Outcome(Enum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


class Severity(Enum):
    """The severity of a finding, by its consequence.

    FATAL acts now; DEGRADED drains and waits for the job's end; SUSPECT requests a deep check once the node is idle;
    INFO only reports.
    """

    INFO = "info"
    SUSPECT = "suspect"
    DEGRADED = "degraded"
    FATAL = "fatal"

    @property
    def rank(self) -> int:
        """Return a number that is higher for a worse severity."""
        return _RANK[self]

    @property
    def takes_out(self) -> bool:
        """Return whether a finding of this severity alone takes its node out of service."""
        return self in (Severity.DEGRADED, Severity.FATAL)


_RANK = {severity: rank for rank, severity in enumerate(Severity)}


class Advice(Enum):
    """The first rung of the repair ladder that the finding asks for."""

    NONE = "none"
    RESTART_SERVICE = "restart_service"
    RESET_GPU = "reset_gpu"
    REBOOT = "reboot"
    REPLACE = "replace"


class Scope(Enum):
    """The scope of a fault.

    CLUSTER: a shared thing (file system, fabric manager, name service) that many nodes see fail at once; such a finding
    never touches a node.
    """

    NODE = "node"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """The machine behind a node, and its boot; a verdict holds for one incarnation only."""

    instance: InstanceId
    boot: BootId


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check. `text` is hostile: bounded, printable, never evaluated. `at` is Unix seconds.

    `event` findings (a kernel-log line) act at once; state findings need `health.bad_of_last` samples. `hardware` names
    the affected piece (a GPU's UUID, a device), if known.

    For people: `at` is since when the outcome holds, `passed_at` when the check last passed (0: not since its agent
    began), `good_since` since when the looks of a failed check pass again, not long enough yet (0: the last look
    failed).
    """

    check: Annotated[str, MaxLen(40)]
    outcome: Outcome
    severity: Severity = Severity.INFO
    advice: Advice = Advice.NONE
    text: Annotated[str, Printable(400)] = ""
    at: float = 0.0
    event: Annotated[bool, Lenient()] = False
    scope: Scope = Scope.NODE
    hardware: Annotated[str, Printable(64)] = ""
    passed_at: Annotated[float, Sparse()] = 0.0
    good_since: Annotated[float, Sparse()] = 0.0

    @property
    def is_bad(self) -> bool:
        """Return whether the check failed."""
        return self.outcome is Outcome.FAILED

    @property
    def is_quiet(self) -> bool:
        """Return whether the check only passed, or does not apply here."""
        return not self.event and self.outcome in (Outcome.PASSED, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An agent's report on its node; quiet results are only named, so that ten thousand agents fit in memory.

    `passed_since` has, for each check of `passed` by name, the Unix second since which it passes; empty if not told.
    `hardware` holds the identities of pieces that outlive an instance id (GPU UUIDs, the board's serial), `versions`
    the content digests of checks that may change (the site's own). `checked` is the `check now` that it answers.
    """

    findings: tuple[Finding, ...] = ()
    passed: frozenset[str] = frozenset()
    passed_since: tuple[int, ...] = ()
    skipped: frozenset[str] = frozenset()
    hardware: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    checked: str | None = None


# The trial of a check that may change.


class TrialState(Enum):
    """The state of a check's trial."""

    RUNNING = "on trial"
    """The check only reports."""
    ARMED = "armed"
    """The check's failures count as the settings say."""
    REFUSED = "refused"
    """The check failed on too many nodes, or a person disarmed it: it only reports until a person arms it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The trial of one version (content digest) of one check. Times are Unix seconds.

    `enough_at` is when enough nodes first had results, `previous_share` the share of nodes on which its previous
    version failed (None: there was none). `nodes_tried` and `nodes_failed` are the nodes with results, and with bad
    results, during the trial; `text` is its standing for people, with the arithmetic.
    """

    check: str
    version: str
    since: UnixTime
    state: TrialState = TrialState.RUNNING
    enough_at: UnixTime | None = None
    previous_share: float | None = None
    nodes_tried: frozenset[NodeName] = frozenset()
    nodes_failed: frozenset[NodeName] = frozenset()
    share: float | None = None
    """The share of nodes on which it failed (0 to 1) when its trial was decided."""
    text: str = ""
