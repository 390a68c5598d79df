"""Rules of the style guide that a machine can see and no linter has: short functions, telling names, one meaning for
a class name. Long files are warned of by `make lint`."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.house import twice, two_subjects

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(file for top in ("daemon", "tools", "tests", "examples") for file in (ROOT / top).rglob("*.py"))
MAX_FUNCTION_LINES = 40
VAGUE = ("utils", "helpers", "manager", "misc", "common")


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(file.read_text(), filename=str(file))
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, its docstring left out."""
    first = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - first[0].lineno + 1 if first else 0


def test_functions_are_short() -> None:
    lines = {f"{name(file)}: {one.name}": code_lines(one) for file in FILES for one in functions(file)}
    assert {function: count for function, count in lines.items() if count > MAX_FUNCTION_LINES} == {}


def test_modules_have_telling_names() -> None:
    assert [name(file) for file in FILES if file.stem in VAGUE] == []


def test_a_public_class_has_a_name_of_its_own() -> None:
    assert twice() == {}


def test_a_module_has_one_subject() -> None:
    assert two_subjects() == []


WRITES = frozenset({"wish", "tell", "tell_again", "keep", "close", "forget", "note", "drop", "clear", "update", "pop"})


def rooted(node: ast.expr) -> str:
    """The dotted name of an expression without its indexes, as `draft.jobs` of `draft.jobs[id]`."""
    return ast.unparse(node).partition("[")[0]


def changes_of_the_draft(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
            yield rooted(node.func)
        for target in node.targets if isinstance(node, ast.Assign) else ():
            yield rooted(target)


def test_a_fact_changes_nothing() -> None:
    files = [file for file in FILES if "policy/facts/" in name(file)]
    found = {f"{name(file)}: {text}" for file in files for one in functions(file) for text in changes_of_the_draft(one)}
    # `draft.found` keeps answers for the rest of the plan, `draft.ground` from plan to plan
    assert sorted(text for text in found if ": draft." in text and ": draft.found." not in text) == []
