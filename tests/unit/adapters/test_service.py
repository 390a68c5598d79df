"""Log lines: one line each, who it is about first, and nothing a node says can forge another."""

import logging
import sys

from steward.adapters.service import KeyValueFormatter


def line(message: str, **extra: object) -> str:
    record = logging.makeLogRecord({"msg": message, "levelname": "INFO", "created": 0.5, "msecs": 500.0, **extra})
    return KeyValueFormatter().format(record)


def test_node_case_and_job_come_first() -> None:
    text = line("drained", zone="x", job=7, node="n1", case="c1")
    assert text.split(" ", 1)[1] == "info node=n1 case=c1 job=7 zone=x drained"


def test_what_is_not_known_is_left_out() -> None:
    assert "node" not in line("hello", node=None)


def test_a_value_with_blanks_is_quoted() -> None:
    assert ' why="a b" ' in line("hello", why="a b")


def test_a_line_break_in_hostile_text_stays_inside_the_line() -> None:
    text = line("agent says \n2026-01-01 info all is well", node='n1"\nforged')
    assert "\n" not in text
    assert r"\n2026-01-01" in text


def test_a_traceback_follows_on_lines_of_its_own() -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        text = line("it failed", exc_info=sys.exc_info())
    assert text.splitlines()[-1] == "ZeroDivisionError"
