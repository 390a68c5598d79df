"""Slurm's own test of a pending job: when it would start, on which nodes, and what it lacks."""

from dataclasses import dataclass
from enum import Enum

from steward.model.ids import JobId, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question when a job would start if it were first in the queue.

    The job gets at least `nodes` nodes (0: its own count), and none of `without`. The nodes of `through`, a reservation
    of Steward's, count as available to every job.
    """

    job: JobId
    nodes: int = 0
    without: frozenset[NodeName] = frozenset()
    reservation: str = ""


class FitState(Enum):
    """The answer's kind.

    LATER: after running jobs have ended. NEVER: not on the nodes in service. UNKNOWN: Slurm was not asked, or did not
    answer.
    """

    NOW = "now"
    LATER = "later"
    NEVER = "never"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Slurm's answer: the job would start in `in_s` seconds on `nodes`; `at` is the time of the question (Unix s).

    `missing` names the one request without which the job would start now (`features`); empty if no single one is known.
    """

    state: FitState
    at: float = 0.0
    in_s: float = 0.0
    nodes: frozenset[NodeName] = frozenset()
    missing: str = ""

    @property
    def is_known(self) -> bool:
        """Return whether Slurm answered."""
        return self.state is not FitState.UNKNOWN

    @property
    def starts(self) -> bool:
        """Return whether the job would start now."""
        return self.state is FitState.NOW


UNKNOWN = Fit(state=FitState.UNKNOWN)
MISSING = {
    "licenses": "a license that it asks for is in use",
    "features": "too few nodes with its features (--constraint) are free",
    "gres": "too few nodes with its GRES (type and count) are free",
    "nodelist": "a node that it names (--nodelist) is not free",
    "memory": "too few nodes with enough free memory",
}
"""Sentences for people, by the request (`missing`) without which the job would start."""
