"""The pages for users name commands, settings and clusters that exist."""

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from steward.cli import main
from steward.model.settings.parse import parse
from tests.builders.api_cluster import nothing
from tests.fakes.operations import operations_on

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")))
_LINE = re.compile(r"^ {4}(?:\$ )?(steward [a-z].*)$", re.MULTILINE)
_FENCED = re.compile(r"^```sh[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`(steward [a-z][^`]*)`")


def commands(page: str) -> list[str]:
    text = (ROOT / page).read_text()
    fenced = (line for block in _FENCED.findall(text) for line in block.splitlines() if line.startswith("steward "))
    lines = [*_LINE.findall(text), *fenced, *(span.replace("\n", " ") for span in _SPAN.findall(text))]
    parts = (part.strip() for line in lines for part in re.split(r" {2,}|[;#|&>]", line))
    return [part for part in parts if part.startswith("steward ")]


def resolved(words: list[str]) -> click.Command:
    """The command that these words name. Raises AssertionError for one that is not there."""
    found: click.Command = main
    while isinstance(found, click.Group) and words:
        name = words.pop(0)
        inner = found.get_command(click.Context(found), name)
        assert inner is not None, f"no command {name}"
        found = inner
    return found


def test_the_cluster_of_the_guide_can_be_made() -> None:
    [document] = re.findall(r"```json\n(.*?)```", (ROOT / "docs/capacity.md").read_text(), re.DOTALL)
    operations = operations_on(nothing())
    operations.call("CreateCluster", **json.loads(document))
    assert set(operations.memory.groups) == {"controller", "workers"}


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_and_its_options_exist(page: str) -> None:
    for line in commands(page):
        words = shlex.split(line)[1:]
        found = resolved(words)
        known = {option for parameter in found.params for option in parameter.opts}
        takes_others = found.context_settings.get("ignore_unknown_options", False)
        assert takes_others or not [word for word in words if word.startswith("-") and word not in known], line
        required = [one.opts for one in found.params if isinstance(one, click.Option) and one.required]
        assert all(set(options) & set(words) for options in required), line


def test_the_pages_name_commands() -> None:
    pages = (
        "README.md",
        "docs/capacity.md",
        "docs/operations.md",
        "docs/quickstart-admin.md",
        "docs/quickstart-researcher.md",
    )
    assert all(commands(page) for page in pages)


def typed(page: str) -> list[str]:
    return re.findall(r"^ {4}(.*)$", (ROOT / page).read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if "decisions" not in page])
def test_what_root_types_takes_no_code_that_others_could_have_put_there(page: str) -> None:
    """A name in /tmp can be had first by anybody; a package without its hash is whatever the index says today."""
    installs = [line for line in typed(page) if re.search(r"/opt/steward/\S+ .*\binstall ", line)]
    assert [line for line in installs if "--require-hashes" not in line or "--no-index" not in line] == []
    assert [
        line for line in typed(page) if re.search(r"(^|\s)(bash|sh|venv|python3?|make -C|source|\.) /tmp/", line)
    ] == []


def test_the_settings_of_the_guide_are_taken() -> None:
    [text] = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/capacity.md").read_text(), re.DOTALL)
    assert parse(text, source="the guide", env={}).desired().capacity.has_include


def test_every_setting_that_the_guide_names_is_one_of_capacity() -> None:
    page = (ROOT / "docs/capacity.md").read_text()
    known = set(type(parse("", source="none", env={}).capacity).model_fields)
    named = set(re.findall(r"`([a-z_]+(?:_s|_h|_tries|_failures))(?: = [^`]*)?`", page))
    assert named <= known, named - known
    assert len(named) > 10
