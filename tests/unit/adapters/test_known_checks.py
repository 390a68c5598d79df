"""The settings against the catalogue of checks, for every program that reads the file."""

from pathlib import Path

import pytest

from steward.adapters.settings_file import desired, limits_of, load
from steward.agent.config import ConfigError
from steward.agent.config import load as load_agent
from steward.checks.limits import Limits
from steward.model.settings import Settings, SettingsError, parse


def a_file(folder: Path, text: str) -> Path:
    file = folder / "steward.toml"
    file.write_text(text)
    return file


def test_the_checks_tables_mean_the_same_on_both_sides() -> None:
    assert limits_of(Settings().checks) == Limits()


def test_the_head_knows_the_mode_of_a_check_that_the_file_does_not_name() -> None:
    text = '[checks.mode]\n"os.dstate" = "report"\nmem = "off"\n[checks.clock]\nmode = "drain"'
    modes = desired(parse(text, source="steward.toml", env={})).modes
    assert (modes["os.files"], modes["os.dstate"], modes["mem.edac"]) == ("report", "report", "off")
    assert (modes["clock"], modes["clock.sync"], modes["disk"]) == ("drain", "report", "drain")


@pytest.mark.parametrize("line", ['"os.pids.percent" = 90', "os.pids.percent = 90"])
def test_a_name_with_dots_may_be_quoted_or_not(line: str, tmp_path: Path) -> None:
    file = a_file(tmp_path, f"[checks.limit]\n{line}\n[checks.mode]\nos.pids = 'drain'\n")
    assert load(file, {}).checks.limit == {"os.pids.percent": 90.0}
    assert load_agent(file, {}).checks.limit == {"os.pids.percent": 90.0}
    assert load_agent(file, {}).checks.mode == {"os.pids": "drain"}


WRONG = "[checks.mode]\nos.dstat = 'drain'\n"
LINE = 'checks.mode."os.dstat" = "drain": no check and no family has that name; did you mean os.dstate?'


def test_neither_the_head_nor_the_command_line_nor_an_agent_takes_a_name_that_there_is_none_of(tmp_path: Path) -> None:
    file = a_file(tmp_path, WRONG)
    with pytest.raises(SettingsError) as of_head:
        load(file, {})
    with pytest.raises(ConfigError) as of_agent:
        load_agent(file, {})
    assert str(of_head.value) == str(of_agent.value) == f"{file}: {LINE}"


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    file = a_file(tmp_path, f"{WRONG}[checks.limit]\nos.pids.percent = 500\n")
    with pytest.raises(SettingsError) as refused:
        load(file, {})
    assert len(refused.value.problems) == 2
