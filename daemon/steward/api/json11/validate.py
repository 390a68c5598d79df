"""Validate a request's members by the model. All errors are reported at once."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import regex
from botocore.model import ListShape, MapShape, Shape, StructureShape

from steward.api.json11.errors import ApiError, invalid
from steward.model.text import printable

_SHOWN = 64
_MAX_TOLD = 20
_LAST_SECOND = 253402300799  # the end of the year 9999, the last that datetime can hold
_MAX_MATCHED = 8192
_INT_BITS = {"integer": 31, "long": 63}


def read(shape: Shape, members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input without null members, timestamps as Unix seconds. Raises ApiError (ValidationException)."""
    findings = _Findings()
    found: dict[str, Any] = _structure(shape, members, "", findings)
    if findings.count:
        raise findings.error()
    return found


def member_name(name: str) -> str:
    """Return a member's name as the service writes it in messages: `instanceGroups` for `InstanceGroups`."""
    return name[:1].lower() + name[1:]


class _Findings:
    """The errors found: all are counted, the first `_MAX_TOLD` are reported."""

    def __init__(self) -> None:
        self.count = 0
        self._told: list[str] = []

    def add(self, value: Any, place: str, broken: Iterable[str]) -> None:
        for constraint in broken:
            self.count += 1
            if len(self._told) < _MAX_TOLD:
                self._told.append(f"Value {_shown(value)} at '{place}' failed to satisfy constraint: {constraint}")

    def error(self) -> ApiError:
        plural = "" if self.count == 1 else "s"
        return invalid(f"{self.count} validation error{plural} detected: {'; '.join(self._told)}")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    return f"'{printable(value if isinstance(value, str) else json.dumps(value), _SHOWN)}'"


def _value(shape: Shape, value: Any, place: str, findings: _Findings) -> Any:
    if value is None:
        findings.add(value, place, ["Member must not be null"])
        return None
    return _READERS[shape.type_name](shape, value, place, findings)


def _structure(shape: StructureShape, value: Any, place: str, findings: _Findings) -> Any:
    if not isinstance(value, dict):
        findings.add(value, place, ["Member must be a structure"])
        return None
    given = {name: member for name, member in value.items() if member is not None}
    for name in shape.required_members:
        if name not in given:
            findings.add(None, _under(place, name), ["Member must not be null"])
    for name in sorted(given.keys() - shape.members.keys()):
        findings.add(given[name], _under(place, printable(name, _SHOWN)), ["Member is not known"])
    if shape.is_tagged_union and len(given) != 1:
        findings.add(value, place, [f"Member must have exactly one of: {', '.join(map(member_name, shape.members))}"])
    return {
        name: _value(member, given[name], _under(place, name), findings)
        for name, member in shape.members.items()
        if name in given
    }


def _list(shape: ListShape, value: Any, place: str, findings: _Findings) -> Any:
    if not isinstance(value, list):
        findings.add(value, place, ["Member must be a list"])
        return None
    broken = list(of_length(shape, len(value)))
    findings.add(value, place, broken)
    if broken:
        return None
    return [_value(shape.member, item, f"{place}.{i}.member", findings) for i, item in enumerate(value, 1)]


def _map(shape: MapShape, value: Any, place: str, findings: _Findings) -> Any:
    if not isinstance(value, dict):
        findings.add(value, place, ["Member must be a map"])
        return None
    broken = list(of_length(shape, len(value)))
    findings.add(value, place, broken)
    if broken:
        return None
    for key in value:
        findings.add(key, f"{place}.key", of_text(shape.key, key))
    return {
        key: _value(shape.value, item, f"{place}.{printable(key, _SHOWN)}.value", findings)
        for key, item in value.items()
    }


def _text(shape: Shape, value: Any, place: str, findings: _Findings) -> Any:
    if isinstance(value, str):
        findings.add(value, place, of_text(shape, value))
    else:
        findings.add(value, place, ["Member must be a string"])
    return value


def _integer(shape: Shape, value: Any, place: str, findings: _Findings) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        findings.add(value, place, of_number(shape, value))
    else:
        findings.add(value, place, ["Member must be an integer"])
    return value


def _number(shape: Shape, value: Any, place: str, findings: _Findings) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        findings.add(value, place, of_number(shape, value))
    else:
        findings.add(value, place, ["Member must be a number"])
    return value


def _timestamp(_shape: Shape, value: Any, place: str, findings: _Findings) -> Any:
    """Return a timestamp as Unix seconds; None, with an error in `findings`, if it is not one."""
    # A comparison with NaN is false: so infinity and NaN are refused, too.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= _LAST_SECOND:
        findings.add(value, place, [f"Member must be a time in Unix seconds, from 0 to {_LAST_SECOND}"])
        return None
    return float(value)


def _boolean(_shape: Shape, value: Any, place: str, findings: _Findings) -> Any:
    if not isinstance(value, bool):
        findings.add(value, place, ["Member must be a boolean"])
    return value


def _under(place: str, name: str) -> str:
    return f"{place}.{member_name(name)}" if place else member_name(name)


_READERS: Mapping[str, Callable[[Any, Any, str, _Findings], Any]] = {
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


def of_text(shape: Shape, text: str) -> Iterator[str]:
    """Yield the constraints that a text violates."""
    # Length first: a pattern is matched only against a text of an allowed length.
    too_long_or_short = list(of_length(shape, len(text)))
    yield from too_long_or_short
    words = shape.metadata.get("enum")
    if words and text not in words:
        yield f"Member must satisfy enum value set: [{', '.join(words)}]"
    pattern = shape.metadata.get("pattern")
    if pattern and not too_long_or_short and not _matches(pattern, text):
        yield f"Member must satisfy regular expression pattern: {pattern}"


def of_number(shape: Shape, number: float) -> Iterator[str]:
    """Yield the constraints that a number violates: the model's range and the range of the number's type."""
    bits = _INT_BITS.get(shape.type_name)
    lowest = shape.metadata.get("min", None if bits is None else -(2**bits))
    highest = shape.metadata.get("max", None if bits is None else 2**bits - 1)
    if bits is None and not _is_finite(number):
        yield "Member must be a finite number"
    elif lowest is not None and number < lowest:
        yield f"Member must have value greater than or equal to {lowest}"
    elif highest is not None and number > highest:
        yield f"Member must have value less than or equal to {highest}"


def _is_finite(number: float) -> bool:
    """Return whether a number is finite as a double; False for an integer that is too large for one."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def of_length(shape: Shape, length: int) -> Iterator[str]:
    """Yield the constraints that the length of a text, a list or a map violates."""
    shortest, longest = shape.metadata.get("min"), shape.metadata.get("max")
    if shortest is not None and length < shortest:
        yield f"Member must have length greater than or equal to {shortest}"
    if longest is not None and length > longest:
        yield f"Member must have length less than or equal to {longest}"


def _matches(pattern: str, text: str) -> bool:
    return len(text) <= _MAX_MATCHED and _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> "regex.Pattern[str]":
    """Return a compiled pattern of the model."""
    # The patterns are Java's, where `\d` and `\s` mean ASCII; `\p{L}` is Unicode in both.
    return regex.compile(pattern, 0 if "\\p{" in pattern else regex.ASCII)
