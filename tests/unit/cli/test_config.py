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


def test_a_file_that_is_not_there_is_told_in_words_with_what_writes_one(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--config", str(tmp_path / "none.toml"), "config", "check"])
    assert done.exit_code == 1
    assert "none.toml: cannot be read (No such file or directory): `steward init` writes a first one" in done.output
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    done = CliRunner().invoke(main, ["--config", str(tmp_path / "binary.toml"), "config", "check"])
    assert "cannot be read (it is not UTF-8 text)" in done.output


def test_init_without_slurm_says_where_to_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none.conf"))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(main, ["init", "--print"])
    assert done.exit_code == 1
    assert "Slurm does not answer here; run this on the controller, where `scontrol ping` must say UP" in done.output
    assert "none.conf is not there: set SLURM_CONF" in done.output
    assert "cannot start `scontrol show config`: No such file or directory" in done.output
