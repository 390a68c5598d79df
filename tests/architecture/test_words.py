"""Messages use words that an operator knows: those of our own trade stay inside the code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from steward.model.text import REPORT_ONLY

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "daemon/steward"
INSIDE = {
    "incarnation": re.compile(r" incarnation\b|\bincarnation "),
    "a yes": re.compile(r"\ba (person's )?yes\b"),
    "something else than": re.compile(r"something else than"),
    "nobody": re.compile(r"\b(nobody|somebody|anybody|someone|anyone|no one)\b", re.IGNORECASE),
    "says otherwise": re.compile(r"says? otherwise"),
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
    """Of the daemon and of the programs in C, in which a text may go over several lines."""
    found = [(file.relative_to(SOURCES), text) for file in SOURCES.rglob("*.py") for text in messages(file)]
    for folder in ("spank", "reader"):
        for file in sorted((ROOT / folder).glob("*.c")):
            code = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read_text(), flags=re.DOTALL)
            joined = re.sub(r'"\s*"', "", code)
            found += [(file.relative_to(ROOT), text) for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)]
    return found


@pytest.mark.parametrize("word", INSIDE)
def test_no_message_uses_a_word_of_the_code(word: str) -> None:
    # of policy/quota: still to be reworded
    told = [(file, text) for file, text in all_messages() if word != "nobody" or file.parent.name != "quota"]
    assert [f"{file}: {text!r}" for file, text in told if INSIDE[word].search(text)] == []


def test_a_site_that_only_reports_is_shown_both_ways_on() -> None:
    assert '"ask" or "act"' in REPORT_ONLY
