"""The head's memory of a job that opted in."""

from dataclasses import dataclass, field
from enum import Enum

from steward.model.access import PRIVATE
from steward.model.ids import JobId, NodeName
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why

# Records of how a resumed job gets its places back: nodes that are kept for it, and its turn in the queue.


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The sound nodes of a job's lost run, kept free for its next one. Times are Unix seconds.

    `restart` is the lost run's. Once a run: what was `freed` is not kept again for the same restart.
    """

    restart: int
    nodes: frozenset[NodeName]
    since: float
    until: float
    freed: float | None = None
    why: str = ""
    """Why it was freed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A job that was put before others, once a resume: `before` is its own nice value, `nice` what we set at `at`.

    `restored`: its own value is asked for again, because it runs or had its time.
    """

    restart: int
    before: int
    nice: int
    at: float
    restored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """Hot spares that were let out for a job at `at` (Unix s), until it runs or had its time."""

    restart: int
    nodes: frozenset[NodeName]
    at: float


# The memory of a job that was suspended.


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """How long a run was suspended, as it was seen. Times are Unix seconds.

    `since` is None while it runs, `over` is when it last went on; `total_s` is of the times before.
    """

    restart: int
    since: float | None = None
    over: float | None = None
    total_s: float = 0.0


# Records of how a run ends, or loses a node and goes on.


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """How a run ends, as it was seen. Times are Unix seconds on the head's clock.

    `restart` is the run's. `since`: since when it cleans up; None where nobody saw it do so. `over`: since when it is
    seen to be over and not back in the queue, later by the time in which nobody could look. `done`: the same of a run
    that has cleaned up, too. `clean`: since when it is seen clean and back in the queue.
    """

    restart: int
    since: float | None = None
    over: float | None = None
    done: float | None = None
    clean: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bystander:
    """A job that is not to be resumed. `since` is when it was first remembered (Unix s)."""

    since: float
    submitted: float | None = None
    """A later job of Slurm's may bear the same id."""
    refused: bool = False
    """It said itself that it is not, where the site's default resumes jobs."""
    leaving: Leaving | None = None
    """How its last run ended, of one that gave way to others; None: nobody waited for that."""
    orphaned: float | None = None
    """When it was first seen as a replica job without a base (Unix s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOut:
    """A node that left a running job, and when that was seen (Unix s)."""

    node: NodeName
    at: float
    fault: str = ""
    """What was wrong with it then; empty: nothing that is known, the job's user gave it up."""


class Decision(Enum):
    RETRY = "retry"
    REQUEUE = "requeue"
    WAIT = "wait"
    """Requeue, and its sound nodes are kept for it until the replacement is there."""
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A job's newest checkpoint, as its nodes told of it. `at` is Unix s on the head's clock."""

    path: str = ""
    step: int | None = None
    at: float | None = None

    def is_newer_than(self, other: "Saved") -> bool:
        """Whether it holds more of the work: by its step where both have one, else by its time."""
        if self.step is not None and other.step is not None:
            return self.step > other.step
        return self.at is not None and (other.at is None or self.at > other.at)


def what_failed(step: str, failed_at: float | None) -> str:
    """Return `step 0` or `the script` for what was asked about; empty: Slurm ended the whole job, or put it back."""
    if step:
        return f"step {step}"
    return "" if failed_at is None else "the script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One decision about a job and how it went. Times are Unix seconds.

    `culprits` are the nodes blamed; `decided_for` is the ask that was answered, or the restart that Slurm made.
    """

    decided_for: str
    decision: Decision
    why: Why
    at: float
    culprits: frozenset[NodeName] = frozenset()
    restart: int = 0
    final: bool = False
    """The batch script itself was told to stop: its run ends as it ended."""
    open: bool = False
    """A fault that is found later may overturn it."""
    failed_at: float | None = None
    """When the step or the script failed that was asked about; None: nobody asked."""
    step: str = ""
    """The step that was asked about; empty: not a step, or nobody asked."""
    nodes: frozenset[NodeName] = frozenset()
    """Where that step ran; empty: not known."""
    counted: bool = True
    """Whether a resume counts for it; False: one was counted for the same fault."""
    suspended_s: float = 0.0
    """For how long its run had been suspended before that."""
    requeued: float | None = None
    running: float | None = None
    given_limit_s: float | None = None
    """The time limit (s) that gives back what this fault took; 0: not worth it; None: not known yet, or no retry."""
    saved: Saved | None = None
    """The newest checkpoint when it was decided; None: none is known."""
    lines: tuple[str, ...] = field(default=(), metadata=PRIVATE)
    """The known lines of the job's own output that `why` names by their signs."""

    @property
    def what(self) -> str:
        return what_failed(self.step, self.failed_at)

    @property
    def is_requeue(self) -> bool:
        return self.decision in (Decision.REQUEUE, Decision.WAIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standstill:
    """A job that runs and does not go on. `name` is that of the bundle of its stacks; `since` is when it was found."""

    name: str
    since: float
    restart: int
    step: int | None = None
    is_quiet: bool = False
    is_settled: bool = False
    """Whether the ruling on this failure was made; it is not made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMemory:
    """`resumes` counts against the job's budget, `unproven` those of them that had no evidence against a node.

    `pending_from` is when we began to bring it back (nudges until it runs); None when nothing is to be done.
    """

    id: JobId
    uid: int
    mode: ResumeMode
    opted_at: float
    restarts: int = 0
    resumes: int = 0
    unproven: int = 0
    no_requeue: bool = False
    """Slurm had it with Requeue=0 when it was first seen, though the site's jobs may be requeued: somebody's word."""
    by_default: bool = False
    """Whether the site's default opted the job in; the job did not ask itself."""
    excluded: frozenset[NodeName] = frozenset()
    excluded_by_user: frozenset[NodeName] = frozenset()
    pending_from: float | None = None
    unbegun: bool = False
    """Slurm put it back without a run that anybody saw, for no fault: it is left to Slurm's own delay until it
    runs."""
    nudges: int = 0
    last_nudge: float = 0.0
    nodes: frozenset[NodeName] = frozenset()
    """Every node of its present run (of its last one while it is pending), lost ones included."""
    parts: frozenset[NodeName] = frozenset()
    """Every node of the other parts of that run, of a heterogeneous job; this memory is its leader's."""
    started: float | None = None
    """When that run began."""
    excised: frozenset[NodeName] = frozenset()
    """Nodes that it lost while it ran on without them (`--no-kill`)."""
    taken_out: tuple[TakenOut, ...] = ()
    """Those of its present run."""
    leaving: Leaving | None = None
    """How its present or last run ended; None: no end of a run was seen yet."""
    attempts: tuple[Attempt, ...] = ()
    saved: Saved | None = None
    """The job's newest checkpoint; None: none is known."""
    hang: Standstill | None = None
    """None while it goes on."""
    suspension: Suspension | None = None
    """None: its present run was never suspended."""
    kept: Kept | None = None
    """Nodes that are, or in this resume were, kept for it."""
    raised: Raised | None = None
    """Set while the job stands before others in the queue."""
    lent: Lent | None = None
    """Hot spares that were let out for it."""
    unexcludable: int | None = None
    """The restart for which Slurm said that we asked too much: nothing of ours is excluded from it."""
    shown_again: int | None = None
    """The restart of its run that Slurm shows again though it was put back: its newest state was lost."""
    ended: float | None = None
    end_text: str = ""

    @property
    def stays_in_place(self) -> bool:
        """Whether the job's user does not want it requeued: only its steps run again. The option stands above Slurm's
        record."""
        return self.no_requeue if self.mode.requeue is None else not self.mode.requeue

    @property
    def last_attempt(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def promised(self) -> Attempt | None:
        """The requeue of its present run that was decided and has not come yet."""
        last = self.last_attempt
        is_open = last is not None and last.is_requeue and last.requeued is None and last.restart == self.restarts
        return last if is_open else None
