"""How the agent starts the runner where systemd started the agent, with a pretended systemd-run."""

from pathlib import Path

import pytest

from steward.adapters.node.setup_dir import SetupDir, SetupJob, Starter
from steward.model.setup import SetupState
from steward.ports import Retryable
from tests.fakes.setups import NodeDisk
from tests.fakes.until import until

_PRETENDED = """#!/bin/bash
printf '%s\\n' "$@" > {log}
while [[ $1 != -- ]]; do shift; done
shift
exec "$@"
"""


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that shows that systemd runs; beside it lies what systemd-run was told."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "systemd").mkdir()
    program = tmp_path / "bin/systemd-run"
    program.write_text(_PRETENDED.format(log=tmp_path / "said"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return tmp_path / "systemd"


def test_under_systemd_the_runner_has_a_unit_of_its_own_that_ends_nothing(systemd: Path, tmp_path: Path) -> None:
    env = {"INVOCATION_ID": "x", "HTTPS_PROXY": "http://proxy", "AWS_REGION": "r", "NOTIFY_SOCKET": "/run/n"}
    disk = NodeDisk(home=tmp_path, starter=Starter(systemd=systemd, env=env))
    disk.script("true\n")
    assert disk.run(disk.order("t-9")).state is SetupState.SUCCEEDED
    said = (tmp_path / "said").read_text().splitlines()
    assert {"--unit=steward-setup-t-9", "--property=KillMode=process", "--property=Type=forking"} <= set(said)
    assert [word for word in said if word.startswith("--setenv")] == ["--setenv=AWS_REGION", "--setenv=HTTPS_PROXY"]


def test_an_agent_that_systemd_did_not_start_starts_it_plainly(systemd: Path, tmp_path: Path) -> None:
    disk = NodeDisk(home=tmp_path, starter=Starter(systemd=systemd, env={}))
    disk.script("true\n")
    assert disk.run(disk.order()).state is SetupState.SUCCEEDED
    assert not (tmp_path / "said").exists()


def test_a_runner_that_another_one_has_begun_is_not_begun_again(tmp_path: Path) -> None:
    disk = NodeDisk(home=tmp_path)
    disk.script(f"while ! test -e {tmp_path}/go; do sleep 0.05; done\n")
    setup = disk.begin(disk.order())
    with pytest.raises(Retryable, match="is under way"):
        disk.start(setup)
    (tmp_path / "go").touch()
    until("it is over", lambda: (report := setup.report()) is not None and report.state is SetupState.SUCCEEDED)


def test_an_order_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Retryable, match="holds no order for a setup"):
        Starter().start(SetupDir(tmp_path, "t1"))


def test_a_run_that_nobody_runs_is_settled_once(tmp_path: Path) -> None:
    disk = NodeDisk(home=tmp_path)
    setup = SetupDir(disk.root, "t1")
    setup.create(SetupJob(order=disk.order(), here=disk.here))
    first = setup.finish_if_cut_off("cut off", 5.0)
    assert first is not None
    assert (first.state, first.why) == (SetupState.FAILED, "cut off")
    assert setup.finish_if_cut_off("again", 6.0) == first
    disk.start(setup)
    assert setup.report() == first, "a runner that comes late does nothing"
