"""What Slurm's own test says of a job: when it would start, where, and what it lacks."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import JobId, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """When would this job start if it were first in the queue, on at least `nodes` nodes (0: as many as Slurm says of
    it) and on none of `without`? The nodes of `through`, a reservation of ours, count as anybody's."""

    job: JobId
    nodes: int = 0
    without: frozenset[NodeName] = frozenset()
    through: str = ""


class FitState(Enum):
    """LATER: when jobs that run have ended. NEVER: not on the nodes that are in service. UNKNOWN: Slurm was not asked,
    or gave no answer."""

    NOW = "now"
    LATER = "later"
    NEVER = "never"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The answer. `at` is when it was asked for (Unix s), `in_s` in how many seconds the job would start, `nodes`
    where. `missing` names the thing without which the job would start now (`features`); empty: there is no single one,
    or nobody knows."""

    state: FitState
    at: float = 0.0
    in_s: float = 0.0
    nodes: frozenset[NodeName] = frozenset()
    missing: str = ""

    @property
    def is_known(self) -> bool:
        return self.state is not FitState.UNKNOWN

    @property
    def starts(self) -> bool:
        """Whether it would start now."""
        return self.state is FitState.NOW


UNKNOWN = Fit(state=FitState.UNKNOWN)
MISSING = {
    "licenses": "a license that it asks for is in use",
    "features": "too few nodes with its features (--constraint) are free",
    "gres": "too few nodes with its GRES (type and count) are free",
    "nodelist": "a node that it names (--nodelist) is not free",
    "switches": "too few nodes that are free belong together as it asks (--switches, --contiguous)",
    "memory": "too few nodes with enough free memory",
}
"""For people, by what Slurm's test was asked without."""
