"""Events and rules of notifications."""

from dataclasses import replace
from typing import Any

from steward.model.events import Event, Level
from steward.model.notify import ChannelRule, Message
from tests.builders.picture import T0, n

ALL = frozenset(Level)
RULE = ChannelRule(name="ops", levels=ALL, window_s=300.0, per_hour=10)


def an_event(kind: str = "node.fault", node: str = "n2", **fields: Any) -> Event:
    made = Event(at=T0, kind=kind, text=f"{kind} of {node}", level=Level.WARNING, node=n(node) if node else None)
    return replace(made, **fields)


def a_message(**fields: Any) -> Message:
    """Of two lost nodes."""
    last = an_event("node.lost", level=Level.ERROR)
    made = Message(number=7, key="node.lost|n2|", last=last, level=last.level, since=T0 - 60, count=2)
    return replace(made, **fields)
