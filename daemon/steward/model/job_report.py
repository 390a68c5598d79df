"""Agents' reports on opted-in jobs, and the facts about its past that a resumed job gets."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from steward.model.access import PRIVATE
from steward.model.bounds import (
    Age,
    Called,
    Count,
    First,
    Given,
    Job,
    Node,
    Printable,
    Range,
    Seconds,
    Sparse,
    StepName,
    Task,
    Uid,
    Uncut,
    WaitStatus,
)
from steward.model.ids import NodeName

_LONGEST_S = 1e9
_Step = Annotated[int | None, Range(high=10**18)]
_Moment = Annotated[float | None, Age(least=1e-3, most=_LONGEST_S, digits=3), Sparse()]
_Names = Annotated[tuple[Annotated[Node, Called("name")], ...], First(256)]
_Path = Annotated[str, Uncut(255)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskExit:
    """A failed task of a step. `status` is a raw wait status, `at` Unix s on the head's clock."""

    job: Job
    restart: Count
    step: StepName
    node: Annotated[NodeName, Given()]
    task: Task
    status: WaitStatus
    at: Annotated[float, Age(), Called("ago")]


AT_ONCE_S = 2.0
"""A script that ends within this time after a step or task ended because of it."""


def exit_code(status: int) -> int:
    """Return the exit code of a raw wait status; a signal counts as 128 + signal, as srun and shells report it."""
    return 128 + number if (number := status & 0x7F) else status >> 8 & 0xFF


GRES_LOST = "slurm.gres"
"""The sign of a step that Slurm refused because of the job's devices."""


class Lean(Enum):
    """The cause that a line of a job's log suggests; never enough to drain a node, because users can print anything."""

    INFRA = "infra"
    STORAGE = "storage"
    CASCADE = "cascade"
    AMBIGUOUS = "ambiguous"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSign:
    """A known line near the end of a job's output. `order` is its place in the file: the first line counts most."""

    sign: Annotated[str, Printable(64)]
    lean: Lean
    strong: bool
    line: Annotated[str, Printable(200)] = field(metadata=PRIVATE)
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a job, as one of its nodes reports it. Times are Unix s on the head's clock; None: not known.

    `pace_s` is its usual longest time between two steps (learnt by the agent; None: too few steps yet).
    """

    job: Job
    restart: Count
    node: Annotated[NodeName, Given()]
    step: _Step = None
    stepped: _Moment = None
    pace_s: Annotated[float | None, Seconds(_LONGEST_S), Sparse()] = None
    checkpoint: Annotated[_Path, Sparse()] = ""
    checkpoint_step: Annotated[_Step, Sparse()] = None
    checkpointed: _Moment = None
    first_step: _Moment = None
    """The time of this run's first step."""
    first: Annotated[_Step, Sparse()] = None
    """The number of this run's first step; after retries within one allocation, the last retry's first step."""
    at: Annotated[float, Given()] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeFacts:
    """The facts in a resumed job's environment (`STEWARD_RESUME_COUNT`, ...), confidential to the user `uid`."""

    uid: Uid
    resumes: Count
    culprits: _Names = ()
    excluded: _Names = ()
    reason: Annotated[str, Printable(200)] = ""
    checkpoint: _Path = ""
    checkpoint_step: int | None = None
    resumed: Annotated[str, Printable(200)] = ""
    """One line for the job's own output: which resume this run is, and why; empty if it is no resume."""
