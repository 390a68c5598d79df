"""The head's memory of an opted-in job."""

from dataclasses import dataclass, field
from enum import Enum

from steward.model.access import PRIVATE
from steward.model.ids import BootId, JobId, NodeName, UnixTime
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why

# Records of a resumed job's way back: the nodes that are kept for it, and its place in the queue.


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptNodes:
    """The sound nodes of a job's lost run, kept free for its next one. Times are Unix seconds.

    `restart` is the lost run's. Nodes that were `freed` are not kept again for the same restart.
    """

    restart: int
    nodes: frozenset[NodeName]
    since: UnixTime
    until: UnixTime
    freed: UnixTime | None = None
    why: str = ""
    """Why the nodes were freed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A job moved ahead in the queue, once a resume. `before` is its own nice value, `nice` Steward's, set at `at`.

    `restored`: Steward has requested the job's own value again, because it runs or its time ahead is over.
    """

    restart: int
    before: int
    nice: int
    at: UnixTime
    restored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """Hot spares that were released for a job at `at` (Unix s), until the job runs or its time is over."""

    restart: int
    nodes: frozenset[NodeName]
    at: UnixTime


# The memory of a job that was suspended.


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """The observed suspensions of a run. Times are Unix seconds.

    `since` is None while the run is not suspended, `over` is when it last continued; `total_s` sums the earlier
    suspensions.
    """

    restart: int
    since: UnixTime | None = None
    over: UnixTime | None = None
    total_s: float = 0.0

    def until_s(self, now: float) -> float:
        """Return for how many seconds the run was suspended up to `now`."""
        return self.total_s + (max(0.0, now - self.since) if self.since is not None else 0.0)


# Records of a run's end, and of its loss of a node without an end.


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """The observed end of a run. Times are Unix seconds on the head's clock.

    `restart` is the run's. The times are since when Slurm shows the run so. `since`: cleaning up (None: not observed).
    `over`: ended and not requeued, later by the time in which Slurm could not be read. `done`: the same, and cleaned
    up. `asked`: the same, and its requeue was asked for. `clean`: cleaned up and requeued.
    """

    restart: int
    since: UnixTime | None = None
    over: UnixTime | None = None
    done: UnixTime | None = None
    asked: UnixTime | None = None
    clean: UnixTime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bystander:
    """A job that is not resumed. `since` is when it was first remembered (Unix s)."""

    since: UnixTime
    submitted: float | None = None
    """Its submit time, because a later job in Slurm may have the same id."""
    refused: bool = False
    """Whether the job itself opted out of the site's default."""
    leaving: Leaving | None = None
    """The end of its last run, if the job was evicted; None: Steward waits for no end."""
    orphaned: UnixTime | None = None
    """When it was first seen as a replica job without a base job (Unix s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOut:
    """A node that left a running job, and when this was seen (Unix s)."""

    node: NodeName
    at: UnixTime
    fault: str = ""
    """The node's fault at that time; empty: no fault is known, so the job's user released the node."""


class Decision(Enum):
    """The decision about a failed job."""

    RETRY = "retry"
    REQUEUE = "requeue"
    WAIT = "wait"
    """Requeue, with its sound nodes kept for it while a repair under way brings the missing ones."""
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A job's newest checkpoint, as its nodes reported it. `at` is Unix s on the head's clock."""

    path: str = ""
    step: int | None = None
    at: UnixTime | None = None

    def is_newer_than(self, other: "Saved") -> bool:
        """Return whether this checkpoint holds more work: by step if both have one, else by time."""
        if self.step is not None and other.step is not None:
            return self.step > other.step
        return self.at is not None and (other.at is None or self.at > other.at)


def what_failed(step: str, failed_at: float | None) -> str:
    """Return the failed part of the job (`step 0`, `the script`); empty: Slurm ended or requeued the whole job."""
    if step:
        return f"step {step}"
    return "" if failed_at is None else "the script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One decision about a job, and its outcome. Times are Unix seconds.

    `culprits` are the blamed nodes; `decided_for` is the id of the answered ask, or Slurm's own restart.
    """

    decided_for: str
    decision: Decision
    why: Why
    at: UnixTime
    culprits: frozenset[NodeName] = frozenset()
    restart: int = 0
    final: bool = False
    """Whether the batch script itself was told to stop, so that its run ends with its own status."""
    open: bool = False
    """Whether a fault that is found later may change the decision."""
    failed_at: UnixTime | None = None
    """When the step or script of the ask failed; None: there was no ask."""
    step: str = ""
    """The step of the ask; empty: not a step, or no ask."""
    nodes: frozenset[NodeName] = frozenset()
    """The nodes of that step; empty: not known."""
    counted: bool = True
    """Whether the attempt counts as a resume; False if a resume was counted for the same fault."""
    suspended_s: float = 0.0
    """For how long its run had been suspended before."""
    requeued: UnixTime | None = None
    running: UnixTime | None = None
    given_limit_s: float | None = None
    """The new time limit (s), which makes up for the time lost by this fault; 0: too little was lost, or no fault is
    known; None: not decided yet, or no retry."""
    saved: Saved | None = None
    """The newest checkpoint at the decision; None: none is known."""
    lines: tuple[str, ...] = field(default=(), metadata=PRIVATE)
    """The known lines of the job's own output that `why` names by their signs."""

    @property
    def what(self) -> str:
        return what_failed(self.step, self.failed_at)

    @property
    def is_requeue(self) -> bool:
        """Return whether the job is requeued, at once or after a wait."""
        return self.decision in (Decision.REQUEUE, Decision.WAIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standstill:
    """A running job without progress. `name` names the bundle of its stacks, `since` is when the hang was found."""

    name: str
    since: UnixTime
    restart: int
    step: int | None = None
    is_seen: bool = False
    """Whether its ranks were seen to do no work, and not only no step was reported."""
    is_settled: bool = False
    """Whether the hang was ruled on, which happens once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OddRanks:
    """Ranks of a run, all on one node, that did nothing while the others waited for them; seen from `since` on."""

    node: NodeName
    text: str
    restart: int
    since: UnixTime
    until: UnixTime | None = None
    """When they were last seen so; None: they still are."""
    follow_job: bool = False
    """Whether a run before had such ranks on another node: they come with the job, not with a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSize:
    """The allocation of a run, and its time limit."""

    partition: str
    nodes: int
    limit_s: float | None
    """The time limit; None: no limit, or not known."""
    tres: str
    """The resources as Slurm writes them; empty: not known."""
    exclusive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMemory:
    """The memory of an opted-in job. `resumes` counts against its budget, `unproven` the resumes without evidence.

    `pending_from` is when its resume began (nudges until it runs); None without a resume under way.
    """

    id: JobId
    uid: int
    mode: ResumeMode
    opted_at: UnixTime
    restarts: int = 0
    resumes: int = 0
    unproven: int = 0
    no_requeue: bool = False
    """Whether its user forbade a requeue: Slurm had it with Requeue=0 at first, and the site's default is 1."""
    by_default: bool = False
    """Whether the site's default opted the job in; the job did not ask itself."""
    excluded: frozenset[NodeName] = frozenset()
    excluded_by_user: frozenset[NodeName] = frozenset()
    pending_from: UnixTime | None = None
    unbegun: tuple[int, ...] = ()
    """The restart counts with which Slurm put it back since its last run, without a fault or a run that was seen."""
    nudges: int = 0
    last_nudge: UnixTime = 0.0
    nodes: frozenset[NodeName] = frozenset()
    """Every node of its current run (of its last run while it is pending), lost ones included."""
    parts: frozenset[NodeName] = frozenset()
    """Every node of the other parts of that run, for a heterogeneous job; this memory is the leader's."""
    started: UnixTime | None = None
    """When that run started."""
    script_boot: BootId | None = None
    """The boot of its batch host in which the script of that run began; None: not known."""
    size: RunSize | None = None
    """The allocation of that run; None: the run was not observed."""
    excised: frozenset[NodeName] = frozenset()
    """The nodes that it lost while it continued without them (`--no-kill`)."""
    taken_out: tuple[TakenOut, ...] = ()
    """The nodes that left its current run."""
    leaving: Leaving | None = None
    """The end of its current or last run; None: no end was seen yet."""
    attempts: tuple[Attempt, ...] = ()
    saved: Saved | None = None
    """The job's newest checkpoint; None: none is known."""
    hang: Standstill | None = None
    """Its lack of progress; None while it makes progress."""
    odd: OddRanks | None = None
    """The ranks for which the others waited last; None: none were seen."""
    suspension: Suspension | None = None
    """The suspensions of its current run; None: it was never suspended."""
    kept: KeptNodes | None = None
    """The nodes that are kept for it, or were kept in this resume."""
    raised: Raised | None = None
    """Set while the job is ahead of others in the queue."""
    lent: Lent | None = None
    """The hot spares that were released for it."""
    unexcludable: int | None = None
    """The restart for which Slurm refused the exclude list, so that none of Steward's nodes are excluded from it."""
    shown_again: int | None = None
    """The restart of its run that Slurm shows again after a requeue, because Slurm lost its newest state."""
    ended: UnixTime | None = None
    end_text: str = ""

    @property
    def stays_in_place(self) -> bool:
        """Return whether the job's user allows no requeue, only retries of its steps; the option overrides Slurm."""
        return self.no_requeue if self.mode.requeue is None else not self.mode.requeue

    @property
    def last_attempt(self) -> Attempt | None:
        """Return the last decision about the job; None if there is none."""
        return self.attempts[-1] if self.attempts else None

    def attempt_for(self, decided_for: str) -> Attempt | None:
        """Return the decision about this ask or event; None if there is none."""
        return next((attempt for attempt in self.attempts if attempt.decided_for == decided_for), None)

    @property
    def promised(self) -> Attempt | None:
        """Return the requeue of its current run that was decided and has not happened yet; None if there is none."""
        last = self.last_attempt
        is_open = last is not None and last.is_requeue and last.requeued is None and last.restart == self.restarts
        return last if is_open else None
