"""Dotted names: as keys of a table, and as names or patterns in a mapping."""

from collections.abc import Container, Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
ALL = ".*"
"""The end of a pattern: `ib.*` matches every name that begins with `ib.`, but not `ib`."""


def leaves(table: Any, whole: Container[str] = (), path: Path = ()) -> Iterator[tuple[str, Any]]:
    """Yield each value in nested tables with its path of keys joined by dots.

    An empty table counts as a value, and so does a table whose name is in `whole`. TOML reads `ib.flap.mode = "off"`
    and `"ib.flap".mode` as different tables; here both have the same name.
    """
    name = ".".join(path)
    if not isinstance(table, Mapping) or (path and not table) or name in whole:
        yield name, table
        return
    for key, value in table.items():
        yield from leaves(value, whole, (*path, key))


def entry_of(name: str, said: Mapping[str, str]) -> str | None:
    """Return the key in `said` for `name`: the name itself, else the longest matching pattern; None without a match."""
    family = name
    while family:
        entry = family if family == name else family + ALL
        if entry in said:
            return entry
        family = family.rpartition(".")[0]
    return None


def lookup_dotted(name: str, said: Mapping[str, str]) -> str | None:
    """Return the value for `name`: its own, else that of the longest matching pattern; None without a match."""
    entry = entry_of(name, said)
    return None if entry is None else said[entry]
