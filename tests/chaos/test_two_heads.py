"""A second head: the first is gone, or stands still for a minute and is woken, at each step of each flow.

`make chaos HEADS=2` runs every cell; CI runs a diagonal.
"""

import argparse
import sys

import pytest

from tests.chaos import page
from tests.chaos.cell import Result, run_cell
from tests.chaos.columns import TWO_HEADS, Column
from tests.chaos.matrix import PAGE, flow_of, quiet, rows, undisturbed


def _cells() -> list[tuple[str, str, Column]]:
    return [(flow, step, column) for flow, step in rows() for column in TWO_HEADS]


def _sample() -> list[tuple[str, str, Column]]:
    """Every row once, the columns in turn."""
    return [(*row, TWO_HEADS[at % len(TWO_HEADS)]) for at, row in enumerate(rows())]


def _run(flow: str, step: str, column: Column) -> Result:
    with quiet():
        return run_cell(flow_of(flow), step, column, undisturbed(flow))


@pytest.mark.long
@pytest.mark.parametrize(
    ("flow", "step", "column"),
    [pytest.param(*cell, id=f"{cell[0]}, {cell[1]}, {cell[2].name}") for cell in _sample()],
)
def test_two_heads_do_nothing_twice_and_forget_nothing(flow: str, step: str, column: Column) -> None:
    """The end has the same machines, jobs and restarts as without a fault."""
    assert _run(flow, step, column).broken == ()


def main() -> int:
    """Run every cell, tell of each, and write the section of docs/reliability.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true", help="only the diagonal that CI runs")
    cells = _sample() if parser.parse_args().sample else _cells()
    found, red = [], 0
    for cell in cells:
        one = _run(*cell)
        red += bool(one.broken)
        print(f"{one.flow}: {one.step}: {one.column}: {', '.join(one.broken) or 'green'}", file=sys.stderr, flush=True)
        found.append(one)
    print(page.heads_section(found))
    PAGE.write_text(page.with_heads(PAGE.read_text(), found))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
