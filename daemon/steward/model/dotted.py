"""Names with dots: as keys of a table, and a word said for one name or for all that begin alike."""

from collections.abc import Container, Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
ALL = ".*"
"""The end of a pattern: `ib.*` stands for every name that begins with `ib.`, and not for `ib`."""


def leaves(table: Any, whole: Container[str] = (), path: Path = ()) -> Iterator[tuple[str, Any]]:
    """Yield each value in a table with the keys that lead to it, joined by dots; an empty table is a value, and so is
    one whose name is in `whole`. TOML takes `ib.flap.mode = "off"` for tables in tables and `"ib.flap".mode` for
    others: their names are equal."""
    name = ".".join(path)
    if not isinstance(table, Mapping) or (path and not table) or name in whole:
        yield name, table
        return
    for key, value in table.items():
        yield from leaves(value, whole, (*path, key))


def entry_of(name: str, said: Mapping[str, str]) -> str | None:
    """The entry that speaks of `name`: its own, else that of the longest pattern; None: there is none."""
    family = name
    while family:
        entry = family if family == name else family + ALL
        if entry in said:
            return entry
        family = family.rpartition(".")[0]
    return None


def said_of(name: str, said: Mapping[str, str]) -> str | None:
    """What that entry says."""
    entry = entry_of(name, said)
    return None if entry is None else said[entry]
