"""Convert our values to JSON: dataclasses and mappings to objects, enums to their values, sets to sorted lists."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from starlette.responses import JSONResponse

from steward.model.access import PRIVATE
from steward.model.agent_action import Action
from steward.model.events import Event
from steward.model.text import json_text
from steward.workflows.journal import kind_of

_SHOWN: dict[type, tuple[str, ...] | None] = {}
"""The public fields of each type seen so far; None for a type that is no dataclass."""


def shape(value: Any) -> Any:
    """Return a value as JSON, without PRIVATE fields. Raises TypeError if its type has no JSON shape."""
    shown = _shown(type(value))
    if shown is not None:
        return {name: shape(getattr(value, name)) for name in shown}
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Enum():
            return value.value
        case Mapping():
            return {str(key): shape(item) for key, item in value.items()}
        case list() | tuple():
            return [shape(item) for item in value]
        case set() | frozenset():
            return sorted((shape(item) for item in value), key=str)
    raise TypeError(f"{type(value).__name__} has no JSON shape")


def _shown(kind: type) -> tuple[str, ...] | None:
    """Return the public fields of a dataclass; None for another type."""
    if kind not in _SHOWN:
        shown = tuple(one.name for one in fields(kind) if one.metadata != PRIVATE) if is_dataclass(kind) else None
        _SHOWN[kind] = shown
    return _SHOWN[kind]


def action_shape(action: Action) -> dict[str, Any]:
    """Return an action as JSON, with its kind."""
    return {"action": kind_of(action), **shape(action)}


def event_shape(number: int, event: Event) -> dict[str, Any]:
    """Return an event as JSON, with its sequence number."""
    return {"seq": number, **shape(event), "data": dict(event.data)}


class JsonAnswer(JSONResponse):
    """A value as ASCII JSON: control and bidi characters are escaped, which every JSON reader undoes."""

    def render(self, content: Any) -> bytes:
        """Return the body of the answer."""
        return json_text(content, separators=(",", ":")).encode()
