"""The local provider on real processes; a `sh` and a `sleep` stand for slurmd and its agent."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from steward.adapters import proc
from steward.adapters.proc import ProcessKey
from steward.model.ids import NodeName
from steward.model.instance import InstanceState
from steward.ports import Retryable
from steward_bed.providers.local import FAULTS, MACHINES, LocalProvider
from steward_bed.providers.local_machine import (
    REFUSE_LAUNCH,
    Machine,
    Program,
    freeze,
    kill_program,
    own_environment,
    power_off,
    power_on,
    restart_programs,
    thaw,
)
from steward_bed.wait import wait_until
from tests.contract.provider import SLOT, ProviderContract


@pytest.fixture
def bed_dir(tmp_path: Path) -> Path:
    # As slurmd with its slurmstepd: a process detaches itself and its parent ends.
    slurmd = ["/bin/sh", "-c", f"(setsid sh -c 'echo $$ > {tmp_path}/orphan-%n; exec sleep 1000' &); exec sleep 1000"]
    programs = [
        {"name": "slurmd", "argv": slurmd, "env": {}, "log": str(tmp_path / "slurmd-%n.log")},
        {"name": "agent", "argv": ["/bin/sleep", "1000"], "env": {}, "log": str(tmp_path / "agent-%n.log")},
    ]
    (tmp_path / MACHINES).write_text(json.dumps({"programs": programs}))
    (tmp_path / "faults").mkdir()
    return tmp_path


@pytest.fixture
def provider(bed_dir: Path) -> Iterator[LocalProvider]:
    made = LocalProvider(bed_dir)
    yield made
    for instance in made.instances():
        made.terminate(instance)


def machine(provider: LocalProvider) -> Machine:
    found = provider.machine(NodeName("n1"))
    assert found is not None
    return found


def boot_id(bed_dir: Path) -> str:
    return (bed_dir / "nodes" / "n1" / "boot_id").read_text()


def orphan(bed_dir: Path) -> ProcessKey:
    """The process that detached itself from slurmd."""
    path = bed_dir / "orphan-n1"
    wait_until("slurmd has left an orphan", lambda: path.exists() and path.read_text().strip(), 30)
    seen = proc.look(int(path.read_text()))
    assert seen is not None
    return seen.process


class TestLocalProvider(ProviderContract):
    """The contract of all providers."""


def test_the_agent_finds_the_instance_id_and_a_boot_id_of_this_boot(provider: LocalProvider, bed_dir: Path) -> None:
    made = provider.launch(SLOT, "t1")
    assert (bed_dir / "nodes" / "n1" / "instance_id").read_text().strip() == made.id
    first = boot_id(bed_dir)
    provider.reboot(made.id, "r1")
    assert boot_id(bed_dir) != first


def test_the_same_reboot_token_reboots_once(provider: LocalProvider, bed_dir: Path) -> None:
    made = provider.launch(SLOT, "t1")
    provider.reboot(made.id, "r1")
    rebooted = boot_id(bed_dir)
    provider.reboot(made.id, "r1")
    assert boot_id(bed_dir) == rebooted


def test_a_reboot_that_was_done_but_not_noted_is_not_done_again(provider: LocalProvider, bed_dir: Path) -> None:
    made = provider.launch(SLOT, "t1")
    record = bed_dir / "instances" / f"{made.id}.json"
    before = record.read_text()
    provider.reboot(made.id, "r1")
    rebooted = boot_id(bed_dir)
    record.write_text(before)  # as if the caller had died before its note
    provider.reboot(made.id, "r1")
    assert boot_id(bed_dir) == rebooted


def test_a_launch_that_was_noted_but_not_begun_is_begun_by_the_next_try(provider: LocalProvider, bed_dir: Path) -> None:
    plan = (bed_dir / MACHINES).read_text()
    (bed_dir / MACHINES).unlink()
    with pytest.raises(Retryable):
        provider.launch(SLOT, "t1")
    (noted,) = provider.instances().values()
    assert noted.state is InstanceState.PENDING
    (bed_dir / MACHINES).write_text(plan)
    assert provider.launch(SLOT, "t1").id == noted.id
    assert provider.instances()[noted.id].state is InstanceState.RUNNING


def test_many_callers_with_one_token_get_one_machine(provider: LocalProvider) -> None:
    with ThreadPoolExecutor(4) as callers:
        made = list(callers.map(lambda _: provider.launch(SLOT, "t1").id, range(8)))
    assert len(set(made)) == 1


def test_a_slot_whose_machine_is_still_on_gets_no_second_one(provider: LocalProvider) -> None:
    made = provider.launch(SLOT, "t1")
    with pytest.raises(Retryable, match=f"{made.id} still has this name; terminate it first"):
        provider.launch(SLOT, "t2")


def test_without_capacity_a_launch_is_refused_and_nothing_is_noted(provider: LocalProvider, bed_dir: Path) -> None:
    (bed_dir / FAULTS / REFUSE_LAUNCH).touch()
    with pytest.raises(Retryable, match=r"^capacity"):
        provider.launch(SLOT, "t1")
    assert not provider.instances()


def test_termination_takes_detached_processes_too(provider: LocalProvider, bed_dir: Path) -> None:
    made = provider.launch(SLOT, "t1")
    left = orphan(bed_dir)
    provider.terminate(made.id)
    assert not proc.is_alive(left)


def test_no_process_is_woken_by_the_end_of_another_when_the_power_is_cut(tmp_path: Path) -> None:
    """The kernel sends SIGHUP and SIGCONT to a stopped process group whose last parent outside dies: an srun would end
    its step, which a power cut gives it no time for."""
    heard = tmp_path / "heard"
    task = (
        f"set -m; for i in $(seq 100); do sh -c 'trap \"echo $i >> {heard}; sleep 1000\" HUP; sleep 1000 & wait' & done"
    )
    (tmp_path / "run").write_text(f"{task}\necho > {tmp_path}/begun\nexec sleep 1000\n")
    programs = [
        {"name": "slurmd", "argv": ["/bin/bash", str(tmp_path / "run")], "env": {}, "log": str(tmp_path / "log")}
    ]
    (tmp_path / MACHINES).write_text(json.dumps({"programs": programs}))
    (tmp_path / "faults").mkdir()
    provider = LocalProvider(tmp_path)
    made = provider.launch(SLOT, "t1")
    wait_until("all of its tasks run", lambda: len(proc.descendants(machine(provider).init)) > 200, 30)
    provider.terminate(made.id)
    assert not heard.exists()


def test_a_machine_whose_processes_are_gone_is_listed_as_stopped(provider: LocalProvider) -> None:
    made = provider.launch(SLOT, "t1")
    whole = machine(provider)
    for each in [whole.init, *(seen.process for seen in proc.descendants(whole.init))]:
        proc.send(each, signal.SIGKILL)
    wait_until("the first process is gone", lambda: not whole.is_on, 30)
    assert provider.instances()[made.id].state is InstanceState.STOPPED


def test_a_frozen_machine_stands_still_as_a_whole_and_goes_on_when_thawed(
    provider: LocalProvider, bed_dir: Path
) -> None:
    provider.launch(SLOT, "t1")
    left = orphan(bed_dir)
    freeze(machine(provider))
    below = proc.descendants(machine(provider).init)
    assert left in [seen.process for seen in below]
    assert all(seen.stopped for seen in below)
    thaw(machine(provider))
    wait_until("all go on", lambda: not any(seen.stopped for seen in proc.descendants(machine(provider).init)), 30)


def test_one_program_can_die_alone_and_come_back(provider: LocalProvider) -> None:
    provider.launch(SLOT, "t1")
    whole = machine(provider)
    slurmd, agent = whole.program("slurmd"), whole.program("agent")
    kill_program(whole, "agent")
    wait_until("the agent is dead", lambda: whole.program("agent") is None, 30)
    restart_programs(whole)
    wait_until("the agent is back", lambda: whole.program("agent") is not None, 30)
    assert whole.program("agent") != agent
    assert whole.program("slurmd") == slurmd


LAUNCH = """
import sys
from pathlib import Path
from steward_bed.providers.local import LocalProvider
from steward.model.instance import Slot
from steward.model.ids import NodeName
LocalProvider(Path(sys.argv[1])).launch(Slot(node=NodeName("n1"), group="workers"), "t1")
"""


def test_a_machine_outlives_a_caller_who_is_killed_while_it_starts(provider: LocalProvider, bed_dir: Path) -> None:
    """One whose agent alone has begun is ended by nobody, and no later machine of the node could have an agent."""
    os.mkfifo(bed_dir / "agent-n1.log")  # its last program begins when somebody reads
    head = Program(
        name="stewardd",
        argv=(sys.executable, "-c", LAUNCH, str(bed_dir)),
        env=own_environment({}),
        log=bed_dir / "head.log",
    )
    heads = power_on("stewardd", (head,), cwd=bed_dir, state=bed_dir / "head", keep_orphans=False)
    try:
        began = orphan(bed_dir)
        kill_program(heads, "stewardd")
        with (bed_dir / "agent-n1.log").open():
            wait_until("the machine is whole", lambda: machine(provider).program("agent") is not None, 30)
            after = machine(provider).state.with_suffix(".programs.log")
            wait_until("its first process has got over it", after.exists, 30)
        assert began in [seen.process for seen in proc.descendants(machine(provider).init)]
        assert provider.launch(SLOT, "t1").state is InstanceState.RUNNING
    finally:
        power_off(heads)


def test_a_new_machine_has_an_empty_disk_and_a_rebooted_one_keeps_it(provider: LocalProvider, bed_dir: Path) -> None:
    data = bed_dir / "nodes" / "n1" / "data"
    made = provider.launch(SLOT, "t1")
    data.touch()
    provider.reboot(made.id, "r1")
    assert data.exists()
    provider.terminate(made.id)
    provider.launch(SLOT, "t2")
    assert not data.exists()


def test_a_program_that_cannot_be_started_is_named_and_the_next_try_may_work(
    provider: LocalProvider, bed_dir: Path
) -> None:
    good = (bed_dir / MACHINES).read_text()
    plan = json.loads(good)
    plan["programs"][1]["argv"] = ["/does/not/exist"]
    (bed_dir / MACHINES).write_text(json.dumps(plan))
    with pytest.raises(Retryable, match=r"n1: cannot be switched on: cannot execute /does/not/exist"):
        provider.launch(SLOT, "t1")
    assert str(bed_dir).encode() not in b"".join(_command_lines())
    (bed_dir / MACHINES).write_text(good)
    assert provider.launch(SLOT, "t1").state is InstanceState.RUNNING


def test_without_its_directory_nothing_can_be_known(tmp_path: Path) -> None:
    with pytest.raises(Retryable, match="is the test bed up"):
        LocalProvider(tmp_path / "gone").instances()


def test_a_pid_that_was_given_to_another_process_is_not_ours() -> None:
    me = proc.look(os.getpid())
    assert me is not None
    before = ProcessKey(pid=os.getpid(), started=me.process.started - 1)
    assert proc.is_alive(me.process)
    assert not proc.is_alive(before)
    assert not proc.send(before, signal.SIGCONT)


def _command_lines() -> Iterator[bytes]:
    for seen in proc.all_processes():
        try:
            yield Path(f"/proc/{seen.process.pid}/cmdline").read_bytes()
        except OSError:
            continue
