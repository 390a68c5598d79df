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


class LogState(Enum):
    """What the output of a step says by a rule that its job brought along."""

    WATCHED = "watched"
    """The job's rules are read and in force; of all of them, not of one."""
    BROKEN = "broken"
    """The rules, or one of them, cannot be used."""
    SLOW = "slow"
    """A number in the output is beyond the rule's bound."""
    LATE = "late"
    """A line did not come, or not again, within the rule's time."""
    FAULT = "fault"
    """A line came that the rule calls a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWord:
    """What a step's output says by a rule; nothing is said of a rule that is kept."""

    state: LogState
    rule: Annotated[str, Printable(64), Sparse()] = ""
    """The rule's name; empty: all rules of the job."""
    for_s: Annotated[float, Seconds(_LONGEST_S)] = 0.0
    """For how long: of a line that did not come, since the last one or the step's start."""
    limit_s: Annotated[float, Seconds(_LONGEST_S), Sparse()] = 0.0
    """How long the line may take."""
    rank: Annotated[int | None, Range(high=2**32 - 1)] = None
    """The rank that writes the file; None: the file is the script's."""
    text: Annotated[str, Printable(160), Sparse()] = ""
    """What is wrong, or how many rules there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowRank:
    """A rank whose GPU has been slowed down by its hardware, while it was in use, for `for_s` (s)."""

    rank: Annotated[int, Range(high=2**32 - 1)]
    gpu: Annotated[str, Printable(64)]
    for_s: Annotated[float, Seconds(_LONGEST_S)]
    why: Annotated[str, Printable(64)]
    mhz: Annotated[int, Range(high=10**6), Sparse()] = 0
    """Its clock now; 0: not known."""
    others_mhz: Annotated[int, Range(high=10**6), Sparse()] = 0
    """The usual clock of the step's other GPUs on the node now; 0: not known, or there are none."""


MOST_SLOW = 16
"""The most slow ranks of a step on a node that are told."""
MOST_RULES = 16
"""The most rules that a job may bring along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSight:
    """The ranks of one step of a job on a node, at `at` (Unix s on the head's clock)."""

    job: Job
    step: StepName
    node: Annotated[NodeName, Given()]
    step_s: Annotated[float, Seconds(_LONGEST_S)]
    """For how long the step had run."""
    groups: Annotated[tuple[RankGroup, ...], First(len(Doing))]
    log: Annotated[tuple[LogWord, ...], First(MOST_RULES + 1), Sparse()] = ()
    """What its output says by the job's own rules; empty: the job has none, or its output goes elsewhere."""
    slow: Annotated[tuple[SlowRank, ...], First(MOST_SLOW), Sparse()] = ()
    at: Annotated[float, Given()] = 0.0

    def is_of_run(self, started: float | None) -> bool:
        """Return whether the step belongs to a run that began at `started` (Unix s, whole seconds)."""
        return started is not None and self.at - self.step_s >= started - _CLOCKS_S

    @property
    def is_notable(self) -> bool:
        """Return whether some of its ranks do no work or are slow, or its job's own rules find something."""
        has_still = any(group.doing in STILL for group in self.groups)
        return has_still or bool(self.slow) or any(word.state is not LogState.WATCHED for word in self.log)


_CLOCKS_S = 5.0
"""How far slurmctld's clock and a node's report may be apart."""
