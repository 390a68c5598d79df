"""A Slurm reservation: nodes that only some users may use for a while."""

from dataclasses import dataclass

from steward.model.deep_command import PREFIX
from steward.model.ids import NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """As Slurm has it. Times are Unix seconds. `starts` in the past: it holds its nodes now."""

    name: str
    nodes: frozenset[NodeName]
    starts: float = 0.0
    ends: float = 0.0

    @property
    def is_ours(self) -> bool:
        """Made for a deep check: also what is left of one, a partition whose reservation is over."""
        return self.name.startswith(PREFIX)
