"""Which events somebody wants to see: the same choice at the head and in those who follow it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

LEVELS = ("info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Events of one node or job (`17`, `17_1`), of kinds that begin so, at least of a level, not before `since`
    (Unix s). Empty or 0: all."""

    node: str = ""
    job: str = ""
    kind: str = ""
    level: str = ""
    since: float = 0.0

    def query(self) -> str:
        since = f"{self.since:.3f}" if self.since else ""
        said = {"node": self.node, "job": self.job, "kind": self.kind, "level": self.level, "since": since}
        return "".join(f"&{name}={quote(word, safe='')}" for name, word in said.items() if word)

    def takes(self, event: dict[str, Any]) -> bool:
        if self.node and event["node"] != self.node:
            return False
        if self.job.isdigit() and str(event["job"]) != self.job:
            return False
        if self.level and LEVELS.index(event["level"]) < LEVELS.index(self.level):
            return False
        if self.since and event["at"] < self.since:
            return False
        return str(event["kind"]).startswith(self.kind)
