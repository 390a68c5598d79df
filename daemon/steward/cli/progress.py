"""Progress while the cluster works: a live table on a terminal, a line for each change in a pipe."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from steward.cli.show import console, line
from steward.client import HeadError, OperationError, Unreachable

_TOO_OFTEN = "ThrottlingException"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One look: rows to show (the first cell names the row), whether it is over, and what went wrong for good."""

    rows: Sequence[Sequence[str]]
    is_over: bool
    failed: str = ""


def follow(look: Callable[[], Sight], columns: Sequence[str], *, every_s: float = 1.0) -> None:
    """Until it is over. Raises HeadError when it failed for good; Ctrl-C ends only the looking."""
    out = console()
    live: AbstractContextManager[Live | None] = (
        Live(console=out, auto_refresh=False, transient=False) if out.is_terminal else nullcontext()
    )
    try:
        with live as view:
            _follow(look, columns, view, every_s)
    except KeyboardInterrupt:
        line("This command stops waiting; the work goes on. `steward group list` shows how far it is.", "yellow")
        raise click.exceptions.Exit(130) from None


def _follow(look: Callable[[], Sight], columns: Sequence[str], view: Live | None, every_s: float) -> None:
    shown: set[tuple[str, ...]] = set()
    while True:
        sight = _patiently(look)
        if sight is not None:
            shown = _show(sight, columns, view, shown)
            if sight.failed:
                raise HeadError(sight.failed)
            if sight.is_over:
                return
        time.sleep(every_s)


def _patiently(look: Callable[[], Sight]) -> Sight | None:
    """A head that restarts goes on where it was: so do we. So do we when others of this user ask too often."""
    try:
        return look()
    except Unreachable:
        return None
    except OperationError as error:
        if error.code == _TOO_OFTEN:
            return None
        raise


def _show(
    sight: Sight, columns: Sequence[str], view: Live | None, before: set[tuple[str, ...]]
) -> set[tuple[str, ...]]:
    rows = [tuple(row) for row in sight.rows]
    if view is not None:
        view.update(_grid(columns, rows), refresh=True)
    else:
        for row in rows:
            if row not in before:
                line("  ".join(cell or "-" for cell in row))
    return set(rows)


def _grid(columns: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column)
    for row in rows:
        grid.add_row(*(Text(cell or "-") for cell in row))
    return grid
