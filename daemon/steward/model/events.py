"""Events for people and tools: one typed record each, kept in the store, filtered and followed by the CLI.

The head and a follower filter alike.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import quote

from steward.model.ids import CaseId, JobId, NodeName


class Level(Enum):
    """The level of an event."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """Return a number that is higher for a more severe level."""
        return _RANK[self]


LEVELS = tuple(level.value for level in Level)
"""The words for the levels, the least severe first."""
_RANK = {level: rank for rank, level in enumerate(Level)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event; `kind` is stable and dotted (`case.opened`, `job.resumed`), one of `model/event_kinds.py`."""

    at: float
    kind: str
    text: str
    level: Level = Level.INFO
    node: NodeName | None = None
    job: JobId | None = None
    case: CaseId | None = None
    data: tuple[tuple[str, str], ...] = field(default=())
    """What else goes with it, such as `group`; `shown_id` is its job's number where squeue shows another than `job`."""

    @property
    def shown_id(self) -> str:
        """Return its job's number as squeue shows it; empty if it has none."""
        return dict(self.data).get("shown_id", str(self.job or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """The filter of events: node, job (`17`, `17_1`), prefix of the kind, least level, and oldest time (Unix s).

    Empty or 0: all.
    """

    node: str = ""
    job: str = ""
    kind: str = ""
    level: str = ""
    since: float = 0.0

    def query(self) -> str:
        """Return the filter as further parameters of a URL's query."""
        since = f"{self.since:.3f}" if self.since else ""
        said = {"node": self.node, "job": self.job, "kind": self.kind, "level": self.level, "since": since}
        return "".join(f"&{name}={quote(word, safe='')}" for name, word in said.items() if word)

    def takes(self, event: dict[str, Any]) -> bool:
        """Return whether the event matches the filter; a job such as `17_1`, no plain number, is not compared."""
        if self.node and event["node"] != self.node:
            return False
        if self.job.isdigit() and str(event["job"]) != self.job:
            return False
        if self.level and LEVELS.index(event["level"]) < LEVELS.index(self.level):
            return False
        if self.since and event["at"] < self.since:
            return False
        return str(event["kind"]).startswith(self.kind)
