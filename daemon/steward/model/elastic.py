"""An elastic run, which grows into idle nodes and gives them back: its option, its reports and its memory.

A run is named by its base job, which its user submitted and whose nodes are guaranteed. Each replica job adds nodes.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from steward.model.bounds import Count, Form, Given, Job, Last, MaxLen, Printable, Range, Sparse, Uid
from steward.model.elastic_spec import MAX_NODES, MAX_TEXT, ElasticWords
from steward.model.ids import JobId, NodeName, UnixTime

MAX_FAILED = 8
_NODE = Form(re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"))

Nodes = Annotated[frozenset[Annotated[NodeName, MaxLen(64), _NODE]], MaxLen(MAX_NODES)]
ReplicaToken = Annotated[str, MaxLen(64), Form(re.compile(r"[a-z0-9]{1,32}"))]
OPTIONS = ("grace", "settle", "faulty", "snooze", "backoff")
COMMENT = "steward-elastic:"
_COMMENT = re.compile(COMMENT + r"([1-9][0-9]{0,18}):([a-z0-9]{1,32})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticSpec:
    """The option `--elastic` of a base job of `sizes[0]` nodes. Times are seconds; None means the site's own."""

    sizes: tuple[int, ...]
    """The sizes in nodes, rising; the first is the base job's own."""
    grace_s: int | None = None
    settle_s: int | None = None
    faulty_s: int | None = None
    snooze_s: int | None = None
    backoff_s: int | None = None
    batch: int | None = None
    """The samples of one step over all nodes."""

    @classmethod
    def parse(cls, text: str, base: int) -> "ElasticSpec":
        """Parse the option of a base job of `base` nodes. Raises ValueError, one line that names the valid words."""
        words = ElasticWords.parse(text)
        options = {f"{name}_s": value for name, value in words.values.items() if name in OPTIONS}
        return cls(sizes=words.from_base(base), batch=words.values.get("batch"), **options)

    @property
    def base(self) -> int:
        """Return the base job's own size."""
        return self.sizes[0]

    def fitting(self, nodes: int) -> int:
        """Return the largest size of at most `nodes` nodes; 0 if even the base job's own size is larger."""
        return max((size for size in self.sizes if size <= nodes), default=0)


def replica_comment(run: JobId, token: str) -> str:
    """Return the `--comment` of a replica job, by which alone replica jobs are recognised."""
    return f"{COMMENT}{run}:{token}"


def replica_of(comment: str) -> tuple[JobId, str] | None:
    """Return the run and the token in a replica job's comment; None for any other comment."""
    found = _COMMENT.fullmatch(comment)
    return (JobId(int(found[1])), found[2]) if found is not None else None


class Activity(Enum):
    """The current activity of a run, as its coordinator reports it."""

    WAITING = "waiting"
    """Too few nodes have joined for the first round."""
    FORMING = "forming"
    """The processes of the generation start; no step was made yet."""
    RUNNING = "running"
    SAVING = "saving"
    """All ranks were asked to save before the next generation."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedSubmit:
    """A replica job that could not be submitted."""

    token: ReplicaToken
    why: Annotated[str, Printable(200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticWord:
    """A report on a run by the agent of its base job's batch host. Times are Unix s on the head's clock.

    `joined`: nodes whose launchers wait or take part; `leaving`: members that were told to leave. Of the last change of
    size `saved_s` is the time from the order until all ranks had saved, `up_s` from then to the first step. `alone`:
    why the run has no coordinator; empty if it has one, or one is being started.
    """

    run: Job
    restart: Count
    uid: Uid
    node: Annotated[NodeName, Given()]
    spec: Annotated[str, MaxLen(MAX_TEXT)]
    state: Activity
    generation: Annotated[int, Range(high=2**31)] = 0
    members: Nodes = frozenset()
    joined: Nodes = frozenset()
    leaving: Nodes = frozenset()
    step: int | None = None
    saved_step: int | None = None
    consumed: int | None = None
    failed: Annotated[tuple[FailedSubmit, ...], Last(MAX_FAILED)] = ()
    steerable: Annotated[bool, Sparse()] = False
    """Whether its processes ask whether to save, or its user allows to stop them at any time."""
    begins_to_save: Annotated[bool, Sparse()] = False
    """Whether a rank has seen the request to save."""
    unsaved: Nodes = frozenset()
    """The nodes that had not saved when the generation before this one was stopped."""
    again: int | None = None
    """How many steps this generation repeats."""
    alone: Annotated[str, Printable(200), Sparse()] = ""
    again_s: Annotated[float | None, Given()] = None
    saved_s: Annotated[float | None, Given()] = None
    up_s: Annotated[float | None, Given()] = None
    at: Annotated[float, Given()] = 0.0


class RunPhase(Enum):
    """The phase of a run; `policy/elastic/table.py` has the transitions."""

    WAITING = "waiting"
    RUNNING = "running"
    SETTLING = "settling"
    DRAINING = "draining"
    REFORMING = "reforming"
    FAULTED = "faulted"
    BACKOFF = "backoff"
    ENDED = "ended"


class Cause(Enum):
    """The cause of a change of size."""

    START = "start"
    GROW = "grow"
    PREEMPTED = "preempted"
    RECLAIMED = "reclaimed"
    ASKED = "asked"
    FAULT = "fault"
    LEFT = "left"
    """A replica job ended: its time was up, or its user ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeChange:
    """One change of size in a run's history. `done` is when the first step at the new size was made; None: not yet.

    `consumed` and `resumed` are the reported samples of all ranks at the times `at` and `done`.
    """

    at: UnixTime
    before: int
    after: int
    cause: Cause
    why: str
    done: UnixTime | None = None
    saved_s: float | None = None
    up_s: float | None = None
    consumed: int | None = None
    resumed: int | None = None
    unsaved: frozenset[NodeName] = frozenset()
    """The nodes that were stopped before they had saved."""
    again: int | None = None
    """How many steps were repeated after the change; None: not known."""
    again_s: float | None = None
    """How long these steps took the first time (s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A requested replica job. `job` is None until Slurm shows it."""

    token: str
    nodes: int
    asked: UnixTime
    job: JobId | None = None
    ending: UnixTime | None = None
    """When Steward asked the replica job to end."""
    joined: bool = False
    """Whether the run has trained on its nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticRun:
    """The memory of a run. `entered` is when its phase began (Unix s), `wish` the size requested by a person."""

    id: JobId
    uid: int
    spec: str
    base: int
    restart: int = 0
    account: str = ""
    partition: str = ""
    phase: RunPhase = RunPhase.WAITING
    entered: UnixTime = 0.0
    why: str = ""
    generation: int = 0
    ordered: int = 0
    """The newest generation that Steward ordered."""
    members: frozenset[NodeName] = frozenset()
    ordered_members: frozenset[NodeName] = frozenset()
    """The members of the ordered generation."""
    cause: Cause = Cause.START
    replicas: tuple[Replica, ...] = ()
    next_token: int = 1
    events: tuple[SizeChange, ...] = ()
    changes: int = 0
    """The number of all changes of size; `events` has the last ones."""
    cool_until: UnixTime = 0.0
    backoff_s: float = 0.0
    wish: int | None = None
    paused: bool = False
    begun: UnixTime = 0.0
    ended: UnixTime | None = None
    node_seconds: float = 0.0
    """The node-seconds that the run had beyond its base job, up to `counted`."""
    counted: UnixTime = 0.0
    consumed: int | None = None
    """The samples of all ranks when its phase began."""
    why_no_coordinator: str = ""
    """Why it has no coordinator, by its agent's last report; empty if it has one, or none was reported missing."""
    steerable: bool = True
    """Whether its program asks whether to save, or may be stopped at any time; otherwise the run does not grow."""
    freed: UnixTime = 0.0
    """When an ended replica job was last cleaned up (Unix s)."""

    @property
    def is_open(self) -> bool:
        """Return whether the run has not ended."""
        return self.phase is not RunPhase.ENDED

    @property
    def is_patient(self) -> bool:
        """Return whether its change of size can wait for the save, and is cancelled without one."""
        return self.cause in (Cause.GROW, Cause.ASKED)

    @property
    def is_changing(self) -> bool:
        """Return whether a change of size is under way."""
        return self.phase in (RunPhase.DRAINING, RunPhase.REFORMING)
