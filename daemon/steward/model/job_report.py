"""What agents tell of opted-in jobs on their nodes, and what a resumed job is told of its past."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from steward.model.access import PRIVATE
from steward.model.bounds import Printable
from steward.model.ids import JobId, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskExit:
    """A task of a step that ended badly. `status` is a raw wait status, `at` Unix s on the head's clock."""

    job: JobId
    restart: int
    step: str
    node: NodeName
    task: int
    status: int
    at: float


GRES_LOST = "slurm.gres"
"""The sign of a step that Slurm refused because of the job's devices."""


class Lean(Enum):
    """What a line of a job's log speaks for. Never enough to take a node out: users can print anything."""

    INFRA = "infra"
    STORAGE = "storage"
    CASCADE = "cascade"
    AMBIGUOUS = "ambiguous"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSign:
    """A line near the end of a job's output that is known. `order` is its place in the file: the first counts most."""

    sign: Annotated[str, Printable(64)]
    lean: Lean
    strong: bool
    line: Annotated[str, Printable(200)] = field(metadata=PRIVATE)
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job is, as one of its nodes tells. Times are Unix s on the head's clock; None where not known.

    `pace_s` is the longest time between two steps that is usual for it (learnt by the agent; None: too few yet).
    `busy` is False where its processes used next to no CPU, GPU and network for `quiet_s`.
    """

    job: JobId
    restart: int
    node: NodeName
    step: int | None = None
    stepped: float | None = None
    pace_s: float | None = None
    checkpoint: str = ""
    checkpoint_step: int | None = None
    checkpointed: float | None = None
    first_step: float | None = None
    """When this run made its first step."""
    first: int | None = None
    """That step's number; of a run within an allocation, that of its last go."""
    quiet_s: float = 0.0
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeFacts:
    """What a resumed job finds in its environment (`STEWARD_RESUME_COUNT`, ...); nobody's but `uid`'s to know."""

    uid: int
    resumes: int
    culprits: tuple[NodeName, ...] = ()
    excluded: tuple[NodeName, ...] = ()
    reason: str = ""
    checkpoint: str = ""
    checkpoint_step: int | None = None
    resumed: str = ""
    """One line for the job's own output: which resume this run is and why; empty: it is none."""
