"""Memory as rows: one row for each case, job, incident, ... so that a commit writes only what changed."""

import json
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from steward.adapters.codec import codec, decode, encode
from steward.model.memory import Memory

_HINTS = typing.get_type_hints(Memory)
_SECTIONS = tuple(field.name for field in fields(Memory))
_NO_KEY = ""
_ABSENT = object()
TOGETHER = (
    frozenset({"cluster", "groups", "slots", "gates", "ended", "strays", "operations", "client_tokens"}),
    frozenset({"quotas", "scheduler", "quota_jobs", "quota_writes"}),
)
"""Groups of sections that are read whole or not at all: without a lost slot its machine would be ended, with its jobs.

Without the whole group nothing is ended, and a person sets it again.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The rows to write. `section` is a field of Memory; `key` the JSON text of a key in it, empty if it has none."""

    put: tuple[tuple[str, str, str], ...]
    gone: tuple[tuple[str, str], ...]


def changes(before: Memory, after: Memory) -> Changes:
    """Return the changes from one memory to the next. Unchanged values cost only a comparison."""
    put: list[tuple[str, str, str]] = []
    gone: list[tuple[str, str]] = []
    for section in _SECTIONS:
        old, new = getattr(before, section), getattr(after, section)
        if old is new or old == new:
            continue
        if not _is_mapping(section):
            put.append((section, _NO_KEY, _body(section, new)))
            continue
        encode_key = codec(_args(section)[0]).write
        others = [(key, value) for key, value in new.items() if old.get(key, _ABSENT) is not value]
        differ = [(key, value) for key, value in others if old.get(key, _ABSENT) != value]
        put += [(section, _text(encode_key(key)), _body(section, value)) for key, value in differ]
        gone += [(section, _text(encode_key(key))) for key in old if key not in new]
    return Changes(put=tuple(put), gone=tuple(gone))


def memory(stored: Iterable[tuple[str, str, str]]) -> tuple[Memory, tuple[str, ...]]:
    """Return the memory from (section, key, body) rows, and the unreadable ones as "memory row SECTION KEY: why".

    An unreadable row is left out, and with it all sections of its group in `TOGETHER`.
    """
    parts: dict[str, Any] = {section: {} for section in _SECTIONS if _is_mapping(section)}
    lost: list[str] = []
    halves: set[str] = set()
    for section, key, text in stored:
        if section not in _HINTS:
            continue  # a later release wrote it, before the site went back to this one
        try:
            value = decode(_value_type(section), json.loads(text))
            if key == _NO_KEY:
                parts[section] = value
            else:
                parts[section][decode(_args(section)[0], json.loads(key))] = value
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            lost.append(f"memory row {section} {key}: {type(error).__name__}: {error}")
            halves |= next((each for each in TOGETHER if section in each), frozenset())
    return _memory_of({section: part for section, part in parts.items() if section not in halves}), tuple(lost)


def _memory_of(parts: Mapping[str, Any]) -> Memory:
    frozen: dict[str, Any] = {
        name: types.MappingProxyType(part) if isinstance(part, dict) else part for name, part in parts.items()
    }
    return Memory(**frozen)


def _is_mapping(section: str) -> bool:
    return typing.get_origin(_HINTS[section]) is Mapping


def _args(section: str) -> tuple[Any, ...]:
    return typing.get_args(_HINTS[section])


def _value_type(section: str) -> Any:
    return _args(section)[1] if _is_mapping(section) else _HINTS[section]


def _body(section: str, value: Any) -> str:
    return _text(encode(_value_type(section), value))


def _text(encoded: Any) -> str:
    return json.dumps(encoded, ensure_ascii=False, separators=(",", ":"))
