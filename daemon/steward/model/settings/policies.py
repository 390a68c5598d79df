"""From `[capacity]` to what the decisions about groups use."""

from dataclasses import fields
from typing import Any

from steward.model.desired import CapacityPolicy
from steward.model.section import Section

_HOUR_S = 3600.0


def in_policy_units(table: Section, policy: type[CapacityPolicy], **given: Any) -> CapacityPolicy:
    """The policy's fields from the keys of the same name; `x_s` may come from `x_h`, `x_fraction` from `x_percent`."""
    return policy(
        **{field.name: _value(table, field.name) for field in fields(policy) if field.name not in given}, **given
    )


def _value(table: Section, name: str) -> Any:
    stem, _, unit = name.rpartition("_")
    keys = type(table).model_fields
    if unit == "s" and f"{stem}_h" in keys:
        return getattr(table, f"{stem}_h") * _HOUR_S
    if unit == "fraction":
        return getattr(table, f"{stem}_percent") / 100.0
    return getattr(table, name)
