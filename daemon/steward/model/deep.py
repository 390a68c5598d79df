"""Deep checks: what is run on nodes that no job uses and how its runner is started there, what it measured, and what
follows for each node."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Annotated

from steward.model.bounds import Called, Form, Given, MaxLen, NanIsNull, Printable
from steward.model.health import Outcome
from steward.model.ids import JobId, NodeName

MAX_MEASURES = 200
"""The most measures of one node in one run: enough for a tournament of 48 nodes, and few enough for a frame."""
MAX_PROGRESS = 120
DEEP_PREFIX = "steward-deep-"
"""Reservations, partitions and jobs of deep checks are named so, with the run's id: what is named so is ours."""
RUN_KEY = "STEWARD_DEEP_KEY"
"""The variable in which the tasks of one run find the secret by which they know each other."""
RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_Node = Annotated[NodeName, MaxLen(64), Form(RUN)]


class DeepKind(Enum):
    """The API's own words. STRESS looks at one machine, CONNECTIVITY at pairs of them."""

    STRESS = "InstanceStress"
    CONNECTIVITY = "InstanceConnectivity"


class DeepCause(Enum):
    ON_START = "on start"
    """A new or repaired machine must pass before it serves."""
    LAUNCH = "launch test"
    """Jobs could not begin or end on the node: one job of our own must, before it serves again. Nothing is measured."""
    ASKED = "asked"
    """A person or the API asked."""
    SUSPECT = "suspect"
    """A finding that is no proof: looked into at the next idle moment."""
    SWEEP = "sweep"
    """Idle nodes in their turn."""


class DeepState(Enum):
    WAITING = "waiting"
    """For jobs on the nodes to end, or for its turn."""
    RESERVED = "reserved"
    """Slurm keeps the nodes for us; the job is to be submitted."""
    RUNNING = "running"
    DONE = "done"


class DeepResult(Enum):
    PASSED = "Passed"
    FAILED = "Failed"
    SKIPPED = "Skipped"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One thing that a deep check measured on `node`.

    `outcome` is the runner's own word: FAILED only where no threshold is needed (memory that does not keep its
    content), UNKNOWN where it could not be measured. `partner` is the other end of a pair. `value` is in `unit`; nan
    where there is no number.
    """

    check: Annotated[str, MaxLen(64), Form(re.compile(r"[a-z][a-z0-9_.]{0,39}"))]
    node: _Node
    outcome: Outcome
    value: Annotated[float, NanIsNull()]
    unit: Annotated[str, Printable(16)]
    text: Annotated[str, Printable(160)] = ""
    partner: _Node | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepReport:
    """The report of the runner of deep check `run` to the agent of `node`, so far. `progress` is for people."""

    run: Annotated[str, MaxLen(64), Form(RUN)]
    node: Annotated[NodeName, Given()]
    measures: Annotated[tuple[Measure, ...], MaxLen(MAX_MEASURES)] = ()
    progress: Annotated[str, Printable(MAX_PROGRESS)] = ""
    is_done: Annotated[bool, Called("done")] = False
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepRun:
    """One deep check as the head remembers it. Times are Unix seconds.

    `nodes` are those it was asked for, `results` those that it is over for, `why` says for each what its result rests
    on. `job` is Slurm's number of its job. `waiter` is the token of the repair or of the slot that waits for it.
    `tries` counts how often it gave its nodes back and began anew.
    """

    id: str
    cause: DeepCause
    who: str
    kinds: frozenset[DeepKind]
    nodes: frozenset[NodeName]
    asked: float
    state: DeepState = DeepState.WAITING
    entered: float = 0.0
    waiter: str = ""
    tries: int = 0
    free: float | None = None
    """Since when, in this try, one of its nodes at least is free."""
    job: JobId | None = None
    job_over: float | None = None
    """Since when its job is over or not to be found."""
    started: float | None = None
    ended: float | None = None
    results: Mapping[NodeName, DeepResult] = field(default_factory=lambda: MappingProxyType({}))
    why: Mapping[NodeName, str] = field(default_factory=lambda: MappingProxyType({}))
    measures: tuple[Measure, ...] = ()

    @property
    def token(self) -> str:
        """Names this try in Slurm and in what the runner reports."""
        return f"{self.id}-{self.tries}"

    @property
    def has_nodes(self) -> bool:
        """Slurm keeps its nodes for it, or is asked to."""
        return self.state in (DeepState.RESERVED, DeepState.RUNNING)

    @property
    def is_open(self) -> bool:
        return self.state is not DeepState.DONE

    @property
    def is_for_return(self) -> bool:
        """Return whether a repair or a slot waits for it with nodes that are out of service."""
        return self.cause in (DeepCause.ON_START, DeepCause.LAUNCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The newest good values of one measure on machines of one profile (type, GPU model or group), for comparison."""

    check: str
    profile: str
    values: tuple[float, ...] = ()


def slurm_name(run: str) -> str:
    """The name of a run's reservation, partition and job."""
    return f"{DEEP_PREFIX}{run}"


def runner_argv(
    command: Sequence[str], run: str, kinds: frozenset[DeepKind], budget_s: float, socket: str
) -> tuple[str, ...]:
    """The runner's command line. In `socket` the runner replaces `%n` by its node's name (SLURMD_NODENAME).

    Every task knows the others by Slurm's own variables (SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_NODELIST). It tells all
    that it measures to the agent behind `socket`, is over within `budget_s` seconds, and ends with status 0 when it
    could tell, whatever it found.
    """
    words = ",".join(sorted(kind.value for kind in kinds))
    return (*command, "--run", run, "--kinds", words, "--budget-s", f"{budget_s:g}", "--socket", socket)
