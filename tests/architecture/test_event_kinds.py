"""The list of the kinds of events, by which channels choose, is that of the events that are told."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from steward.model.event_kinds import KINDS

PACKAGE = Path(__file__).parents[2] / "daemon/steward"
HEALTH_PAGE = PACKAGE.parents[1] / "docs/health.md"
_TELLERS = {"tell", "_tell", "_warning", "_report", "Event"}
_KIND = re.compile(r"[a-z]+\.[a-z_]+")


def _trees() -> Iterator[ast.Module]:
    for room in ("policy", "workflows", "head", "api", "adapters"):
        for file in (PACKAGE / room).rglob("*.py"):
            yield ast.parse(file.read_text())


def _told() -> Iterator[ast.AST]:
    """Yield the arguments of the calls that tell an event."""
    for node in (node for tree in _trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _TELLERS:
                yield from node.args
                yield from (word.value for word in node.keywords if word.arg == "kind")


def _texts(trees: Iterator[ast.AST] | Iterator[ast.Module]) -> set[str]:
    found = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in found if isinstance(text, str)}


def test_every_kind_that_is_told_is_in_the_list() -> None:
    told = {text for text in _texts(_told()) if _KIND.fullmatch(text)}
    assert len(told) > 80
    assert told - KINDS == set()


def test_every_kind_of_the_list_is_told() -> None:
    texts = _texts(_trees())
    made = {text for text in texts if text.endswith(".")}
    """The beginnings of kinds that end with a step or another word."""
    assert [kind for kind in sorted(KINDS - texts) if f"{kind.partition('.')[0]}." not in made] == []


def test_the_page_about_notifications_names_every_subject() -> None:
    page = HEALTH_PAGE.read_text()
    assert [kind for kind in sorted({kind.partition(".")[0] for kind in KINDS}) if f"`{kind}.`" not in page] == []
