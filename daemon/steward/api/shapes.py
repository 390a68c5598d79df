"""Our values as JSON: dataclasses become objects, enums their words, mappings objects, sets sorted lists."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from steward.model.access import PRIVATE
from steward.model.action import Action
from steward.model.events import Event
from steward.workflows.subject import kind_of


def shape(value: Any) -> Any:
    """Without what is PRIVATE. Raises TypeError for what has no JSON shape."""
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
    if is_dataclass(value):
        return {one.name: shape(getattr(value, one.name)) for one in fields(value) if one.metadata != PRIVATE}
    raise TypeError(f"{type(value).__name__} has no JSON shape")


def action_shape(action: Action) -> dict[str, Any]:
    """An action with its kind."""
    return {"action": kind_of(action), **shape(action)}


def event_shape(number: int, event: Event) -> dict[str, Any]:
    """An event with its sequence number."""
    return {"seq": number, **shape(event), "data": dict(event.data)}
