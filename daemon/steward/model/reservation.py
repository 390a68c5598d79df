"""A Slurm reservation: nodes that only some users may use for a while."""

from dataclasses import dataclass

from steward.model.deep import DEEP_PREFIX
from steward.model.ids import JobId, NodeName

KEEP_PREFIX = "steward-keep-"
"""The prefix of reservations that keep the sound nodes of a lost run for its job, whose id follows."""
HOT_PREFIX = "steward-hot-"
"""The prefix of reservations that keep idle nodes of a group, whose name follows, for jobs that are resumed."""


def keep_name(job: JobId) -> str:
    return f"{KEEP_PREFIX}{job}"


def hot_name(group: str) -> str:
    return f"{HOT_PREFIX}{group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A reservation as Slurm has it. Times are Unix seconds. `starts` in the past: it holds its nodes now. `cpus` are
    those that it has of its nodes; 0: not told, all. `is_magnetic`: its users' jobs need not name it."""

    name: str
    nodes: frozenset[NodeName]
    starts: float = 0.0
    ends: float = 0.0
    cpus: int = 0
    is_magnetic: bool = False

    @property
    def is_ours(self) -> bool:
        """Made for a deep check: also what is left of one, a partition whose reservation is over."""
        return self.name.startswith(DEEP_PREFIX)

    @property
    def kept_for(self) -> JobId | None:
        """The job for which we keep the nodes of its lost run; None: it is not such a reservation."""
        tail = self.name.removeprefix(KEEP_PREFIX)
        return JobId(int(tail)) if self.name.startswith(KEEP_PREFIX) and tail.isascii() and tail.isdigit() else None

    @property
    def hot_group(self) -> str:
        """The group whose hot spares it keeps; empty: it is not such a reservation."""
        return self.name.removeprefix(HOT_PREFIX) if self.name.startswith(HOT_PREFIX) else ""
