"""Every command shows how it is called, and the lists of commands say what the commands themselves say."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from steward.cli import Late, LateGroup, main
from steward.cli.examples import EXAMPLES

FILES = ("cluster.json", "quotas.toml", "new.toml")


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from leaves(inner, (*path, name))


def test_every_command_has_an_example_and_there_is_no_other() -> None:
    assert set(EXAMPLES) == {" ".join(path) for path in leaves(main) if path}


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_a_command_with_options_and_arguments_that_exist(line: str, tmp_path: Path) -> None:
    words = shlex.split(line.removeprefix('eval "$(').removesuffix(')"'))
    assert words.pop(0) == "steward"
    found: click.Command = main
    context = click.Context(main)
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        inner = found.get_command(context, words.pop(0))
        assert inner is not None, line
        found = inner
    with chdir(tmp_path):
        for name in FILES:
            Path(name).write_text("{}")
        Path("packages").mkdir()
        with found.make_context(found.name, words):
            pass


def test_the_help_of_a_command_below_a_group_ends_with_its_examples() -> None:
    told = CliRunner().invoke(main, ["breaker", "reset", "--help"], obj=None).output
    assert told.splitlines()[-1] == "  " + "  steward breaker reset check:gpu.xid --json"


def late_commands(group: click.Group) -> Iterator[Late]:
    assert isinstance(group, LateGroup)
    yield from group.late.values()


def test_the_list_of_commands_imports_none_of_them() -> None:
    program = (
        "import sys\nfrom steward.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "sys.exit(any(name in sys.modules for name in ('steward.cli.look', 'steward.client', 'rich', 'pydantic')))"
    )
    assert subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, timeout=60).returncode == 0


def test_every_line_of_the_list_of_commands_names_one_that_is_there() -> None:
    for late in late_commands(main):
        assert isinstance(late.load(), click.Command)
        assert late.help.endswith(".")
