"""Shape answers by the model. An answer that does not fit is our own mistake, and is not sent."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StructureShape


class Misshapen(Exception):
    """A handler's answer does not fit the model; the text names the member."""


def render(shape: Shape | None, answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the body of an answer; None for an operation without output. Times are Unix seconds.

    A member that is None is left out; so is an empty list if the model requires at least one item. Raises Misshapen for
    an unknown member, a missing required one, a wrong type or an unknown enum value.
    """
    if shape is None:
        if answer:
            raise Misshapen(f"the operation has no output, but {sorted(answer)} was given")
        return None
    rendered: dict[str, Any] = _structure(shape, answer, shape.name)
    return rendered


def _value(shape: Shape, value: Any, place: str) -> Any:
    return _WRITERS[shape.type_name](shape, value, place)


def _structure(shape: StructureShape, value: Any, place: str) -> Any:
    given = {name: member for name, member in _need(Mapping, value, place).items() if member is not None}
    if unknown := sorted(given.keys() - shape.members.keys()):
        raise Misshapen(f"{place} has no member {unknown[0]}")
    if missing := [name for name in shape.required_members if name not in given]:
        raise Misshapen(f"{place}.{missing[0]} is required but missing")
    return {
        name: _value(member, given[name], f"{place}.{name}")
        for name, member in shape.members.items()
        if name in given and not _is_left_out(member, given[name])
    }


def _is_left_out(shape: Shape, value: Any) -> bool:
    return shape.type_name == "list" and not value and shape.metadata.get("min", 0) > 0


def _list(shape: ListShape, value: Any, place: str) -> Any:
    items = _need(list | tuple, value, place)
    return [_value(shape.member, item, f"{place}[{i}]") for i, item in enumerate(items)]


def _map(shape: MapShape, value: Any, place: str) -> Any:
    pairs = _need(Mapping, value, place).items()
    return {_text(shape.key, key, place): _value(shape.value, item, f"{place}['{key}']") for key, item in pairs}


def _text(shape: Shape, value: Any, place: str) -> Any:
    words = shape.metadata.get("enum")
    if words and value not in words:
        raise Misshapen(f"{place} is '{value}', which is not one of {', '.join(words)}")
    return _need(str, value, place)


def _integer(_shape: Shape, value: Any, place: str) -> Any:
    return _need(int, value, place)


def _number(_shape: Shape, value: Any, place: str) -> Any:
    if not math.isfinite(_need(int | float, value, place)):
        raise Misshapen(f"{place} is {value}, which JSON cannot say")
    return value


def _timestamp(shape: Shape, value: Any, place: str) -> Any:
    return round(float(_number(shape, value, place)), 3)


def _boolean(_shape: Shape, value: Any, place: str) -> Any:
    if not isinstance(value, bool):
        raise Misshapen(f"{place} is a {type(value).__name__}, not a bool")
    return value


def _need(kind: Any, value: Any, place: str) -> Any:
    """Return the value. Raises Misshapen if it is not of this kind; a bool is not an int here."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Misshapen(f"{place} is a {type(value).__name__}, not a {getattr(kind, '__name__', kind)}")
    return value


_WRITERS: Mapping[str, Callable[[Any, Any, str], Any]] = {
    "structure": _structure,
    "list": _list,
    "map": _map,
    "string": _text,
    "integer": _integer,
    "long": _integer,
    "float": _number,
    "double": _number,
    "timestamp": _timestamp,
    "boolean": _boolean,
}
