"""Dotted names: as keys of a table, and as names or patterns in a mapping."""

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
ALL = ".*"
"""The end of a pattern: `ib.*` matches every name that begins with `ib.`, but not `ib`."""


def leaves(table: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield each value in nested tables with its path of keys; an empty table counts as a value.

    TOML reads `ib.flap.mode = "off"` and `"ib.flap".mode` as different tables: joined by dots their paths are equal.
    """
    if not isinstance(table, Mapping) or (path and not table):
        yield path, table
        return
    for key, value in table.items():
        yield from leaves(value, (*path, key))


def entry_of(name: str, said: Mapping[str, str]) -> str | None:
    """Return the key in `said` for `name`: the name itself, else the longest matching pattern; None without a match."""
    family = name
    while family:
        entry = family if family == name else family + ALL
        if entry in said:
            return entry
        family = family.rpartition(".")[0]
    return None


def said_of(name: str, said: Mapping[str, str]) -> str | None:
    """Return the value for `name`: its own, else that of the longest matching pattern; None without a match."""
    entry = entry_of(name, said)
    return None if entry is None else said[entry]
