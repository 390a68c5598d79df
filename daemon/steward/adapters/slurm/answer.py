"""Slurm's JSON, one record after the other: of a hundred megabytes, which ten thousand jobs have, json.loads makes
several times as much, and keeps every other thread from running meanwhile: agents would seem silent."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def read_records(text: str, key: str, each: Callable[[Any], T]) -> tuple[list[T], dict[str, Any]]:
    """What `each` makes of the elements of the list `key` of the one object in `text`, and the rest of that object.

    Raises ValueError or RecursionError for what is no such text, KeyError where it has no `key`, and what `each` does.
    """
    found: list[T] | None = None
    rest: dict[str, Any] = {}
    mark, at = _mark(text, 0, "{")
    while mark != "}":
        name, at = _value(text, at)
        if not isinstance(name, str):
            raise ValueError(f"no name before {at}")
        _, at = _mark(text, at, ":")
        if name == key:
            found, at = _elements(text, at, each)
        else:
            rest[name], at = _value(text, at)
        mark, at = _mark(text, at, ",}")
    if _skip(text, at) != len(text):
        raise ValueError(f"more than one value: extra text at {at}")
    if found is None:
        raise KeyError(key)
    return found, rest


def _elements(text: str, at: int, each: Callable[[Any], T]) -> tuple[list[T], int]:
    """Of the list at `at`, and where it ends."""
    mark, at = _mark(text, at, "[")
    if text.startswith("]", _skip(text, at)):
        return [], _skip(text, at) + 1
    found = []
    while mark != "]":
        value, at = _value(text, at)
        found.append(each(value))
        mark, at = _mark(text, at, ",]")
    return found, at


def _value(text: str, at: int) -> tuple[Any, int]:
    return _DECODER.raw_decode(text, _skip(text, at))


def _mark(text: str, at: int, known: str) -> tuple[str, int]:
    """The next character, which must be one of `known`, and what is behind it."""
    at = _skip(text, at)
    mark = text[at : at + 1]
    if not mark or mark not in known:
        raise ValueError(f"{mark!r} at {at}, not one of {known!r}")
    return mark, at + 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
