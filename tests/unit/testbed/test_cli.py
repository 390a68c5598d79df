"""`steward-testbed` harms no folder that is not its own."""

from pathlib import Path

from click.testing import CliRunner, Result

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
