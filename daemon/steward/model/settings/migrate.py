"""The text of a settings file of an earlier version in today's words. Only what must change does: all else, comments
too, stays as the site wrote it."""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from steward.model.former_settings import Found, brought_up, found_in, table_of

Tables = dict[str, Any]


class ByHand(ValueError):
    """A former key is written in a way that only a person can change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """`lines` say what changed, one each; none: `text` is as it was."""

    text: str
    lines: tuple[str, ...] = ()


def migration(text: str) -> Migration:
    """Of TOML. Raises Contradiction and ByHand, each a line with its remedy.

    Every edit is tried and read again: it is taken where the file then says what it must say, and nothing else. So a
    word in a comment or a string is never taken for a key."""
    found = found_in(tomllib.loads(text))
    for one in found:
        text = _removed(text, one) if not one.former.now else _turned(_renamed(text, one), one)
    return Migration(text=text, lines=tuple(one.line for one in found))


def _renamed(text: str, one: Found) -> str:
    wanted = tomllib.loads(text)
    table = table_of(wanted, one.path)
    table[one.former.now] = table.pop(one.path[-1])
    return _first(_replacements(text, one.path[-1], one.former.now), lambda tables: tables == wanted, one)


def _turned(text: str, one: Found) -> str:
    """The value's words, one after the other."""
    old, new = one.former.words
    path = (*one.path[:-1], one.former.now)
    while one.former.turned(value := _value(tomllib.loads(text), path)) != value:
        others = _without(tomllib.loads(text), path)
        left = str(value).count(old)

        def is_better(tables: Tables, left: int = left, others: Tables = others) -> bool:
            return str(_value(tables, path)).count(old) < left and _without(tables, path) == others

        text = _first(_replacements(text, old, new), is_better, one)
    return text


def _removed(text: str, one: Found) -> str:
    wanted = _filled(brought_up(tomllib.loads(text), (one,)))
    lines = text.splitlines(keepends=True)
    word = one.path[-1].rpartition(".")[2]
    without = ("".join((*lines[:n], *lines[n + 1 :])) for n, line in enumerate(lines) if word in line)
    return _first(without, lambda tables: _filled(tables) == wanted, one)


def _first(texts: Iterator[str], is_right: Callable[[Tables], bool], one: Found) -> str:
    for text in texts:
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if is_right(tables):
            return text
    raise ByHand(f"{one.line}; it is written in a way that only a person can change")


def _replacements(text: str, old: str, new: str) -> Iterator[str]:
    for match in re.finditer(re.escape(old), text):
        yield text[: match.start()] + new + text[match.end() :]


def _value(tables: Tables, path: tuple[str, ...]) -> Any:
    try:
        return table_of(tables, path)[path[-1]]
    except (KeyError, TypeError):
        return None


def _without(tables: Tables, path: tuple[str, ...]) -> Tables:
    if _value(tables, path) is not None:
        del table_of(tables, path)[path[-1]]
    return tables


def _filled(value: Any) -> Any:
    """Without empty tables: one that only a dotted key had made goes with its key."""
    if not isinstance(value, dict):
        return value
    inner = {key: _filled(one) for key, one in value.items()}
    return {key: one for key, one in inner.items() if one != {}}
