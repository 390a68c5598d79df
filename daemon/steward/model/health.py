"""Findings of checks on a node, and the words for how bad they are; and the trial of a check that may change (a site's
own), which reports only until it has shown on some nodes that it is sane."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Annotated

from steward.model.bounds import Lenient, MaxLen, Printable
from steward.model.ids import BootId, InstanceId, NodeName


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


class Severity(Enum):
    """FATAL acts now; DEGRADED drains and waits for the job's end; SUSPECT asks for a deep check when the node is idle
    next; INFO is only told."""

    INFO = "info"
    SUSPECT = "suspect"
    DEGRADED = "degraded"
    FATAL = "fatal"

    @property
    def rank(self) -> int:
        """The higher the worse."""
        return _RANK[self]

    @property
    def takes_out(self) -> bool:
        """Whether a finding of it, by itself, takes its node out of service."""
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
    """Whose fault it may be. CLUSTER: a shared thing (file system, fabric manager, name service) that many nodes see
    fail at once; such a finding never touches a node."""

    NODE = "node"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """Which machine, and which boot of it, stands behind a node. A verdict dies with it."""

    instance: InstanceId
    boot: BootId


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The judgement of one check. `text` is hostile: bounded, printable, never evaluated. `at` is Unix seconds.

    `event` findings (a kernel-log line) act at once; state findings need `health.bad_of_last` samples. `hardware` names
    the piece that it is about (a GPU's UUID, a device), where one is known.
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

    @property
    def is_bad(self) -> bool:
        return self.outcome is Outcome.FAILED

    @property
    def is_quiet(self) -> bool:
        """Nothing to tell but that the check passed, or had nothing to look at."""
        return not self.event and self.outcome in (Outcome.PASSED, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An agent's report on its node. Quiet results are only named, so that ten thousand agents fit in the head.

    `hardware` are the identities of pieces that outlive an instance id (GPU UUIDs, the board's serial), `versions` the
    content digests of checks that may change (the site's own). `checked` answers a `check now`.
    """

    findings: tuple[Finding, ...] = ()
    passed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    hardware: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    checked: str | None = None


# The trial of a check that may change.


class TrialState(Enum):
    RUNNING = "on trial"
    """Report only."""
    ARMED = "armed"
    """The check's failures count as the settings say."""
    REFUSED = "refused"
    """The check failed on too many nodes, or a person disarmed it: it only reports until a person arms it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One version (content digest) of one check. Times are Unix seconds.

    `enough` is when results of enough nodes were there for the first time, `usual` the share of nodes on which its
    earlier version failed (None: it has none). `tried` and `failed` are the nodes that had results, and bad ones,
    while it was on trial; `text` tells people how it stands, with the arithmetic.
    """

    check: str
    version: str
    since: float
    state: TrialState = TrialState.RUNNING
    enough: float | None = None
    usual: float | None = None
    tried: frozenset[NodeName] = frozenset()
    failed: frozenset[NodeName] = frozenset()
    share: float | None = None
    """The share of its nodes that failed (0 to 1) when its trial was decided."""
    text: str = ""
