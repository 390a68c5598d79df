"""What nodes, jobs and users wrote is printed as text: it neither steers a terminal nor forges a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.cli import show

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
    assert show.harmless(text).isprintable()
    assert len(show.harmless(text)) == len(text)
