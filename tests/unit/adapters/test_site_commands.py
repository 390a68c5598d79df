"""The site's own backup, restore and alarm commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.site_commands import SiteCommands
from steward.model.capacity_policy import CapacitySettings
from steward.model.ids import InstanceId, NodeName
from steward.ports import Permanent, Retryable

N1, I1 = NodeName("n1"), InstanceId("i-1")
Program = Callable[[str], str]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def write(text: str) -> str:
        path = tmp_path / "program"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return write


def commands(**keys: Any) -> SiteCommands:
    return SiteCommands(CapacitySettings(**keys))


def test_the_command_is_told_node_and_instance(program: Program, tmp_path: Path) -> None:
    site = commands(backup=(program(f'echo "$@" > {tmp_path}/said'), "--node=%n", "%i"))
    site.back_up(N1, I1, restore=False)
    assert (tmp_path / "said").read_text() == "--node=n1 i-1\n"


def test_a_restore_runs_its_own_command(program: Program, tmp_path: Path) -> None:
    site = commands(backup=("/bin/false", "%n"), restore=(program(f"touch {tmp_path}/restored"), "%n"))
    site.back_up(N1, I1, restore=True)
    assert (tmp_path / "restored").exists()


def test_a_site_without_a_command_has_nothing_to_save() -> None:
    commands().back_up(N1, I1, restore=False)


def test_a_failure_is_told_with_the_last_line(program: Program) -> None:
    site = commands(backup=(program("echo begun; echo no space on tape >&2; exit 7"), "%n"))
    with pytest.raises(Permanent, match=r"backup of n1 \(i-1\) failed: .*rc=7: no space on tape"):
        site.back_up(N1, I1, restore=False)


def test_a_backup_that_takes_too_long_is_a_failure(program: Program) -> None:
    with pytest.raises(Permanent, match="no end within 1 s"):
        commands(backup=(program("sleep 1000"), "%n"), backup_deadline_s=1.0).back_up(N1, I1, restore=False)


def test_a_command_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(Permanent, match="cannot start"):
        commands(backup=("/no/such/program", "%n")).back_up(N1, I1, restore=False)


def test_the_alarms_that_are_printed_fire(program: Program) -> None:
    site = commands(alarms=(program("echo other; echo b; test $# = 2"),))
    assert site.firing(["a", "b"]) == ("b",)


def test_an_alarm_command_that_fails_says_nothing_about_alarms(program: Program) -> None:
    with pytest.raises(Retryable, match="no network"):
        commands(alarms=(program("echo a; echo no network >&2; exit 1"),)).firing(["a"])


def test_an_alarm_that_looks_like_an_option_is_not_handed_on(program: Program) -> None:
    with pytest.raises(Retryable, match="--help"):
        commands(alarms=(program("exit 0"),)).firing(["--help"])


def test_nobody_is_asked_about_no_alarms() -> None:
    assert commands(alarms=("/no/such/program",)).firing([]) == ()
    assert commands().firing(["a"]) == ()
