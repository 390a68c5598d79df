"""The sentences that the code has for people, found in its text, and the two cases of each: one in which it is true and
said, and one near it in which it would be false."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import steward

Case = Callable[[], Any]
Row = tuple[str, Case, Case]
"""What is said, where, and where not."""
ROOT = Path(steward.__file__).parent


def lacking(paths: Iterable[Path], skip: str, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """The sentences without a pair: that are in no first text of `pairs`, or in its second one, too. `skip` fits the
    names of what is at the top of a file and says nothing here."""
    known, found = tuple(pairs), list[str]()
    for path in paths:
        for line, text in _sentences(path, re.compile(skip)):
            pattern = re.compile(".*".join(map(re.escape, text.split("{}"))))
            if not any(pattern.search(true) and not pattern.search(false) for true, false in known):
                found.append(f"{path.name}:{line}: {text}")
    return found


def _sentences(path: Path, skip: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Each text of three words or more, with its line; `{}` is what is filled in."""
    for top in ast.parse(path.read_text()).body:
        if not skip.fullmatch(getattr(top, "name", "") or _assigned(top)):
            yield from _texts(top)


def _assigned(top: ast.stmt) -> str:
    target = top.targets[0] if isinstance(top, ast.Assign) else getattr(top, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


def _texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = _template(node)
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and " " in text.strip():
            yield node.lineno, text
        if isinstance(node, ast.Constant):
            return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
            yield from _texts(child)


def _template(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
