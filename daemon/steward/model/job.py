"""A Slurm job as it was read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from steward.model.ids import JobId, NodeName

SLURMS_HOLDS = frozenset(
    {
        "JobHoldMaxRequeue",
        "JobHoldMaxNodeFailRequeue",  # 26.11, from its notes
        "launch failed requeued held",
        "launch_failed_requeued_held",
    }
)
"""Reasons of holds that slurmctld sets by itself after failures."""
PEOPLES_HOLDS = frozenset(
    {
        "JobHeldUser",
        "JobHeldAdmin",
        "job requeued in held state",
        "job_requeued_in_held_state",
        "job requeued in special exit state",
        "job_requeued_in_special_exit_state",
    }
)
"""Reasons of holds that somebody wanted: `hold`, `requeuehold`, or the site's RequeueExitHold."""


class JobState(Enum):
    """Slurm's base job states; a word we do not know becomes UNKNOWN and is never acted on."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    PREEMPTED = "PREEMPTED"
    BOOT_FAIL = "BOOT_FAIL"
    DEADLINE = "DEADLINE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job. Times are Unix seconds or None where Slurm has none; `exit_status` is a raw wait status."""

    id: JobId
    name: str
    state: JobState
    user_id: int
    flags: frozenset[str] = frozenset()
    reason: str = ""
    nodes: frozenset[NodeName] = frozenset()
    batch_host: NodeName | None = None
    is_batch: bool = True
    restarts: int = 0
    requeue: bool = True
    exit_status: int = 0
    excluded: frozenset[NodeName] = frozenset()
    array_job_id: JobId | None = None
    array_task: int | None = None
    het_job_id: JobId | None = None
    partition: str = ""
    account: str = ""
    node_count: int = 0
    submitted: float | None = None
    eligible: float | None = None
    started: float | None = None
    ended: float | None = None
    admin_comment: str = ""
    qos: str = ""
    time_limit_s: float | None = None
    """None: no limit, or not known."""
    reservation: str = ""
    priority: int = 0
    """Slurm's; 0: held, or not known."""
    nice: int = 0
    submit_host: str = ""
    """Where its user submitted it, as that host calls itself; empty: not told (Slurm 22.05)."""
    expedited: bool = False
    """Submitted with `--requeue=expedite` (Slurm 25.11): Slurm starts it again before every other job, and keeps its
    nodes for it."""
    requested: str = ""
    """Resources as Slurm writes them (TRES): `cpu=48,mem=96G,node=1,billing=48,gres/gpu:l4=2`."""
    allocated: str = ""
    """The same of what a running job has."""
    comment: str = ""
    """The comment that the job's user gave it."""
    most_nodes: int = 0
    """The most nodes that the job takes (`-N 1-4`); 0: as many as `node_count`, or as it needs for its total."""
    node_sizes: str = ""
    """The only counts that it takes (`-N 1,2,4`), as Slurm writes them; empty: any of its range."""
    is_total: bool = False
    """It asks for so much on all its nodes together (`--gpus`, `-n`), not on each of them."""
    waiting_tasks: int = 1
    """How many tasks of an array its record stands for."""
    most_tasks: int = 0
    """How many tasks of that array may run at once (`--array=0-9%2`); 0: any number."""
    required: frozenset[NodeName] = frozenset()
    """Nodes that have to be among its own (`-w`)."""
    features: str = ""
    """Its `--constraint`."""
    exclusive: bool = False
    """It shares its nodes with no other job (`--exclusive`)."""
    preempted: float | None = None
    """Since when Slurm makes it give way: it has its grace (PreemptTime). None: Slurm does not, or it is not told."""

    @property
    def partitions(self) -> tuple[str, ...]:
        """Those that it may run in (`-p a,b`), with all its nodes in one. At least one, perhaps without name."""
        return tuple(part for part in self.partition.split(",") if part) or ("",)

    @property
    def is_part(self) -> bool:
        """A part of a heterogeneous job, not its leader: Slurm does to all parts what it is told to do to that one."""
        return self.het_job_id is not None and self.het_job_id != self.id

    @property
    def is_held_by_slurm(self) -> bool:
        return self.reason in SLURMS_HOLDS

    @property
    def is_held(self) -> bool:
        """By a person, who will release it."""
        return self.reason in PEOPLES_HOLDS or bool(self.flags & {"REQUEUE_HOLD", "SPECIAL_EXIT"})

    @property
    def is_left_over(self) -> bool:
        """Whether this part belongs to a run that is over for its other parts: not put back into the queue with them,
        and nobody's wish."""
        theirs = (JobState.PENDING, JobState.CANCELLED, JobState.COMPLETED, JobState.UNKNOWN)
        return self.state not in theirs and not self.is_completing

    @property
    def is_completing(self) -> bool:
        return "COMPLETING" in self.flags

    @property
    def is_expediting(self) -> bool:
        """Slurm starts it by itself as soon as it can."""
        return "EXPEDITING" in self.flags

    @property
    def is_active(self) -> bool:
        return self.state in (JobState.RUNNING, JobState.SUSPENDED)

    @property
    def is_over(self) -> bool:
        """Ended and cleaned up."""
        alive = (JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED, JobState.UNKNOWN)
        return self.state not in alive and not self.is_completing

    def made_room(self, told_at: float | None) -> bool:
        """Whether a job that ended well did so after it was told to make room (Unix s; None: nobody told it, or nobody
        knows): then it is not done. Slurm tells whole seconds. Not so of heterogeneous jobs, whose parts may have ended
        before."""
        return told_at is not None and self.het_job_id is None and (self.ended or 0.0) >= math.floor(told_at)

    @property
    def is_pending(self) -> bool:
        return self.state is JobState.PENDING


def other_parts(job: Job, jobs: Mapping[JobId, Job]) -> tuple[Job, ...]:
    """The other parts of a heterogeneous job; none for any other job."""
    if job.het_job_id is None:
        return ()
    return tuple(jobs[id] for id in sorted(jobs) if jobs[id].het_job_id == job.het_job_id and id != job.id)
