"""Names with dots: as keys of a table, and a word said for one name or for all that begin alike."""

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
ALL = ".*"
"""The end of a pattern: `ib.*` stands for every name that begins with `ib.`, and not for `ib`."""


def leaves(table: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Each value in a table with the keys that lead to it; an empty table is one. TOML takes `ib.flap.mode = "off"` for
    tables in tables and `"ib.flap".mode` for others: joined by dots their paths are equal."""
    if not isinstance(table, Mapping) or (path and not table):
        yield path, table
        return
    for key, value in table.items():
        yield from leaves(value, (*path, key))


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
