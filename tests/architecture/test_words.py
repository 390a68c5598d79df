"""Messages use words that an operator knows: those of our own trade stay inside the code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from steward.model.text import REPORT_ONLY

SOURCES = Path(__file__).resolve().parents[2] / "daemon/steward"
INSIDE = {
    "incarnation": re.compile(r" incarnation\b|\bincarnation "),
    "a yes": re.compile(r"\ba (person's )?yes\b"),
    "something else than": re.compile(r"something else than"),
    "1 times": re.compile(r"\btimes (refused|restarted)\b"),
}


def messages(file: Path) -> Iterator[str]:
    """Every text of a module but its docstrings and names."""
    tree = ast.parse(file.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@cache
def all_messages() -> list[tuple[Path, str]]:
    return [(file.relative_to(SOURCES), text) for file in SOURCES.rglob("*.py") for text in messages(file)]


@pytest.mark.parametrize("word", INSIDE)
def test_no_message_uses_a_word_of_the_code(word: str) -> None:
    assert [f"{file}: {text!r}" for file, text in all_messages() if INSIDE[word].search(text)] == []


def test_a_site_that_only_reports_is_shown_both_ways_on() -> None:
    assert '"ask" or "act"' in REPORT_ONLY
