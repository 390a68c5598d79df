"""Which events somebody wants to see."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Json = dict[str, Any]
LEVELS = ("info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events are shown: of one node, of kinds that begin so, at least of a level. Empty: all."""

    node: str = ""
    kind: str = ""
    level: str = ""

    def query(self) -> str:
        said = {"node": self.node, "kind": self.kind, "level": self.level}
        return "".join(f"&{name}={quote(word, safe='')}" for name, word in said.items() if word)

    def takes(self, event: Json) -> bool:
        if self.node and event["node"] != self.node:
            return False
        if self.level and LEVELS.index(event["level"]) < LEVELS.index(self.level):
            return False
        return str(event["kind"]).startswith(self.kind)
