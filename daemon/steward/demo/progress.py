"""The training's own log: when it began, each step, each checkpoint, the end."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WORDS = ("begun", "step", "kept", "done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One line. `at` is Unix seconds on the node's clock; `step` counts finished steps."""

    at: float
    what: str
    step: int
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def born(self) -> float:
        """When rank 0's process was started (only of `begun`)."""
        return float(self.facts["born"])


class ProgressLog:
    """Follows the file; a line that is still being written is read next time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0
        self._seen: list[Happening] = []

    def happenings(self) -> tuple[Happening, ...]:
        """Everything so far, oldest first; nothing while the file is not there."""
        if self._file.exists():
            with self._file.open("rb") as lines:
                lines.seek(self._read)
                whole = lines.read().rpartition(b"\n")[0]
            self._read += len(whole) + 1 if whole else 0
            self._seen += parse(whole.decode().splitlines())
        return tuple(self._seen)


def parse(lines: Iterable[str]) -> list[Happening]:
    """The lines that are whole. One that a dying rank left torn is not a happening."""
    found = []
    for line in lines:
        try:
            record = json.loads(line)
            happening = Happening(at=record.pop("at"), what=record.pop("what"), step=record.pop("step"), facts=record)
        except (ValueError, KeyError, TypeError):
            continue
        found.append(happening)
    return [each for each in found if each.what in _WORDS]


def last(happenings: Iterable[Happening], what: str) -> Happening | None:
    return next((each for each in reversed(tuple(happenings)) if each.what == what), None)
