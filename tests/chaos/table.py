"""One row of the matrix as it was run."""

from dataclasses import dataclass

from tests.chaos.cell import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`results` are by column; one named `no fault` is there only when the control run itself went wrong."""

    flow: str
    step: str
    undisturbed_s: float
    results: tuple[Result, ...]

    @property
    def red(self) -> list[Result]:
        return [result for result in self.results if result.broken]
