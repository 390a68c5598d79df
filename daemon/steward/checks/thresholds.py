"""Numbers that a check judges by, named so that a site can say another one in `[checks.limit]`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """`name` begins with the check's id (`gpu.temp.max_c`). `low` and `high` bound what a site may say."""

    name: str
    default: float
    unit: str
    text: str
    low: float = 0.0
    high: float = 1e12
