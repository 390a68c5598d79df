"""A Slurm reservation: nodes that only some users may use for a while."""

from dataclasses import dataclass

from steward.model.deep import DEEP_PREFIX
from steward.model.ids import JobId, NodeName

KEEP_PREFIX = "steward-keep-"
"""The prefix, before a job id, of reservations that keep the sound nodes of the job's lost run for its next one."""
HOT_PREFIX = "steward-hot-"
"""The prefix, before a group's name, of reservations that keep idle nodes of the group for resumed jobs."""


def keep_name(job: JobId) -> str:
    """Return the name of the reservation that keeps nodes for this job."""
    return f"{KEEP_PREFIX}{job}"


def hot_name(group: str) -> str:
    """Return the name of the reservation that keeps hot spares of this group."""
    return f"{HOT_PREFIX}{group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A reservation as Slurm reports it. Times are Unix seconds.

    A reservation whose `starts` is past holds its nodes now. `cpus` is how many CPUs of its nodes are reserved (0: not
    reported, all). `is_magnetic`: jobs of its users need not name it.
    """

    name: str
    nodes: frozenset[NodeName]
    starts: float = 0.0
    ends: float = 0.0
    cpus: int = 0
    is_magnetic: bool = False

    @property
    def is_ours(self) -> bool:
        """Return whether it was created for a deep check (a partition whose reservation has ended counts, too)."""
        return self.name.startswith(DEEP_PREFIX)

    @property
    def kept_for(self) -> JobId | None:
        """Return the job whose lost run's nodes it keeps; None for any other reservation."""
        tail = self.name.removeprefix(KEEP_PREFIX)
        return JobId(int(tail)) if self.name.startswith(KEEP_PREFIX) and tail.isascii() and tail.isdigit() else None

    @property
    def hot_group(self) -> str:
        """Return the group whose hot spares it keeps; empty for any other reservation."""
        return self.name.removeprefix(HOT_PREFIX) if self.name.startswith(HOT_PREFIX) else ""
