"""What every action says: under which key it is done, and why."""

from dataclasses import dataclass

from steward.model.ids import Key
from steward.model.why import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseAction:
    key: Key
    why: Why
