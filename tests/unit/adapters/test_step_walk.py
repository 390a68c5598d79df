"""Which processes belong to a step, with or without cgroups, and which rank each one is. Real processes stand in."""

import os
import signal
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

from steward.adapters import proc
from steward.adapters.node.step_walk import RankName, StepLook, StepWalk, name_in, rank_names
from steward.adapters.node.stepds import Stepd, Stepds
from steward.adapters.proc import ProcessFiles
from tests.fakes.until import until
from tests.unit.adapters.test_stepds import JOB, OTHER, Node
from tests.unit.adapters.test_stepds import node as node

TASKS = "sleep 1000 & sleep 1000 & read forever"


def look(walk: StepWalk) -> dict[str, StepLook]:
    """The job's own; other tests may run steps of theirs."""
    return {one.stepd.step: one for one in walk.look() if one.stepd.job == JOB}


def tasks(walk: StepWalk, step: str = "0") -> list[int]:
    return sorted(one.key.pid for one in look(walk)[step].processes)


def children(pid: int) -> list[int]:
    return sorted(int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def proc_name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


@pytest.fixture
def walk(node: Node) -> StepWalk:
    return StepWalk(node.stepds)


def test_what_is_below_a_steps_slurmstepd_belongs_to_it_and_nothing_else(node: Node, walk: StepWalk) -> None:
    stepd = node.start(f"slurmstepd: [{JOB}.0]", TASKS)
    node.start(f"slurmstepd: [{JOB}.batch]")
    node.start(f"slurmstepd: [{OTHER}.0]", TASKS)
    until("its tasks run", lambda: len(children(stepd.pid)) == 2)
    assert look(walk).keys() == {"0", "batch"}
    assert tasks(walk) == children(stepd.pid)
    assert tasks(walk, "batch") == []


def test_another_look_sees_what_is_new_and_what_has_gone(node: Node, walk: StepWalk) -> None:
    stepd = node.start(f"slurmstepd: [{JOB}.0]", TASKS)
    until("its tasks run", lambda: len(children(stepd.pid)) == 2)
    first, second = tasks(walk)
    os.kill(first, signal.SIGKILL)
    until("it is dead", lambda: (seen := proc.look(first)) is None or seen.dead)
    states = {one.key.pid: one.state for one in look(walk)["0"].processes}
    assert states.pop(first, "Z") == "Z"
    assert states.keys() == {second}
    later = node.start(f"slurmstepd: [{JOB}.1]", TASKS)
    until("they run", lambda: len(children(later.pid)) == 2)
    assert look(walk).keys() == {"0", "1"}


def test_a_process_whose_parent_ended_stays_with_its_step(node: Node, walk: StepWalk) -> None:
    stepd = node.start(f"slurmstepd: [{JOB}.0]", "sh -c 'sleep 1000 & wait' & read forever")
    until("both run", lambda: bool(children(stepd.pid)) and bool(children(children(stepd.pid)[0])))
    task = children(stepd.pid)[0]
    orphan = children(task)[0]
    assert tasks(walk) == sorted((task, orphan))
    os.kill(task, signal.SIGKILL)
    until("it has another parent", lambda: (seen := proc.look(orphan)) is not None and seen.parent != task)
    assert orphan in tasks(walk)


class CountingStepds(Stepds):
    def __init__(self) -> None:
        super().__init__(Path("/nowhere/slurm.conf"))
        self.asked: Counter[int] = Counter()

    def stepd_of(self, seen: proc.Seen) -> Stepd | None:
        self.asked[seen.process.pid] += 1
        return None


def test_a_process_that_is_old_is_asked_once_what_it_is_and_a_new_one_again() -> None:
    stepds, new = CountingStepds(), subprocess.Popen(["sleep", "1000"])
    try:
        walk = StepWalk(stepds)
        for _ in range(12):
            walk.look()
        assert (stepds.asked[1], stepds.asked[new.pid]) == (1, 4)
    finally:
        new.kill()
        new.wait()


def test_a_stopped_process_is_seen_to_be_stopped(node: Node, walk: StepWalk) -> None:
    stepd = node.start(f"slurmstepd: [{JOB}.0]", TASKS)
    until("its tasks run", lambda: len(children(stepd.pid)) == 2)
    first, second = children(stepd.pid)
    os.kill(first, signal.SIGSTOP)
    until("it is stopped", lambda: {one.key.pid: one.state for one in look(walk)["0"].processes}[first] == "T")
    assert {one.key.pid: one.state for one in look(walk)["0"].processes}[second] == "S"


def test_the_rank_of_a_process_is_read_from_its_environment(node: Node, walk: StepWalk) -> None:
    script = "SLURM_PROCID=3 SLURMD_NODENAME=n1 sh -c 'RANK=25 sleep 1000 & wait' & read forever"
    stepd = node.start(f"slurmstepd: [{JOB}.0]", script)
    until("both run", lambda: bool(children(stepd.pid)) and bool(children(children(stepd.pid)[0])))
    task = children(stepd.pid)[0]
    until("the rank's program runs", lambda: proc_name(children(task)[0]) == "sleep")
    names = rank_names(one.key for one in look(walk)["0"].processes)
    found = {key.pid: name for key, name in names.items()}
    assert found[task] == RankName(number=3, is_task=True, node="n1")
    assert found[children(task)[0]] == RankName(number=25, is_task=False, node="n1")


def shown(folder: Path, *pids: int, uid: int) -> None:
    """A copy of /proc that has these processes, as this user's."""
    for pid in pids:
        (folder / str(pid)).mkdir(parents=True)
        (folder / str(pid) / "status").write_text(f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        for name in ("stat", "io"):
            (folder / str(pid) / name).symlink_to(f"/proc/{pid}/{name}")


def is_passed_over(files: ProcessFiles, pid: int) -> bool:
    try:
        files.read(pid, "io", 100)
    except proc.PassedOver:
        return True
    return False


def test_a_process_that_hangs_holds_up_one_look_and_its_users_steps_are_not_wholly_known_meanwhile(
    node: Node, tmp_path: Path
) -> None:
    """As one hangs inside execve: a named pipe that nobody writes to stands in for its `stat`."""
    folder = tmp_path / "proc"
    files = ProcessFiles(str(folder), hangs_s=0.3)
    walk = StepWalk(node.stepds, files)
    his, theirs = (node.start(f"slurmstepd: [{JOB}.{step}]", TASKS) for step in (0, 1))
    until("their tasks run", lambda: len(children(his.pid)) == len(children(theirs.pid)) == 2)
    shown(folder, his.pid, theirs.pid, uid=0)
    shown(folder, *children(his.pid), uid=1000)
    shown(folder, *children(theirs.pid), uid=1001)
    assert [tasks(walk, step) for step in "01"] == [children(his.pid), children(theirs.pid)]

    hung, other = children(his.pid)
    stat = folder / str(hung) / "stat"
    stat.rename(folder / "answers")
    os.mkfifo(stat)
    raised: list[Exception] = []

    def look_that_hangs() -> None:
        try:
            walk.look()
        except TimeoutError as error:
            raised.append(error)

    held_up = threading.Thread(target=look_that_hangs, daemon=True)
    held_up.start()
    until("it hangs", lambda: is_passed_over(files, other))
    looked = look(walk)
    assert {step: one.is_crowded for step, one in looked.items()} == {"0": True, "1": False}
    assert (tasks(walk, "0"), tasks(walk, "1")) == ([], children(theirs.pid))

    os.close(os.open(stat, os.O_WRONLY))
    held_up.join(5.0)
    (folder / "answers").replace(stat)
    assert [str(error) for error in raised] == [f"process {hung} hung"]
    assert [tasks(walk, step) for step in "01"] == [children(his.pid), children(theirs.pid)]
    assert not any(one.is_crowded for one in look(walk).values())


@pytest.mark.parametrize(
    ("environ", "number"),
    [
        (b"A=1\0SLURM_PROCID=2\0", 2),
        (b"SLURM_PROCID=2\0OMPI_COMM_WORLD_RANK=7\0", 7),
        (b"SLURM_PROCID=2\0PMI_RANK=x\0", 2),
        (b"RANK=-1\0", None),
        (b"RANK=99999999999\0", None),
        (b"RANK=4294967296\0", None),
        (b"RANK=\0XRANK=3", None),
        (b"", None),
    ],
)
def test_what_is_no_number_is_no_rank(environ: bytes, number: int | None) -> None:
    name = name_in(environ)
    assert (None if name is None else name.number) == number
