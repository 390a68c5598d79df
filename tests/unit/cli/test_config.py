"""`steward config`: the file that is meant is the one that is looked at."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from steward.cli import main


@pytest.mark.parametrize("words", [("--config", "FILE", "config", "check"), ("config", "check", "--config", "FILE")])
def test_the_option_may_stand_before_the_command_or_behind_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "new.toml"
    file.write_text("[repair]\nmodus = 1\n")
    told = CliRunner().invoke(main, [str(file) if word == "FILE" else word for word in words])
    assert told.exit_code == 1
    assert "repair.modus" in told.output
