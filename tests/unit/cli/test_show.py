"""What nodes, jobs and users wrote is printed as text: it neither steers a terminal nor forges a line."""

import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from steward.cli import show
from steward.model.text import harmless

NASTY = "x\x1b[31mred\x1b]0;title\x07\x9b2J\r\u202e"


def test_a_cell_of_a_table_is_one_harmless_line(capsys: pytest.CaptureFixture[str]) -> None:
    show.table(["A", "B"], [[NASTY, "one\ntwo"]], empty="none")
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["A", "B"]
    assert row.isprintable()
    assert row.split("  ")[-1] == "one two"


def test_a_line_keeps_its_breaks_and_nothing_else_that_moves_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    show.line(f"first\n{NASTY}")
    first, second = capsys.readouterr().out.rstrip("\n").split("\n")
    assert first == "first"
    assert second.startswith("x?[31mred")
    assert second.isprintable()


@given(st.text())
def test_what_is_harmless_is_printable_and_as_long(text: str) -> None:
    assert harmless(text).isprintable()
    assert len(harmless(text)) == len(text)


ROWS = (["n1", "the agent is gone and a second witness agrees", 3], ["gpu-node-17", "", None])
HEADINGS = ("NODE", "EVIDENCE", "JOBS")


def printed(width: int) -> str:
    out = Console(width=width, file=StringIO(), color_system=None)
    out.print(show.grid(HEADINGS, ROWS))
    assert isinstance(out.file, StringIO)
    return out.file.getvalue()


@pytest.mark.parametrize("width", [30, 40, 80])
def test_a_narrow_table_keeps_its_words_whole(width: int) -> None:
    assert show.fits(HEADINGS, ROWS, width)
    assert {"gpu-node-17", "witness", "second", "EVIDENCE"} <= set(printed(width).split())


def test_where_a_table_has_no_room_each_row_is_a_paragraph() -> None:
    assert not show.fits(HEADINGS, ROWS, 20)
    lines = [text.plain for text in show.stacked(HEADINGS, ROWS)]
    assert lines == ["n1", "  EVIDENCE  the agent is gone and a second witness agrees", "  JOBS      3", "gpu-node-17"]


def test_a_time_is_local_and_names_its_zone() -> None:
    assert re.fullmatch(r"2023-11-1[3-5] [0-9]{2}:[0-9]{2}:20 [A-Z+-].*", show.when(1_700_000_000.0))
    assert show.when(None) == "-"
