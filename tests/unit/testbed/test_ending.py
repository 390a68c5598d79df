"""A program with a bed that is interrupted takes its bed down, also when it is interrupted again meanwhile; and what
is killed and not gone holds up no other machine."""

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from steward.model.ids import InstanceId, NodeName
from steward.model.instance import InstanceState, Slot
from steward.ports import Retryable
from steward_bed.local import all_off
from tests.fakes.provider import FakeProvider
from tests.fakes.until import until

PROGRAM = """
import signal, sys, time
from pathlib import Path
from types import SimpleNamespace
from steward_bed.beds import stoppable, take_down

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a script starts with `&` ignores it from the beginning
here = Path(sys.argv[1])

def down():
    (here / "begun").touch()
    while not (here / "go on").exists():
        time.sleep(0.01)
    (here / "down").touch()

with stoppable():
    try:
        (here / "up").touch()
        while True:
            time.sleep(0.01)  # a signal that comes just before a sleep is heeded after it
    finally:
        take_down(SimpleNamespace(down=down, spec=SimpleNamespace(dir=here)), lambda line: print(line, flush=True))
"""


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_bed_is_taken_down_whole_however_often_somebody_interrupts(tmp_path: Path, first: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, tmp_path], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            until("it is up", (tmp_path / "up").exists)
            program.send_signal(first)
            until("it is being taken down", (tmp_path / "begun").exists)
            for again in (signal.SIGINT, signal.SIGTERM):
                program.send_signal(again)
                assert program.stdout.readline() == f"{again.name}: wait, {tmp_path} is being taken down\n"
            (tmp_path / "go on").touch()
            assert program.wait() != 0
        finally:
            program.kill()
    assert (tmp_path / "down").exists()


@dataclass(kw_only=True)
class BusyDisk(FakeProvider):
    """Processes of its first machine wait for a disk when they are killed for the first time."""

    waiting: bool = True

    def terminate(self, instance: InstanceId) -> None:
        if self.waiting and instance == next(iter(self.table)):
            self.waiting = False
            raise Retryable("processes do not die: [2875]; look at their state in ps")
        super().terminate(instance)


def test_all_machines_are_off_though_the_processes_of_one_are_not_gone_at_once() -> None:
    provider = BusyDisk()
    first, second = (provider.launch(Slot(node=NodeName(name), group="main"), name).id for name in ("n1", "n2"))
    with pytest.raises(Retryable, match="2875"):
        all_off(provider)
    off = {id for id, instance in provider.instances().items() if instance.state is InstanceState.GONE}
    assert off == {second}

    all_off(provider)
    off = {id for id, instance in provider.instances().items() if instance.state is InstanceState.GONE}
    assert off == {first, second}
