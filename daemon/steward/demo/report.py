"""The demo's result as a table for people and JSON for tools."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from steward.demo.measure import Figures

_TIMES = ("detected_s", "marked_s", "running_s", "first_step_s", "replaced_s", "returned_s")
_HEADS = ("detected", "marked", "running", "1st step", "replaced", "returned")


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
