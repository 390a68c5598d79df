"""What is remembered of a job that was suspended."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """How long a run was suspended, as it was seen. Times are Unix seconds.

    `since` is None while it runs, `over` is when it last went on; `total_s` is of the times before.
    """

    restart: int
    since: float | None = None
    over: float | None = None
    total_s: float = 0.0
