"""Which file is read, and `steward config`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from steward.adapters.settings_file import load
from steward.adapters.settings_path import settings_path
from steward.cli.config import config
from steward.model.settings import SettingsError


def test_the_named_file_wins_over_the_environment_and_the_default() -> None:
    assert settings_path(Path("/a"), {"STEWARD_CONFIG": "/b"}) == Path("/a")
    assert settings_path(None, {"STEWARD_CONFIG": "/b"}) == Path("/b")
    assert settings_path(None, {}) == Path("/etc/steward/steward.toml")


def test_a_file_that_is_not_there_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot be read.*--config"):
        load(tmp_path / "none.toml", {})


def test_check_says_what_is_wrong_and_fails(tmp_path: Path) -> None:
    file = tmp_path / "steward.toml"
    file.write_text("[repair]\nretry = 3")
    result = CliRunner().invoke(config, ["check", "--config", str(file)])
    assert result.exit_code == 1
    assert "repair.retry = 3: unknown key; did you mean retry_s?" in result.output


def test_check_says_that_a_right_file_is_right(tmp_path: Path) -> None:
    file = tmp_path / "steward.toml"
    file.write_text('[[groups]]\nname="a"\nnodes="n[1-6]"\nprovider="static"')
    (tmp_path / "slurm.conf").touch()
    here = {"STEWARD_CONFIG": str(file), "SLURM_CONF": str(tmp_path / "slurm.conf")}
    result = CliRunner().invoke(config, ["check"], env=here)
    assert result.exit_code == 0, result.output
    assert "valid; 6 nodes may be repaired" in result.output


def test_show_prints_what_is_in_force(tmp_path: Path) -> None:
    file = tmp_path / "steward.toml"
    file.write_text("[resume]\nmax_resumes = 7")
    result = CliRunner().invoke(config, ["show", "--config", str(file)])
    assert json.loads(result.output)["resume"]["max_resumes"] == 7
    assert json.loads(result.output)["head"]["sweep_s"] == 5.0
