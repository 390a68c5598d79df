"""Messages and pages use words that an operator knows: those of our own trade stay inside the code."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
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
    "1 times": re.compile(r"^ times\b|\btimes (refused|restarted)\b"),
}
_COUNTED = ("text.py", "kernel_events.py")


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
    # text.py has the count's words; a repetition of kernel lines is at least two
    told = [(file, text) for file, text in all_messages() if word != "1 times" or file.name not in _COUNTED]
    assert [f"{file}: {text!r}" for file, text in told if INSIDE[word].search(text)] == []


PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")])
OF_PAGES = {word: pattern for word, pattern in INSIDE.items() if word not in ("incarnation", "1 times")} | {
    "a witness that agrees": re.compile(r"witness agrees"),
    "could not look": re.compile(r"could not look"),
}
"""docs/architecture.md explains the word incarnation."""


@pytest.mark.parametrize("word", OF_PAGES)
def test_no_page_uses_a_word_of_the_code(word: str) -> None:
    lines = ((page, line) for page in PAGES for line in page.read_text().splitlines())
    assert [f"{page.relative_to(ROOT)}: {line}" for page, line in lines if OF_PAGES[word].search(line)] == []


@pytest.mark.parametrize("word", ["nobody", "a witness that agrees", "could not look"])
def test_no_docstring_or_comment_has_an_unnamed_subject(word: str) -> None:
    files = [file for kind in ("daemon/**/*.py", "spank/*.[ch]", "reader/*.c") for file in ROOT.glob(kind)]
    assert [str(file.relative_to(ROOT)) for file in files if OF_PAGES[word].search(file.read_text())] == []


def test_a_site_that_only_reports_is_shown_both_ways_on() -> None:
    assert '"ask" or "act"' in REPORT_ONLY


# TimeoutErrors are made by our own code, with words for people.
_SYSTEMS = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, OSError) and kind is not TimeoutError
} | {"gaierror", "SSLError"}


def _names(node: ast.AST | None) -> set[str]:
    found: Iterable[ast.AST] = ast.walk(node) if node is not None else ()
    parts = (one for one in found if isinstance(one, ast.Name | ast.Attribute))
    return {one.id if isinstance(one, ast.Name) else one.attr for one in parts}


def _is_raw(node: ast.AST, error: str) -> bool:
    """Whether a message takes the error as Python writes it."""
    match node:
        case (
            ast.FormattedValue(value=ast.Name(id=name))
            | ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)])
        ):
            return name == error
    return False


def raw_errors(code: str) -> list[int]:
    """The lines in which an error of the operating system becomes a message as Python writes it."""
    handlers = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ExceptHandler) and node.name)
    of_system = [one for one in handlers if _names(one.type) & _SYSTEMS]
    return sorted(node.lineno for one in of_system for node in ast.walk(one) if _is_raw(node, one.name or ""))  # type: ignore[attr-defined]


def test_errors_of_the_system_reach_people_in_words() -> None:
    """`[Errno 13] Permission denied: '/x'` is none: `cause` and `cause_and_file` make words of it."""
    found = {str(file.relative_to(SOURCES)): raw_errors(file.read_text()) for file in SOURCES.rglob("*.py")}
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.parametrize("told", ['raise Permanent(f"x: {error}")', "print(str(error))", "log.info(1, str(error))"])
def test_such_a_message_is_found(told: str) -> None:
    assert raw_errors(f"try:\n    f()\nexcept (ValueError, OSError) as error:\n    {told}\n") == [4]
    assert raw_errors(f"try:\n    f()\nexcept ValueError as error:\n    {told}\n") == []
