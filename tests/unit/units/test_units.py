"""The shipped units, and their installation below a directory."""

import configparser
import sys
from pathlib import Path

import pytest

from steward.adapters import process
from steward.units.__main__ import install

BIN = Path("/opt/steward/bin")


def service(root: Path, daemon: str, name: str) -> configparser.SectionProxy:
    install(daemon, root, BIN)
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(root / "etc/systemd/system" / name)
    return unit["Service"]


DAEMONS = [("head", "stewardd.service"), ("agent", "steward-agent.service")]


@pytest.mark.parametrize(("daemon", "name"), DAEMONS)
def test_a_daemon_is_started_from_where_steward_is_installed(tmp_path: Path, daemon: str, name: str) -> None:
    program = service(tmp_path, daemon, name)["ExecStart"].split()[0]
    assert program == f"/opt/steward/bin/{name.removesuffix('.service')}"


@pytest.mark.parametrize(("daemon", "name"), DAEMONS)
def test_a_daemon_that_hangs_or_dies_is_started_again(tmp_path: Path, daemon: str, name: str) -> None:
    unit = service(tmp_path, daemon, name)
    assert (unit["Type"], unit["Restart"]) == ("notify", "always")
    assert int(unit["WatchdogSec"]) > 0


def test_the_head_is_not_root(tmp_path: Path) -> None:
    assert service(tmp_path, "head", "stewardd.service")["User"] == "slurm"


def test_the_agent_sees_the_same_mounts_as_jobs_do(tmp_path: Path) -> None:
    unit = service(tmp_path, "agent", "steward-agent.service")
    own_view = {
        "ProtectSystem",
        "ProtectHome",
        "PrivateTmp",
        "PrivateDevices",
        "ReadOnlyPaths",
        "ProtectKernelTunables",
    }
    assert own_view.isdisjoint(unit)


def test_only_the_units_of_the_machines_own_daemon_are_installed(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "steward.units", "agent", "--root", str(tmp_path)]
    said = process.run(argv, timeout_s=60).text.split()
    there = sorted(str(file) for file in tmp_path.rglob("*") if file.is_file())
    assert sorted(said) == there
    assert [Path(file).name for file in there] == ["steward-agent.service", "steward.conf", "steward.conf"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    argv = [sys.executable, "-m", "steward.units", "head", "--root", str(blocked)]
    done = process.run(argv, timeout_s=60, check=False)
    assert done.returncode == 1
    assert str(blocked) in done.error_text
