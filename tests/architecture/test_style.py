"""Rules of the style guide that a machine can see."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(file for top in ("daemon", "tools", "tests", "examples") for file in (ROOT / top).rglob("*.py"))
SOURCES = [file for file in FILES if file.is_relative_to(ROOT / "daemon")]
THE_DOOR = "daemon/steward/adapters/process.py"
MAX_LINES = 300
MAX_FUNCTION_LINES = 40
LATE_IMPORTS = {
    "daemon/steward/adapters/store/engine.py": 1,
    "daemon/steward/cli/context.py": 1,
    "daemon/steward/head/choose.py": 2,
}
"""What takes a tenth of a second of a start and most starts do not need: Alembic, two SDKs, settings to a client."""
VAGUE = ("utils", "helpers", "manager", "misc", "common")


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, its docstring left out."""
    first = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - first[0].lineno + 1 if first else 0


def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(), filename=str(file))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_file_is_short(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= MAX_LINES


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_function_is_short(file: Path) -> None:
    assert {f.name: code_lines(f) for f in functions(parse(file)) if code_lines(f) > MAX_FUNCTION_LINES} == {}


@pytest.mark.parametrize("file", FILES, ids=name)
def test_imports_are_at_the_top(file: Path) -> None:
    inside = [
        node.lineno
        for function in functions(parse(file))
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert len(inside) == LATE_IMPORTS.get(name(file), 0), inside


@pytest.mark.parametrize("file", FILES, ids=name)
def test_nothing_goes_through_a_shell(file: Path) -> None:
    calls = [node for node in ast.walk(parse(file)) if isinstance(node, ast.Call)]
    shells = [call.lineno for call in calls for word in call.keywords if word.arg == "shell"]
    system = [
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in ("system", "popen", "create_subprocess_shell", "getoutput")
    ]
    assert shells + system == []


@pytest.mark.parametrize("file", SOURCES, ids=name)
def test_other_programs_are_started_at_one_door(file: Path) -> None:
    imports = {
        alias.name
        for node in ast.walk(parse(file))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in ([*node.names, ast.alias(node.module or "")] if isinstance(node, ast.ImportFrom) else node.names)
    }
    assert "subprocess" not in imports or name(file) == THE_DOOR


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_module_has_a_telling_name_and_a_docstring(file: Path) -> None:
    assert file.stem not in VAGUE
    assert ast.get_docstring(parse(file)) or not file.read_text().strip() or file.name == "__init__.py"
