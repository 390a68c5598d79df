"""`steward-testbed` says in one line what is wrong and what to do."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steward_bed.cli import testbed as steward_testbed


def call(*words: str) -> Result:
    return CliRunner().invoke(steward_testbed, words, env={"STEWARD_TESTBED": ""})


def test_without_a_bed_named_a_command_says_how_to_name_one() -> None:
    told = call("status")
    assert told.exit_code == 2
    assert "give --dir, or set STEWARD_TESTBED as `steward-testbed up` prints it" in told.output


def test_taking_down_what_is_not_there_is_success(tmp_path: Path) -> None:
    assert call("down", "--dir", str(tmp_path / "gone")).exit_code == 0


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


def test_a_path_too_long_for_sockets_is_refused_with_the_remedy(tmp_path: Path) -> None:
    told = call("up", "--plain", "--dir", str(tmp_path / ("x" * 80)))
    assert told.exit_code == 1
    assert "too long for sockets in it; use --dir" in told.output


@pytest.mark.parametrize("wrong", ["repair", "repair.mode", "mode=1"])
def test_a_setting_without_section_key_and_value_is_refused(wrong: str) -> None:
    told = call("up", "--set", wrong)
    assert told.exit_code == 2
    assert "write SECTION.KEY=VALUE" in told.output


def test_a_fault_that_needs_a_node_says_so() -> None:
    told = call("inject", "kill-node")
    assert told.exit_code == 2
    assert "kill-node needs a node, for example: inject kill-node n1" in told.output


def test_help_lists_every_fault_with_its_meaning() -> None:
    told = call("inject", "--help")
    assert "kill-node        power cut: slurmd, agent and every job process die at once" in told.output
