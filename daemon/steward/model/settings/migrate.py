"""The text of a settings file of an earlier version in today's words. Only what must change does: all else, comments
too, stays as the site wrote it."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from steward.model.dotted import Path, leaves
from steward.model.former_settings import EMPTIED, Found, brought_up, found_in, table_of

Tables = dict[str, Any]
_HEADING = re.compile(r"\s*\[[^\[].*\]\s*(#.*)?$")
_MOST_LINES = 60
"""A value that is longer is for a person."""


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
        if one.former.tables:
            text = _moved(text, one)
        elif one.former.now:
            text = _turned(_renamed(text, one), one)
        else:
            text = _cut(text, one).text
    return Migration(text=_without_bare_headings(text) if found else text, lines=tuple(one.line for one in found))


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


def _first(texts: Iterator[str], is_right: Callable[[Tables], bool], one: Found) -> str:
    for text in texts:
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if is_right(tables):
            return text
    raise _by_hand(one)


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


def _plain(tables: Tables) -> dict[str, Any]:
    """By joined names, without empty tables: one that only a dotted key had made goes with its key."""
    return {".".join(path): value for path, value in leaves(tables) if value != {}}


# Keys that move to another table, or go.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """A file without a key: what stood behind its `=`, the comments right above it, and in which line it was."""

    text: str
    value: str
    above: str
    line: int


def _cut(text: str, one: Found) -> _Cut:
    value = _value(tomllib.loads(text), one.path)
    wanted = _plain(_without(tomllib.loads(text), one.path))
    lines = text.splitlines(keepends=True)
    word = one.path[-1].rpartition(".")[2]
    for count in range(1, _MOST_LINES):
        for first in (n for n, line in enumerate(lines) if word in line):
            if _reads(rest := "".join((*lines[:first], *lines[first + count :])), wanted):
                top = next((n for n in range(first, 0, -1) if not lines[n - 1].lstrip().startswith("#")), 0)
                above = "".join(lines[top:first])
                moved = rest if not one.to else "".join((*lines[:top], *lines[first + count :]))
                said = _behind_equals("".join(lines[first : first + count]), value)
                return _Cut(text=moved, value=said, above=above, line=top)
    raise _by_hand(one)


def _reads(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return _plain(tomllib.loads(text)) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _behind_equals(statement: str, value: Any) -> str:
    """The value as the site wrote it, with the comment behind it."""
    texts = (statement[match.end() :].strip() for match in re.finditer("=", statement))
    return next((text for text in texts if _reads(f"x = {text}", {"x": value})), json.dumps(value))


def _moved(text: str, one: Found) -> str:
    old, cut = tomllib.loads(text), _cut(text, one)
    new, text = brought_up(old, (one,)), cut.text
    for number, to in enumerate(one.to):
        before, name, value = _plain(tomllib.loads(text)), ".".join(to), _value(new, to)
        said = cut.value if value == _value(old, one.path) else json.dumps(value)
        texts = (
            _replacements(text, str(before[name]), str(value))
            if name in before
            else _with_key(text, to, replace(cut, value=said, above="" if number else cut.above))
        )
        wanted = {**before, name: value}
        if before != wanted:
            text = _first(texts, lambda tables, wanted=wanted: _plain(tables) == wanted, one)  # type: ignore[misc]
    return text


def _with_key(text: str, to: Path, cut: _Cut) -> Iterator[str]:
    """The key in its table if there is one, else in a new one where it was before, else at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = [line if line.endswith("\n") else line + end for line in text.splitlines(keepends=True)]
    headings = {n: name for n, line in enumerate(lines) if (name := _heading(line)) is not None}
    key = f"{cut.above}{to[-1]} = {cut.value}{end}"
    table = f"[{'.'.join(json.dumps(name) if '.' in name else name for name in to[:-1])}]{end}{key}"
    for number in (n for n, name in headings.items() if name == ".".join(to[:-1])):
        at = _end_of(number, lines, headings)
        yield "".join((*lines[:at], key, *lines[at:]))
    here = max((n for n in headings if n < cut.line), default=None)
    if here is not None and _is_emptied(headings[here]):
        yield "".join((*lines[:here], table, end, *lines[here:]))
    at = _end_of(-1 if here is None else here, lines, headings)
    yield "".join((*lines[:at], end if at else "", table, *lines[at:]))
    yield "".join((*lines, end, table))


def _heading(line: str) -> str | None:
    """The joined name of the table that begins here; None: none does."""
    if not _HEADING.match(line):
        return None
    try:
        return ".".join(next(leaves(tomllib.loads(line)))[0])
    except tomllib.TOMLDecodeError:
        return None


def _end_of(heading: int, lines: list[str], headings: dict[int, str]) -> int:
    """The line after the last key of a table; what comments stand there are mostly the next table's."""
    following = min((n for n in headings if n > heading), default=len(lines))
    keys = (n for n in range(following - 1, heading, -1) if lines[n].strip() and not lines[n].lstrip().startswith("#"))
    return next(keys, heading) + 1


def _is_emptied(table: str) -> bool:
    return any(f"{table}.".startswith(f"{'.'.join(path)}.") for path in EMPTIED)


def _without_bare_headings(text: str) -> str:
    """Former tables whose last key moved away."""
    wanted = _plain(tomllib.loads(text))
    lines = text.splitlines(keepends=True)
    for number in reversed([n for n, line in enumerate(lines) if _is_emptied(_heading(line) or "")]):
        is_blank_after = number + 1 < len(lines) and not lines[number + 1].strip()
        fewer = [*lines[:number], *lines[number + 1 + is_blank_after :]]
        if _reads("".join(fewer), wanted):
            lines = fewer
    return "".join(lines)


def _by_hand(one: Found) -> ByHand:
    return ByHand(f"{one.line}; it is written in a way that only a person can change")
