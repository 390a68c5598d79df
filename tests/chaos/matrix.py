"""The fault matrix: `python -m tests.chaos.matrix` runs it, prints it and writes docs/reliability.md.

Options: `--only TEXT` cells whose row or column has it (nothing is written then), `--jobs N` processes.
"""

import argparse
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.chaos import page
from tests.chaos.cell import Result, run_cell, run_control
from tests.chaos.columns import COLUMNS, Column
from tests.chaos.flow import Flow
from tests.chaos.flows import DEEP, GROUPS, REPAIRS
from tests.chaos.hang_flows import HANGS
from tests.chaos.page import Row
from tests.chaos.run_flows import RUNS
from tests.chaos.team_flows import RECLAIMS

FLOWS = (*REPAIRS, *HANGS, *GROUPS, DEEP, *RUNS, *RECLAIMS)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"


def rows() -> list[tuple[str, str]]:
    return [(flow.name, step) for flow in FLOWS for step in flow.steps]


def flow_of(name: str) -> Flow:
    return next(flow for flow in FLOWS if flow.name == name)


@cache
def undisturbed(name: str) -> Result:
    """The flow without a fault. What it leaves is the same for each of its steps."""
    flow = flow_of(name)
    return run_control(flow, list(flow.steps)[-1])


@contextmanager
def quiet() -> Iterator[None]:
    """No line of a log: stories have thousands."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def run_row(flow: str, step: str, columns: Sequence[Column]) -> Row:
    with quiet():
        control = run_control(flow_of(flow), step)
        results = tuple(run_cell(flow_of(flow), step, column, control) for column in columns)
    bad = (control,) if control.broken else ()
    return Row(flow=flow, step=step, undisturbed_s=control.seconds, results=(*bad, *results))


def _row_named(flow: str, step: str, names: Sequence[str]) -> Row:
    """Columns hold functions, which do not travel between processes."""
    return run_row(flow, step, [column for column in COLUMNS if column.name in names])


def sample() -> list[tuple[str, str, Column]]:
    """What CI runs: a diagonal through the matrix."""
    cells = [(flow, step, column) for flow, step in rows() for column in COLUMNS]
    size = len(COLUMNS)
    return [cell for at, cell in enumerate(cells) if at % size == (at // size * 5) % size]


def run_all(jobs: int, only: str = "") -> Iterable[Row]:
    names = {f"{flow}: {step}": [c.name for c in COLUMNS] for flow, step in rows()}
    for about in names:
        if only and only not in about:
            names[about] = [name for name in names[about] if only in name]
    chosen = [(flow, step) for flow, step in rows() if names[f"{flow}: {step}"]]
    with ProcessPoolExecutor(jobs) as pool:
        asked = [pool.submit(_row_named, flow, step, names[f"{flow}: {step}"]) for flow, step in _mixed(chosen)]
        for one in as_completed(asked):
            row = one.result()
            print(page.line(row), file=sys.stderr, flush=True)
            yield row


def _mixed(chosen: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first step of each flow, then the second of each, ...: who looks on sees something of all of them soon."""
    place = {(flow.name, step): at for flow in FLOWS for at, step in enumerate(flow.steps)}
    return sorted(chosen, key=lambda one: place[one])


def _in_order(found: Sequence[Row]) -> list[Row]:
    """All rows, those that were not run without results."""
    there = {(row.flow, row.step): row for row in found}
    return [there.get(key) or Row(flow=key[0], step=key[1], undisturbed_s=0.0, results=()) for key in rows()]


def main() -> int:
    parser = argparse.ArgumentParser(description="The fault matrix.")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    found: list[Row] = []
    for row in run_all(given.jobs, given.only):
        found.append(row)
        if not given.only:
            PAGE.write_text(page.text(_in_order(found), PAGE.read_text()))
    print(page.text(_in_order(found), PAGE.read_text()))
    return 1 if any(row.red for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
