"""Tables and times for people. What comes from nodes and jobs is text, never markup."""

import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

_PIPED_WIDTH = 100_000
_STYLES = {
    "ok": "green",
    "warn": "yellow",
    "bad": "bold red",
    "down": "red",
    "drained": "yellow",
    "draining": "yellow",
    "error": "bold red",
    "warning": "yellow",
    "held": "bold red",
    "lost": "red",
    "late": "yellow",
    "fine": "green",
    "suspect": "yellow",
    "degraded": "red",
    "in repair": "yellow",
    "report-only": "yellow",
    "foreign": "yellow",
}


def console() -> Console:
    """The terminal's width, or no limit in a pipe: a line of a table stays a line."""
    return Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH, color_system=None)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows under plain headings, or `empty` where there are none."""
    grid = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        grid.add_column(column, overflow="fold", no_wrap=not sys.stdout.isatty())
    for row in rows:
        grid.add_row(*(_cell(value) for value in row))
    out = console()
    if not grid.row_count:
        out.print(Text(empty))
    elif sys.stdout.isatty():
        out.print(grid)
    else:
        _print_lines(out, grid)


def _print_lines(out: Console, grid: Table) -> None:
    """Without the blanks that fill a row up to the console's width."""
    with out.capture() as captured:
        out.print(grid)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def line(text: str, style: str = "") -> None:
    console().print(Text("\n".join(map(harmless, text.split("\n"))), style=style), soft_wrap=True)


def harmless(text: str) -> str:
    """Without control characters: a job's name or a node's reason must not steer the terminal, nor forge a line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def _cell(value: object) -> Text:
    text = "-" if value is None or value == "" else str(value)
    return Text(harmless(text), style=_STYLES.get(text, ""))


def styled(word: str) -> str:
    return _STYLES.get(word, "")


def when(at: float | None) -> str:
    """Local time: the clock of today, the date before."""
    if not at:
        return "-"
    moment = datetime.fromtimestamp(at)
    today = moment.date() == datetime.now().date()
    return moment.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def ago(at: float | None) -> str:
    """`12 s`, `3 min`, `5 h`, `2 d`."""
    if not at:
        return "-"
    seconds = max(time.time() - at, 0.0)
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def span(start: float | None, end: float | None) -> str:
    """Seconds between, for people."""
    return "-" if start is None or end is None else f"{max(end - start, 0.0):.1f} s"
