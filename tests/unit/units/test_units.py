"""The shipped units, and their installation below a directory."""

import configparser
import re
import shutil
import sys
from pathlib import Path

import pytest

from steward.adapters import process
from steward.model.agent_tables import AgentSettings
from steward.nvhcd.__main__ import SOCKET
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
    units = ["run-steward-jobs.mount", "steward-agent.service"]
    assert [Path(file).name for file in there] == [*units, "steward.conf", "steward.conf"]


def test_ft_launchers_service_is_no_users_that_exists_and_makes_its_socket_where_it_may(tmp_path: Path) -> None:
    unit = service(tmp_path, "nvhcd", "steward-nvhcd.service")
    assert unit["ExecStart"] == "/opt/steward/bin/python3 -I -m steward.nvhcd"
    assert unit["DynamicUser"] == "yes"
    assert Path("/run", unit["RuntimeDirectory"]) == SOCKET.parent


def test_what_jobs_write_cannot_fill_run(tmp_path: Path) -> None:
    install("agent", tmp_path, BIN)
    unit = configparser.ConfigParser(interpolation=None)
    unit.read(tmp_path / "etc/systemd/system/run-steward-jobs.mount")
    mount = unit["Mount"]
    assert mount["Where"] == str(AgentSettings().job_dir)
    assert mount["Type"] == "tmpfs"
    assert {"size=64M", "nr_inodes=16384", "nosuid", "nodev", "noexec"} <= set(mount["Options"].split(","))


def test_an_agent_comes_up_also_where_that_cannot_be_mounted(tmp_path: Path) -> None:
    install("agent", tmp_path, BIN)
    text = (tmp_path / "etc/systemd/system/steward-agent.service").read_text()
    assert re.search("^After=.*run-steward-jobs.mount", text, re.MULTILINE)
    assert re.search("^Wants=.*run-steward-jobs.mount", text, re.MULTILINE)
    assert not re.search("^(Requires|BindsTo).*=.*run-steward-jobs", text, re.MULTILINE)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    argv = [sys.executable, "-m", "steward.units", "head", "--root", str(blocked)]
    done = process.run(argv, timeout_s=60, check=False)
    assert done.returncode == 1
    assert str(blocked) in done.error_text


ALL = [*DAEMONS, ("nvhcd", "steward-nvhcd.service")]
CEILINGS = {"stewardd.service": 1.5, "steward-agent.service": 6.5, "steward-nvhcd.service": 0.8}
"""What `systemd-analyze security` may say at most (0 none to 10 all is exposed): docs/security.md says why not less."""
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


@needs_systemd
@pytest.mark.parametrize(("daemon", "name"), ALL)
def test_a_unit_exposes_no_more_than_it_needs(tmp_path: Path, daemon: str, name: str) -> None:
    install(daemon, tmp_path, BIN)
    unit = tmp_path / "etc/systemd/system" / name
    argv = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    done = process.run(argv, timeout_s=60, check=False, env={"LC_ALL": "C.UTF-8"})
    score = re.search(r"exposure level for \S+ ([0-9.]+) ", done.text)
    assert score is not None, done.text + done.error_text
    assert float(score[1]) <= CEILINGS[name]


def test_the_page_tells_the_scores_that_are_held() -> None:
    page = (Path(__file__).parents[3] / "docs/security.md").read_text()
    for name, ceiling in CEILINGS.items():
        assert re.search(rf"`{name}` .*\| {ceiling} \|", page), name


@pytest.mark.parametrize(
    "capability", ["CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE", "CAP_SYSLOG"]
)
def test_the_agent_keeps_what_it_watches_and_reads_jobs_with(tmp_path: Path, capability: str) -> None:
    install("agent", tmp_path, BIN)
    text = (tmp_path / "etc/systemd/system/steward-agent.service").read_text()
    dropped = re.findall(r"^CapabilityBoundingSet=~(.*)$", text, re.MULTILINE)
    assert dropped
    assert capability not in " ".join(dropped).split()


def test_the_agents_look_at_the_kernels_clock_is_not_filtered(tmp_path: Path) -> None:
    filtered = service(tmp_path, "agent", "steward-agent.service")["SystemCallFilter"]
    assert filtered.startswith("~")
    assert "@clock" not in filtered
