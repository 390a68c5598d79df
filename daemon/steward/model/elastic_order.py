"""What people ask of an elastic run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRun:
    """`size` None: as it is, 0: as large as it may be, else at most so many nodes. `paused` None: as it is."""

    who: str
    run: int
    size: int | None = None
    paused: bool | None = None
