"""`steward-testbed` harms no folder that is not its own, and shows how it is called."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steward_bed.cli import EXAMPLES
from steward_bed.cli import testbed as steward_testbed


def call(*words: str) -> Result:
    return CliRunner().invoke(steward_testbed, words, env={"STEWARD_TESTBED": ""})


def test_a_directory_that_is_no_bed_is_not_touched_by_down(tmp_path: Path) -> None:
    (tmp_path / "thesis").touch()
    told = call("down", "--dir", str(tmp_path))
    assert told.exit_code == 1
    assert "no bed in" in told.output
    assert (tmp_path / "thesis").exists()


def test_a_directory_with_something_in_it_gets_no_bed_and_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "thesis").touch()
    told = call("up", "--plain", "--dir", str(tmp_path))
    assert told.exit_code == 1
    assert "is not empty" in told.output
    assert (tmp_path / "thesis").exists()


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_a_command_with_options_and_arguments_that_exist(line: str) -> None:
    program, name, *words = shlex.split(line.removeprefix('eval "$(').removesuffix(')"'))
    assert program == "steward-testbed"
    with steward_testbed.commands[name].make_context(name, words):
        pass


def test_every_command_has_an_example_and_the_program_shows_the_first() -> None:
    assert set(EXAMPLES) == set(steward_testbed.commands)
    told = CliRunner().invoke(steward_testbed, ["--help"]).output
    assert told.splitlines()[-1].strip() == EXAMPLES["up"][0]
