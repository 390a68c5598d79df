"""Happenings that people and tools read: one typed record each, kept in the store and followed by the CLI."""

from dataclasses import dataclass, field
from enum import Enum

from steward.model.ids import CaseId, JobId, NodeName


class Level(Enum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """The higher the graver."""
        return _RANK[self]


_RANK = {level: rank for rank, level in enumerate(Level)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`kind` is stable and dotted (`case.opened`, `job.resumed`, `node.lost`, `action.failed`, ...)."""

    at: float
    kind: str
    text: str
    level: Level = Level.INFO
    node: NodeName | None = None
    job: JobId | None = None
    case: CaseId | None = None
    data: tuple[tuple[str, str], ...] = field(default=())
