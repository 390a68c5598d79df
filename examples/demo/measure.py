"""The training's own log (when it began, each step, each checkpoint, the end); the figures of one fault, from its
making to the training's next step and the node's return; and the demo's result as a table for people and JSON for
tools."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from rich.table import Table

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


_TIMES = ("detected_s", "marked_s", "running_s", "first_step_s", "replaced_s", "returned_s")
_HEADS = ("detected", "marked", "running", "1st step", "replaced", "returned")


class FaultStory(Enum):
    """The demo's three faults."""

    SPARE_INSIDE = "node-killed-spare-inside"
    SPARE_OUTSIDE = "node-killed-spare-outside"
    BATCH_HOST = "batch-host-killed"

    @property
    def text(self) -> str:
        return _TEXTS[self]


_TEXTS = {
    FaultStory.SPARE_INSIDE: "spare inside",
    FaultStory.SPARE_OUTSIDE: "spare outside",
    FaultStory.BATCH_HOST: "batch host",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A fault that was made: when its making began (Unix s), and on which node."""

    story: FaultStory
    node: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTimes:
    """When the repair of the node reached what (Unix s); None where it has not."""

    detected: float | None = None
    marked: float | None = None
    replaced: float | None = None
    returned: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Seconds after the fault. `steps_lost` were done before it and had to be done again."""

    kind: FaultStory
    node: str
    detected_s: float | None
    marked_s: float | None
    running_s: float
    first_step_s: float
    replaced_s: float | None
    returned_s: float | None
    steps_lost: int


def recovery(made: Made, log: Sequence[Happening]) -> tuple[Happening, Happening] | None:
    """The training's start after the fault and its first step from there; None until both are there.

    Starts that made no step (they were ended at once) do not count.
    """
    begun: Happening | None = None
    for each in log:
        if each.at <= made.at:
            continue
        if each.what == "begun":
            begun = each
        elif each.what == "step" and begun is not None:
            return begun, each
    return None


def figures(made: Made, log: Sequence[Happening], case: CaseTimes) -> Figures:
    """Raises ValueError when the training has not come back."""
    back = recovery(made, log)
    if back is None:
        raise ValueError(f"no step after the fault on {made.node}")
    begun, first = back
    done = max((each.step for each in log if each.what == "step" and each.at < begun.born), default=begun.step)
    return Figures(
        kind=made.story,
        node=made.node,
        detected_s=_after(made, case.detected),
        marked_s=_after(made, case.marked),
        running_s=begun.born - made.at,
        first_step_s=first.at - made.at,
        replaced_s=_after(made, case.replaced),
        returned_s=_after(made, case.returned),
        steps_lost=done - begun.step,
    )


def _after(made: Made, at: float | None) -> float | None:
    return None if at is None else at - made.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`weights` are the digests of the run with faults and of the undisturbed one."""

    faults: tuple[Figures, ...]
    weights: str
    undisturbed: str
    steps: int
    accuracy: float
    took_s: float

    @property
    def weights_identical(self) -> bool:
        return self.weights == self.undisturbed


def as_json(result: Result) -> dict[str, Any]:
    return {
        "faults": [_fault(figures) for figures in result.faults],
        "weights_identical": result.weights_identical,
        "weights": result.weights,
        "steps": result.steps,
        "accuracy": result.accuracy,
        "took_s": round(result.took_s, 1),
    }


def _fault(figures: Figures) -> dict[str, Any]:
    times = {name: _rounded(getattr(figures, name)) for name in _TIMES}
    return {"kind": figures.kind.value, "node": figures.node, **times, "steps_lost": figures.steps_lost}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def as_table(faults: Sequence[Figures]) -> Table:
    """Seconds after each fault."""
    table = Table(title="seconds after the fault", title_justify="left", title_style="dim")
    table.add_column("fault", no_wrap=True)
    for head in (*_HEADS, "steps lost"):
        table.add_column(head, justify="right", no_wrap=True)
    for figures in faults:
        times = (getattr(figures, name) for name in _TIMES)
        cells = ("-" if seconds is None else f"{seconds:.2f}" for seconds in times)
        table.add_row(f"{figures.node}: {figures.kind.text}", *cells, str(figures.steps_lost))
    return table
