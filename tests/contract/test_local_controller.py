"""The services of a local bed, as real processes: what a restart does."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward_bed.layout import Layout
from steward_bed.local_controller import Controller
from steward_bed.providers import local_machine
from steward_bed.providers.local_machine import Program, own_environment
from steward_bed.wait import wait_until

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(300)"


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    """A slurmctld that does not end when it is asked to."""
    layout = Layout(root=tmp_path)
    for folder in (layout.controller, layout.output("slurmctld").parent):
        folder.mkdir(parents=True, exist_ok=True)
    program = Program(
        name="slurmctld", argv=(sys.executable, "-c", DEAF), env=own_environment({}), log=layout.output("slurmctld")
    )
    state = layout.controller / "slurmctld.programs"
    machine = local_machine.power_on("slurmctld", (program,), cwd=layout.controller, state=state, keep_orphans=False)
    wait_until("it is deaf", lambda: "deaf" in layout.output("slurmctld").read_text(), 20.0)
    yield layout
    local_machine.power_off(machine)


def test_a_service_that_does_not_end_is_killed_and_started_again(layout: Layout) -> None:
    controller = Controller(layout)
    before = controller.running("slurmctld")
    assert before is not None
    controller.renew("slurmctld")
    after = controller.running("slurmctld")
    assert after is not None
    assert after.pid != before.pid


@pytest.mark.parametrize(
    ("ends", "comes_back"),
    [("sys.exit(3)", True), ("sys.exit(0)", False), ("os.kill(os.getpid(), 9)", False)],
    ids=["failed", "done", "killed"],
)
def test_a_service_comes_back_only_after_it_failed(tmp_path: Path, ends: str, comes_back: bool) -> None:
    log = tmp_path / "log"
    text = f"import os, sys, time; print(len(open({str(log)!r}).read().split()), flush=True); time.sleep(0.1); {ends}"
    argv = (sys.executable, "-c", text)
    service = Program(name="head", argv=argv, env=own_environment({}), log=log, comes_back=True)
    machine = local_machine.power_on("head", (service,), cwd=tmp_path, state=tmp_path / "state", keep_orphans=False)
    try:
        wait_until(
            "it has ended", lambda: log.exists() and "0" in log.read_text() and not machine.program("head"), 20.0
        )
        time.sleep(2.5)
        assert (len(log.read_text().split()) > 1) is comes_back
        local_machine.restart_programs(machine)
        wait_until("it begins again", lambda: len(log.read_text().split()) > 1, 20.0)
    finally:
        local_machine.power_off(machine)
