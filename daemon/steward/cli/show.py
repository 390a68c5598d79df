"""Tables and times for people. Text from nodes and jobs is never read as markup."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from steward.cli.context import Context, print_json
from steward.cli.context import when as when
from steward.model.text import age, harmless

_PIPED_WIDTH = 100_000
_WORD = 24
"""A column of a narrow table is at most this wide; longer words in it are broken."""
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
    "drained by admin": "yellow",
}
_OF_CHANGES = {"+": "green", "-": "red", "~": "yellow"}


def console() -> Console:
    """Return a console with the terminal's width."""
    # In a pipe the width has no limit, so that a row of a table stays one line.
    return Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH, color_system=None)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows under plain headings, or `empty` if there are none."""
    given, out = [list(row) for row in rows], console()
    if not given:
        out.print(Text(empty))
    elif not sys.stdout.isatty():
        print_lines(out, grid(columns, given, is_wrapped=False))
    elif fits(columns, given, out.width):
        out.print(grid(columns, given))
    else:
        for text in stacked(columns, given):
            out.print(text)


def listed(
    context: Context, found: Any, columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str
) -> None:
    """Print `found` if JSON is wanted, else the rows as a table."""
    if context.as_json:
        print_json(found)
    else:
        table(columns, rows, empty=empty)


def grid(columns: Sequence[str], rows: Iterable[Sequence[object]], *, is_wrapped: bool = True) -> Table:
    """Return the rows as a table; a word is broken only if it is longer than `_WORD`."""
    found, given = Table(box=None, pad_edge=False, header_style="bold", show_edge=False), [list(row) for row in rows]
    for column, least in zip(columns, _least_widths(columns, given), strict=True):
        found.add_column(column, overflow="fold", no_wrap=not is_wrapped, min_width=least if is_wrapped else None)
    for row in given:
        found.add_row(*(_cell(value) for value in row))
    return found


def fits(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> bool:
    """Return whether every column has room for its longest word."""
    return sum(_least_widths(columns, rows)) + len(columns) - 1 <= width


def stacked(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[Text]:
    """Yield a paragraph for each row, for terminals too narrow for a table.

    The paragraph is the first cell, then `HEADING value` lines.
    """
    wide = max((len(column) for column in columns), default=0)
    for first, *rest in rows:
        yield Text.assemble((harmless(str(first)), "bold"))
        for column, value in zip(columns[1:], rest, strict=True):
            if value is not None and value != "":
                yield Text.assemble("  ", (column.ljust(wide), "dim"), "  ", _cell(value))


def _least_widths(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[int]:
    texts = [[column, *(_cell(row[at]).plain for row in rows)] for at, column in enumerate(columns)]
    return [min(max(len(word) for text in column for word in (text.split() or [""])), _WORD) for column in texts]


def print_lines(out: Console, shown: RenderableType) -> None:
    """Print without the blanks that fill each row up to the console's width."""
    with out.capture() as captured:
        out.print(shown)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def line(text: str, style: str = "") -> None:
    console().print(Text("\n".join(map(harmless, text.split("\n"))), style=style), soft_wrap=True)


def change_lines(changes: Sequence[str]) -> None:
    """Print what a file would change: lines that begin with `+`, `-` or `~`."""
    for text in changes or ("No change.",):
        line(text, _OF_CHANGES.get(text[:1], ""))


def _cell(value: object) -> Text:
    text = "-" if value is None or value == "" else str(value)
    return Text(harmless(text), style=_STYLES.get(text, ""))


def styled(word: str) -> str:
    return _STYLES.get(word, "")


def ago(at: float | None) -> str:
    """Return the time since `at`: `12 s`, `3 min`, `5 h` or `2 d`."""
    return age(time.time() - at) if at else "-"


def span(start: float | None, end: float | None) -> str:
    """Return the seconds between two instants, as text."""
    return "-" if start is None or end is None else f"{max(end - start, 0.0):.1f} s"


def print_done(context: Context, answer: Any, text: str) -> None:
    """Print the head's answer to an order if JSON is wanted, else `text`."""
    if context.as_json:
        print_json(answer)
    else:
        line(text)
