"""The limits of one fetch: how much it may take, how long, and where it may write."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from steward.ports import Permanent

MAX_BYTES = 512 << 20
MAX_FILES = 20_000
_CHUNK = 1 << 16


class TimeOver(Permanent):
    """The deadline has passed."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """`deadline` is on the monotonic clock. Each try of a fetch has a budget of its own and the same deadline."""

    deadline: float
    bytes_left: int = MAX_BYTES
    files_left: int = MAX_FILES
    now: Callable[[], float] = time.monotonic

    def take_file(self) -> None:
        """Raises Permanent when there were too many, TimeOver when it is late."""
        self.files_left -= 1
        if self.files_left < 0:
            raise Permanent("the source has more files than lifecycle scripts may have")
        self._look_at_the_clock()

    def take(self, count: int) -> None:
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise Permanent("the source is larger than lifecycle scripts may be")
        self._look_at_the_clock()

    @property
    def left_s(self) -> float:
        return max(0.0, self.deadline - self.now())

    def _look_at_the_clock(self) -> None:
        if self.now() >= self.deadline:
            raise TimeOver("execution timed out before all scripts were fetched")


def inside(folder: Path, name: str) -> Path:
    """The path of `name` (with `/`) below `folder`. Raises Permanent for a name that leads out of it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise Permanent(f"{name[:200]!r} is not a path inside of the scripts' folder")
    return folder / path


def store(folder: Path, name: str, source: IO[bytes], budget: Budget, *, mode: int = 0o644) -> None:
    """Write one file of the source. Raises Permanent as `inside` and the budget do, OSError for a fault of a disk."""
    target = inside(folder, name)
    budget.take_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        while chunk := source.read(_CHUNK):
            budget.take(len(chunk))
            file.write(chunk)
    target.chmod((mode | 0o600) & 0o755)
