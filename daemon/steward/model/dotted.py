"""Names with dots as keys of a table: TOML takes `ib.flap = 1` for a table in a table, and means the same."""

from collections.abc import Mapping
from typing import Any


def flat(table: Any) -> Any:
    """`{"ib": {"flap": 1}}` as `{"ib.flap": 1}`. What is not a table stays as it is, for others to complain about."""
    if not isinstance(table, Mapping):
        return table
    parts = ((key, flat(value)) for key, value in table.items())
    return {name: value for key, part in parts for name, value in _named(key, part)}


def _named(key: str, part: Any) -> list[tuple[str, Any]]:
    if not isinstance(part, Mapping):
        return [(key, part)]
    return [(f"{key}.{name}", value) for name, value in part.items()]
