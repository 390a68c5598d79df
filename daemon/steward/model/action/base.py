"""The fields of every action: the key under which it is done, and why."""

from dataclasses import dataclass

from steward.model.ids import Key
from steward.model.why import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseAction:
    key: Key
    why: Why
