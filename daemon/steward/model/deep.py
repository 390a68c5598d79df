"""Deep checks of idle nodes: their runs, the command line of their runner, its measures, and the results per node."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Annotated

from steward.model.bounds import Called, Form, Given, MaxLen, NanIsNull, Printable
from steward.model.health import Outcome
from steward.model.ids import JobId, NodeName, UnixTime

MAX_MEASURES = 200
"""The most measures of one node in one run: enough for a tournament of 48 nodes, and few enough for one frame."""
MAX_PROGRESS = 120
DEEP_PREFIX = "steward-deep-"
"""The prefix, before a run's id, of the reservations, partitions and jobs of deep checks, which are all Steward's."""
RUN_KEY = "STEWARD_DEEP_KEY"
"""The variable with the secret by which the tasks of one run authenticate each other."""
RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_Node = Annotated[NodeName, MaxLen(64), Form(RUN)]


class DeepKind(Enum):
    """The kinds of deep checks, in the API's words. STRESS tests one machine, CONNECTIVITY pairs of machines."""

    STRESS = "InstanceStress"
    CONNECTIVITY = "InstanceConnectivity"


class DeepCause(Enum):
    """The cause of a deep check."""

    ON_START = "on start"
    """A new or repaired machine must pass before it serves."""
    LAUNCH = "launch test"
    """Jobs failed to start or end on the node: a job of Steward's must succeed before it serves. Nothing is
    measured."""
    ASKED = "asked"
    """A person or the API requested it."""
    SUSPECT = "suspect"
    """A finding that is no proof, examined as soon as the node is idle."""
    SWEEP = "sweep"
    """The periodic check of idle nodes."""


class DeepState(Enum):
    """The state of a deep check."""

    WAITING = "waiting"
    """Waits for jobs on the nodes to end, or for its turn."""
    RESERVED = "reserved"
    """Slurm has reserved the nodes; the job is to be submitted."""
    RUNNING = "running"
    DONE = "done"


class DeepResult(Enum):
    """The result of a deep check for one node."""

    PASSED = "Passed"
    FAILED = "Failed"
    SKIPPED = "Skipped"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure of a deep check on `node`.

    `outcome` is the runner's own: FAILED only for faults without a threshold (memory that loses its content), UNKNOWN
    if the measure failed. `partner` is the other end of a pair. `value` is in `unit`; nan without a number.
    """

    check: Annotated[str, MaxLen(64), Form(re.compile(r"[a-z][a-z0-9_.]{0,39}"))]
    node: _Node
    outcome: Outcome
    value: Annotated[float, NanIsNull()]
    unit: Annotated[str, Printable(16)]
    text: Annotated[str, Printable(160)] = ""
    partner: _Node | None = None
    seconds: float = 0.0

    @property
    def kind(self) -> DeepKind:
        """The kind of deep check that makes this measure: of one node, or of a pair of nodes."""
        return DeepKind.CONNECTIVITY if self.check.partition(".")[0] in ("tcp", "rdma", "pair") else DeepKind.STRESS


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepReport:
    """The report so far of the runner of deep check `run` to the agent of `node`. `progress` is for people."""

    run: Annotated[str, MaxLen(64), Form(RUN)]
    node: Annotated[NodeName, Given()]
    measures: Annotated[tuple[Measure, ...], MaxLen(MAX_MEASURES)] = ()
    progress: Annotated[str, Printable(MAX_PROGRESS)] = ""
    is_done: Annotated[bool, Called("done")] = False
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepRun:
    """One deep check in the head's memory. Times are Unix seconds.

    `nodes` are the requested nodes, `results` those of finished nodes, `why` holds the reason for each result. `job` is
    Slurm's number of its job. `waiter` is the token of the repair or slot that waits for the check. `tries` counts how
    often the check released its nodes and started over.
    """

    id: str
    cause: DeepCause
    who: str
    kinds: frozenset[DeepKind]
    nodes: frozenset[NodeName]
    asked: UnixTime
    state: DeepState = DeepState.WAITING
    entered: UnixTime = 0.0
    waiter: str = ""
    tries: int = 0
    free: UnixTime | None = None
    """Since when, in this try, at least one of its nodes is free."""
    job: JobId | None = None
    job_over: UnixTime | None = None
    """Since when its job has ended or cannot be found."""
    started: UnixTime | None = None
    ended: UnixTime | None = None
    results: Mapping[NodeName, DeepResult] = field(default_factory=lambda: MappingProxyType({}))
    why: Mapping[NodeName, str] = field(default_factory=lambda: MappingProxyType({}))
    measures: tuple[Measure, ...] = ()

    @property
    def token(self) -> str:
        """Return the name of this try in Slurm and in the runner's reports."""
        return f"{self.id}-{self.tries}"

    @property
    def has_nodes(self) -> bool:
        """Return whether Slurm reserves its nodes, or is asked to."""
        return self.state in (DeepState.RESERVED, DeepState.RUNNING)

    @property
    def is_open(self) -> bool:
        """Return whether the deep check has not ended."""
        return self.state is not DeepState.DONE

    @property
    def is_for_return(self) -> bool:
        """Return whether a repair or a slot, with nodes out of service, waits for the deep check."""
        return self.cause in (DeepCause.ON_START, DeepCause.LAUNCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The newest good values of one measure on machines of one profile (type, GPU model or group), for comparison."""

    check: str
    profile: str
    values: tuple[float, ...] = ()


def slurm_name(run: str) -> str:
    """Return the name of a run's reservation, partition and job."""
    return f"{DEEP_PREFIX}{run}"


def runner_argv(
    command: Sequence[str], run: str, kinds: frozenset[DeepKind], budget_s: float, socket: str
) -> tuple[str, ...]:
    """Return the runner's command line; the runner replaces `%n` in `socket` by its node's name (SLURMD_NODENAME).

    Every task finds the others by Slurm's own variables (SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_NODELIST). It reports
    its measures to the agent behind `socket`, ends within `budget_s` seconds, and exits with status 0 if it could
    report, whatever the measures say.
    """
    words = ",".join(sorted(kind.value for kind in kinds))
    return (*command, "--run", run, "--kinds", words, "--budget-s", f"{budget_s:g}", "--socket", socket)
