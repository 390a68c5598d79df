"""What the ranks of a job's step do, as the kernel and the GPUs of their node show it, without a word of the job."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from steward.model.bounds import First, Given, Job, Printable, Range, Seconds, Sparse, StepName
from steward.model.ids import NodeName

_LONGEST_S = 1e9


class Doing(Enum):
    """What a rank does."""

    UNKNOWN = "unknown"
    """It cannot be told, or not yet."""
    WORKS = "works"
    """Its GPU works, or data flow, or it paused for a moment only."""
    BUSY = "busy"
    """It uses CPU; whether it works or waits in a loop cannot be told."""
    SPINS = "spins"
    """Its GPU is in use and neither draws power nor moves memory: a kernel waits in a loop."""
    WAITS = "waits"
    """It uses next to nothing."""
    STOPPED = "stopped"
    """A process of it is stopped by a signal."""
    BLOCKED = "blocked"
    """A process of it waits in the kernel and cannot be interrupted."""
    GONE = "gone"
    """It has ended, and its step goes on."""


ACTIVE = frozenset({Doing.WORKS, Doing.BUSY})
STILL = frozenset(Doing) - ACTIVE - {Doing.UNKNOWN}
"""What ranks do that do no work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """The ranks of a step on one node that do the same; `rank` is the first of them, with its process."""

    doing: Doing
    ranks: Annotated[int, Range(1, 2**20)]
    for_s: Annotated[float, Seconds(_LONGEST_S)]
    """For how long each of them has done so; of ranks that may work, for how long none of them was stopped."""
    rank: Annotated[int, Range(high=2**32 - 1)]
    pid: Annotated[int, Range(high=2**32 - 1), Sparse()] = 0
    """The process to look at; 0: it has none."""
    waits_in: Annotated[str, Printable(32), Sparse()] = ""
    """The kernel's function in which that process waits; empty: not known."""
    usual_s: Annotated[float, Seconds(_LONGEST_S), Sparse()] = 0.0
    """The longest time for which one of them did not work and then went on by itself; 0: none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSight:
    """The ranks of one step of a job on a node, at `at` (Unix s on the head's clock)."""

    job: Job
    step: StepName
    node: Annotated[NodeName, Given()]
    step_s: Annotated[float, Seconds(_LONGEST_S)]
    """For how long the step had run."""
    groups: Annotated[tuple[RankGroup, ...], First(len(Doing))]
    at: Annotated[float, Given()] = 0.0

    def is_of_run(self, started: float | None) -> bool:
        """Return whether the step belongs to a run that began at `started` (Unix s, whole seconds)."""
        return started is not None and self.at - self.step_s >= started - _CLOCKS_S

    @property
    def is_still(self) -> bool:
        """Return whether some of its ranks do no work."""
        return any(group.doing in STILL for group in self.groups)


_CLOCKS_S = 5.0
"""How far slurmctld's clock and a node's report may be apart."""
