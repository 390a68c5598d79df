"""A Slurm job, as read from Slurm."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from steward.model.deep import DEEP_PREFIX
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
"""Reasons of holds by a person or a site's rule: `hold`, `requeuehold`, or RequeueExitHold."""


class JobState(Enum):
    """Slurm's base states of a job; an unknown word becomes UNKNOWN and is never acted on."""

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


ENDED = frozenset(JobState) - {JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED, JobState.UNKNOWN}
"""The states of a job that has ended; it may still be cleaned up. Else Slurm's `EndTime` is that of its limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job. Times are Unix seconds, None where Slurm has none; `exit_status` is a raw wait status."""

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
    """Its time limit; None: no limit, or not known."""
    reservation: str = ""
    priority: int = 0
    """Slurm's priority; 0: held, or not known."""
    nice: int = 0
    submit_host: str = ""
    """The host on which it was submitted, by the host's own name; empty: not reported (Slurm 22.05)."""
    expedited: bool = False
    """Whether it was submitted with `--requeue=expedite` (Slurm 25.11): Slurm restarts it before every other job, and
    keeps its nodes for it."""
    requested: str = ""
    """Resources as Slurm writes them (TRES): `cpu=48,mem=96G,node=1,billing=48,gres/gpu:l4=2`."""
    allocated: str = ""
    """The allocated resources of a running job, written the same way."""
    comment: str = ""
    """The comment of the job's user (`--comment`)."""
    most_nodes: int = 0
    """The most nodes that the job takes (`-N 1-4`); 0: `node_count`, or as many as its total resources need."""
    node_sizes: str = ""
    """The only node counts that the job takes (`-N 1,2,4`), as Slurm writes them; empty: any of its range."""
    is_total: bool = False
    """Whether the requested resources are a total for all its nodes (`--gpus`, `-n`), not for each node."""
    array_tasks: str = ""
    """The waiting array tasks that its record stands for, as Slurm writes them: `5-9%2`."""
    waiting_tasks: int = 1
    """The number of these tasks; 1 for any other job."""
    most_tasks: int = 0
    """The most tasks of that array that may run at once (`--array=0-9%2`); 0: any number."""
    required: frozenset[NodeName] = frozenset()
    """The nodes that must be among its own (`-w`)."""
    features: str = ""
    """Its `--constraint`."""
    unavailable: frozenset[NodeName] = frozenset()
    """The nodes that Slurm called out of service when it last looked at the job (its ReqNodeNotAvail)."""
    planned: frozenset[NodeName] = frozenset()
    """The nodes that Slurm's backfill keeps for it from `started` on, while it waits."""
    exclusive: bool = False
    """Whether it shares its nodes with no other job (`--exclusive`)."""
    memory_per_cpu: bool = False
    """Whether it asked for memory for each CPU, or has a partition's DefMemPerCPU; not in Slurm's text output."""
    preempted: float | None = None
    """The time since which Slurm preempts it and its grace runs (PreemptTime); None: not preempted, or not known."""

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return the partitions in which it may run (`-p a,b`), all its nodes in one; at least one, perhaps unnamed."""
        return tuple(part for part in self.partition.split(",") if part) or ("",)

    @property
    def deep_check(self) -> str:
        """Return the name of the deep check whose job it is; empty if it is none's."""
        # Slurm lets any user move a waiting job into another partition, also a hidden one that only root may use: only
        # a job of the reservation's own user has the reservation of that name.
        is_one = self.partition.startswith(DEEP_PREFIX) and self.reservation == self.partition
        return self.partition if is_one else ""

    @property
    def shown_id(self) -> str:
        """Return its number as squeue shows it: `7_2`, `7_[5-9%2]`, `7+1` of a heterogeneous job's part.

        The leader's is that of the whole job.
        """
        if self.array_job_id is not None and self.array_task is not None:
            return f"{self.array_job_id}_{self.array_task}"
        if self.array_job_id is not None and self.array_tasks:
            return f"{self.array_job_id}_[{self.array_tasks}]"
        # Slurm numbers the parts in one go, each with the next number
        if self.het_job_id is not None and self.id > self.het_job_id:
            return f"{self.het_job_id}+{self.id - self.het_job_id}"
        return str(self.id)

    @property
    def whole_id(self) -> JobId:
        """Return the id of the heterogeneous job of which this is a part; of any other job its own id."""
        return self.id if self.het_job_id is None else self.het_job_id

    @property
    def is_part(self) -> bool:
        """Return whether it is a heterogeneous job's part, but not the leader, whose commands Slurm applies to all."""
        return self.het_job_id is not None and self.het_job_id != self.id

    @property
    def is_held_by_slurm(self) -> bool:
        """Return whether slurmctld held the job after a failure."""
        return self.reason in SLURMS_HOLDS

    @property
    def is_held(self) -> bool:
        """Return whether a person (or a site's rule) held the job, so that a person will release it."""
        return self.reason in PEOPLES_HOLDS or bool(self.flags & {"REQUEUE_HOLD", "SPECIAL_EXIT"})

    @property
    def is_left_over(self) -> bool:
        """Return whether this part was left behind by its job's other parts: neither requeued nor ended on purpose."""
        theirs = (JobState.PENDING, JobState.CANCELLED, JobState.COMPLETED, JobState.UNKNOWN)
        return self.state not in theirs and not self.is_completing

    @property
    def is_completing(self) -> bool:
        """Return whether Slurm still cleans up after the job."""
        return "COMPLETING" in self.flags

    @property
    def is_expediting(self) -> bool:
        """Return whether Slurm restarts the job by itself as soon as possible."""
        return "EXPEDITING" in self.flags

    @property
    def is_active(self) -> bool:
        """Return whether the job runs or is suspended."""
        return self.state in (JobState.RUNNING, JobState.SUSPENDED)

    @property
    def is_over(self) -> bool:
        """Return whether the job has ended and is cleaned up."""
        return self.state in ENDED and not self.is_completing

    def made_room(self, told_at: float | None) -> bool:
        """Return whether the job, which exited with 0, did so after it was told to make room, and so is not done.

        `told_at` (Unix s) is when it was told; None: never, or not known. False for heterogeneous jobs, whose parts may
        have ended before.
        """
        # Slurm reports whole seconds
        return told_at is not None and self.het_job_id is None and (self.ended or 0.0) >= math.floor(told_at)

    @property
    def is_pending(self) -> bool:
        """Return whether the job waits in the queue."""
        return self.state is JobState.PENDING


def other_parts(job: Job, jobs: Mapping[JobId, Job]) -> tuple[Job, ...]:
    """Return the other parts of a heterogeneous job; empty for any other job."""
    if job.het_job_id is None:
        return ()
    return tuple(jobs[id] for id in sorted(jobs) if jobs[id].het_job_id == job.het_job_id and id != job.id)


_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024, "P": 1024**3}


@lru_cache(maxsize=16384)
def parse_tres(text: str) -> Mapping[str, int]:
    """Return `cpu=48,mem=96G,gres/gpu:l4=2` as numbers (memory in MiB), without unreadable parts."""
    found: dict[str, int] = {}
    for word in text.split(","):
        name, _, amount = word.partition("=")
        unit = _UNITS.get(amount[-1:], 0) if amount[-1:].isalpha() else 1
        try:
            found[name] = int(float(amount[:-1] if amount[-1:].isalpha() else amount) * unit)
        except (ValueError, OverflowError):
            continue
    return MappingProxyType(found)
