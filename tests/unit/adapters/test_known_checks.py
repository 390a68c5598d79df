"""The settings against the catalogue of checks, for every program that reads the file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from steward.adapters.settings_file import desired, load
from steward.agent.config import ConfigError
from steward.agent.config import load as load_agent
from steward.checks.known import limits_of
from steward.cli import main
from steward.model.settings import SettingsError, parse


def a_file(folder: Path, text: str) -> Path:
    file = folder / "steward.toml"
    file.write_text(text)
    return file


def test_the_head_knows_the_mode_of_a_check_that_the_file_does_not_name() -> None:
    text = '[checks."os.dstate"]\nmode = "report"\n[checks."mem.*"]\nmode = "off"\n[checks.clock]\nmode = "drain"'
    modes = desired(parse(text, source="steward.toml", env={})).modes
    assert (modes["os.files"], modes["os.dstate"], modes["mem.edac"]) == ("report", "report", "off")
    assert (modes["clock"], modes["clock.sync"], modes["disk"]) == ("drain", "report", "drain")


@pytest.mark.parametrize("table", ['checks."os.pids"', "checks.os.pids"])
def test_the_file_means_the_same_to_the_head_and_to_an_agent(table: str, tmp_path: Path) -> None:
    file = a_file(tmp_path, f"[{table}]\npercent = 90\nmode = 'drain'\n[checks.disk]\npaths = ['/a']")
    limits = limits_of(load(file, {}).checks)
    assert limits == load_agent(file, {}).checks
    assert limits.values == {"os.pids.percent": 90.0, "disk.paths": ("/a",)}
    assert limits.modes == {"os.pids": "drain"}


WRONG = "[checks.os.dstat]\nmode = 'drain'\n"
LINE = 'checks."os.dstat": there is no check `os.dstat`; did you mean os.dstate?'


def test_neither_the_head_nor_the_command_line_nor_an_agent_takes_a_name_that_there_is_none_of(tmp_path: Path) -> None:
    file = a_file(tmp_path, WRONG)
    with pytest.raises(SettingsError) as of_head:
        load(file, {})
    with pytest.raises(ConfigError) as of_agent:
        load_agent(file, {})
    assert str(of_head.value) == str(of_agent.value) == f"{file}: {LINE}"


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    file = a_file(tmp_path, f"{WRONG}[checks.os.pids]\npercent = 500\n")
    with pytest.raises(SettingsError) as refused:
        load(file, {})
    assert len(refused.value.problems) == 2


def test_what_is_in_force_is_shown_with_all_defaults(tmp_path: Path) -> None:
    file = a_file(tmp_path, "[checks.os.pids]\npercent = 90\n")
    shown = json.loads(CliRunner().invoke(main, ["config", "show", "--config", str(file)]).output)["checks"]
    assert shown["os.pids"] == {"mode": "report", "percent": 90}
    assert shown["disk"]["paths"] == ["/", "/tmp", "/var"]
    assert (shown["gpu"]["expected_count"], shown["site"]["mode"]) == (None, "report")
