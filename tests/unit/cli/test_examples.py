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


def test_a_group_shows_the_example_that_changes_nothing() -> None:
    firsts: dict[str, str] = {}
    for path in EXAMPLES:
        group, _, word = path.partition(" ")
        firsts.setdefault(group, word)
    listed = {path.partition(" ")[0] for path in EXAMPLES if path.endswith(" list")}
    assert {group: firsts[group] for group in listed} == dict.fromkeys(listed, "list")


def test_no_list_of_commands_cuts_a_sentence_off() -> None:
    for path in groups(main):
        told = CliRunner().invoke(main, [*path, "--help"], obj=None).output
        assert "..." not in told.partition("Commands:")[2].partition("Example")[0], path


def groups(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(command, click.Group):
        yield path
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from groups(inner, (*path, name))


@pytest.mark.parametrize("path", list(groups(main)), ids=" ".join)
def test_the_help_of_a_group_shows_an_example_of_a_command_below_it(path: tuple[str, ...]) -> None:
    *_, told = CliRunner().invoke(main, [*path, "--help"], obj=None).output.splitlines()
    assert told.strip() in {line for lines in EXAMPLES.values() for line in lines}
    assert told.split()[: len(path) + 1] == ["steward", *path]


@pytest.mark.parametrize("program", ["steward.head", "steward.agent"])
def test_the_help_of_a_daemon_ends_with_an_example_of_options_that_it_has(program: str) -> None:
    argv = [sys.executable, "-m", program, "--help"]
    told = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    before, _, example = told.partition("Example: ")
    assert {word for word in example.split() if word.startswith("-")} <= set(before.replace(",", " ").split())
    assert example


def late_commands(group: click.Group) -> Iterator[Late]:
    assert isinstance(group, LateGroup)
    yield from group.late.values()


def test_the_list_of_commands_imports_none_of_them() -> None:
    modules = {late.target.partition(":")[0] for late in late_commands(main)}
    program = (
        "import sys\nfrom steward.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert not {*modules, "steward.client", "rich", "pydantic"} & set(done.stderr.split())
    assert "Show the cluster at a glance." in done.stdout


def test_every_line_of_the_list_of_commands_names_one_that_is_there() -> None:
    for late in late_commands(main):
        assert isinstance(late.load(), click.Command)
        assert late.help.endswith(".")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("group scale workers many", "Invalid value for 'COUNT': 'many' is not a valid integer."),
        ("group scale workers -- -1", "Invalid value for 'COUNT': -1 is not in the range x>=0."),
        (
            "jobs --state runing",
            "Invalid value for '--state': runing is no state of a job: use one of pending, running, ",
        ),
        ("top --every x", "Invalid value for '--every': 'x' is not a valid number."),
    ],
)
def test_a_wrong_word_is_told_in_plain_words(words: str, said: str) -> None:
    assert CliRunner().invoke(main, words.split()).output.splitlines()[-1].startswith(f"Error: {said}")
