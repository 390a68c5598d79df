"""What the head remembers of a job that opted in."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import JobId, NodeName
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why


class Decision(Enum):
    RETRY = "retry"
    REQUEUE = "requeue"
    WAIT = "wait"
    """Requeue, and its sound nodes are kept for it until the replacement is there."""
    STOP = "stop"


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
    """The batch script itself was told to stop: nothing is looked at again for this restart."""
    requeued: float | None = None
    running: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMemory:
    """`resumes` counts against `resume.max_resumes`.

    `pending_from` is when we began to bring it back (nudges until it runs); None when nothing is to be done.
    """

    id: JobId
    uid: int
    mode: ResumeMode
    opted_at: float
    restarts: int = 0
    resumes: int = 0
    excluded: frozenset[NodeName] = frozenset()
    excluded_by_user: frozenset[NodeName] = frozenset()
    pending_from: float | None = None
    nudges: int = 0
    last_nudge: float = 0.0
    nodes: frozenset[NodeName] = frozenset()
    """Every node of its present run (of its last one while it is pending), lost ones included."""
    started: float | None = None
    """When that run began."""
    excised: frozenset[NodeName] = frozenset()
    """Nodes that it lost while it ran on without them (`--no-kill`)."""
    attempts: tuple[Attempt, ...] = ()
    ended: float | None = None
    end_text: str = ""
