"""Which processes count as slurmstepds that outlived their tasks. Real processes stand in for them."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from steward.adapters.node.job_processes import job_of_cgroups
from steward.adapters.node.stepds import Stepds
from steward.model.ids import JobId
from tests.fakes.until import FACT_S, until

JOB = JobId(1_000_000 + os.getpid())  # two processes that test at once do not see each other's
OTHER = JobId(JOB // 10)  # begins with the same digits
WAITS = "read forever"
"""A shell that waits for ever and has no child."""


@dataclass
class Node:
    """Processes of one node; `conf` is its cluster's slurm.conf."""

    folder: Path
    running: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.conf = self.folder / "slurm.conf"
        self.conf.touch()
        self.stepds = Stepds(self.conf, owner=os.getuid())

    def start(
        self, title: str, script: str = WAITS, *, program: str = "slurmstepd", **env: str
    ) -> "subprocess.Popen[bytes]":
        """A shell under this program's name and title."""
        binary = self.folder / program
        if not binary.exists():
            shutil.copy("/bin/sh", binary)
        process = subprocess.Popen(
            [title, "-c", script],
            executable=binary,
            env={"SLURM_CONF": str(self.conf), "PATH": os.environ["PATH"], **env},
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.running.append(process)
        until("it has its title", lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(title.encode()))
        return process

    def end(self, job: JobId = JOB, before: float | None = None, uid: int = os.getuid()) -> list[str]:
        """Steps that were ended; by default nothing is too young."""
        ended = self.stepds.end_idle(job, uid, time.time() + 1 if before is None else before)
        return sorted(stepd.step for stepd in ended)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    for process in node.running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(FACT_S)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def state(pid: int) -> str:
    """Empty when it has been collected since."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def stepd(job: JobId = JOB, step: str = "0") -> str:
    return f"slurmstepd: [{job}.{step}]"


def test_those_without_a_task_are_killed_and_told(node: Node) -> None:
    step, batch = node.start(stepd()), node.start(stepd(step="batch"))
    assert node.end() == ["0", "batch"]
    assert (step.wait(FACT_S), batch.wait(FACT_S)) == (-9, -9)


def test_one_with_a_living_task_is_left_alone(node: Node) -> None:
    process = node.start(stepd(), "sleep 1000 & wait")
    until("its task runs", lambda: children(process.pid))
    assert node.end() == []
    assert process.poll() is None


def test_a_task_that_has_not_got_its_program_yet_is_no_slurmstepd(node: Node) -> None:
    process = node.start(stepd(), f"exec 3<&0; ( {WAITS} <&3 ) & wait")
    until("it has forked", lambda: children(process.pid))
    assert node.end() == []


def test_a_dead_task_that_nobody_collected_does_not_count(node: Node, tmp_path: Path) -> None:
    process = node.start(stepd(), f"true & touch {tmp_path}/begun; {WAITS}")
    until("its task has begun", (tmp_path / "begun").exists)
    until("its task is dead", lambda: all(state(pid) == "Z" for pid in children(process.pid)))
    assert node.end() == ["0"]


def test_another_users_process_that_claims_the_job_keeps_nothing(node: Node) -> None:
    """Its environment says what its user likes: others' lost runs would stay for a minute."""
    node.start(stepd())
    node.start("sleep", program="sleep", SLURM_JOB_ID=str(JOB))
    assert node.end(uid=os.getuid()) == []
    assert node.end(uid=os.getuid() + 1) == ["0"]


def test_an_orphan_of_the_job_keeps_all_its_slurmstepds(node: Node) -> None:
    node.start(stepd())
    orphan = node.start("python train.py", program="python", SLURM_JOB_ID=str(JOB))
    assert node.end() == []
    orphan.kill()
    orphan.wait(FACT_S)
    assert node.end() == ["0"]


def test_a_task_is_also_known_by_its_cgroup() -> None:
    cgroups = b"9:name=systemd:/system.slice\n0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0\n"
    assert job_of_cgroups(cgroups) == 4242
    assert job_of_cgroups(b"4:freezer:/slurm/uid_1000/job_4242\n") == 4242
    assert job_of_cgroups(b"9:cpu:/user.slice/user-9.slice/job_4243\n4:freezer:/slurm/job_4242\n") == 4242


def test_a_cgroup_that_a_user_made_belongs_to_no_job() -> None:
    """By such a process of another user the lost run of a job would stay for a minute."""
    assert job_of_cgroups(b"0::/user.slice/user-9.slice/user@9.service/job_4242/step_0\n") is None


@pytest.mark.parametrize(
    "title",
    [stepd(OTHER), stepd(JobId(JOB * 10)), f"slurmstepd: {JOB}.0", f"x {stepd()}"],
    ids=["shorter", "longer", "bare", "inside"],
)
def test_a_slurmstepd_of_another_job_is_left_alone(node: Node, title: str) -> None:
    node.start(title)
    assert node.end() == []


def test_a_title_alone_makes_no_slurmstepd(node: Node) -> None:
    node.start(stepd(), program="train")
    assert node.end() == []


def test_a_users_process_is_no_slurmstepd_whatever_it_is_called(node: Node) -> None:
    node.start(stepd())
    node.stepds = Stepds(node.conf, owner=os.getuid() + 1)
    assert node.end() == []


def test_one_that_began_later_belongs_to_the_next_run(node: Node) -> None:
    earlier = time.time() - 2.0
    node.start(stepd())
    assert node.end(before=earlier) == []
    time.sleep(0.1)
    assert node.end(before=time.time()) == ["0"]


def test_another_clusters_job_of_the_same_number_is_left_alone(node: Node, tmp_path: Path) -> None:
    (tmp_path / "other.conf").touch()
    node.start(stepd(), SLURM_CONF=str(tmp_path / "other.conf"))
    assert node.end() == []


def test_a_node_without_a_slurm_conf_of_its_own_has_one_cluster(node: Node, tmp_path: Path) -> None:
    node.start(stepd())
    node.stepds = Stepds(tmp_path / "none.conf", owner=os.getuid())
    assert node.end() == ["0"]


PMIX = tuple(
    text.replace("JOB", f"{JOB}")
    for text in ("tmp/spmix_appdir_{uid}_JOB.0", "spool/pmix.JOB.0", "spool/stepd.slurm.pmix.JOB.0")
)
# Told to end, each of them


def told_to_end(node: Node, *steps: str) -> tuple[Stepds, list["subprocess.Popen[bytes]"]]:
    """Slurmstepds that block SIGTERM, on a node whose spool has a socket of each."""
    node.conf.write_text(f"SlurmdSpoolDir={node.folder}\n")
    for name in (f"n1_{JOB}.4294967291", f"n1_{OTHER}.0"):
        (node.folder / name).touch()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        started = [node.start(step) for step in steps]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return Stepds(node.conf, node="n1", owner=os.getuid()), started


@pytest.mark.parametrize(("told", "are_told"), [((), False), ((0,), False), ((0, 1), True)])
def test_all_slurmstepds_that_were_sent_a_signal_which_slurm_never_sends_them_show_a_shutdown(
    node: Node, told: tuple[int, ...], are_told: bool
) -> None:
    """A slurmstepd blocks it, so it stays pending. Those of other nodes on this machine say nothing."""
    none, _ = told_to_end(node)
    assert not none.are_told_to_end(FACT_S), "and nothing is waited for where none runs"
    stepds, steps = told_to_end(node, stepd(step="batch"), stepd(OTHER))
    for number in told:
        steps[number].terminate()
    assert stepds.are_told_to_end() is are_told


def test_a_slurmstepd_that_is_told_to_end_after_the_agent_is_waited_for(node: Node) -> None:
    """A shutdown tells one process after the other; the agent may look around before the next is told."""
    stepds, steps = told_to_end(node, stepd(step="batch"), stepd(OTHER))
    steps[0].terminate()
    later = threading.Timer(0.1, steps[1].terminate)
    later.start()
    assert stepds.are_told_to_end(FACT_S)
    later.join()


def test_one_that_ends_meanwhile_is_not_waited_for(node: Node) -> None:
    """A job that ends by itself says nothing, and the others are told."""
    stepds, steps = told_to_end(node, stepd(step="batch"), stepd(OTHER))
    steps[0].terminate()
    later = threading.Timer(0.1, steps[1].kill)
    later.start()
    assert stepds.are_told_to_end(FACT_S)
    later.join()


"""What a killed slurmstepd leaves of PMIx."""


def left_behind(node: Node) -> list[Path]:
    """Two folders with something in them, and a socket; slurm.conf says where they are."""
    node.conf.write_text(f"SlurmdSpoolDir={node.folder}/spool\nTmpFS={node.folder}/tmp\n")
    folders = [node.folder / name.format(uid=os.getuid()) for name in PMIX[:2]]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "dstore").touch()
    socket = node.folder / PMIX[2]
    socket.touch()
    return [*folders, socket]


def test_what_a_killed_slurmstepd_left_is_put_out_of_the_way_of_its_steps_next_one(node: Node) -> None:
    left = left_behind(node)
    node.start(stepd())  # the one that asks
    assert node.stepds.set_aside(JOB, 0, os.getuid(), time.monotonic() + FACT_S) == tuple(left)
    assert [path for path in left if path.exists()] == []
    assert len(list(node.folder.glob(f"*/*{JOB}.0.left.*"))) == 3, "and nothing is removed"
    assert node.stepds.set_aside(JOB, 0, os.getuid(), time.monotonic() + FACT_S) == ()


def test_what_lies_there_when_the_step_has_begun_is_its_own(node: Node) -> None:
    left = left_behind(node)
    with pytest.raises(TimeoutError):
        node.stepds.set_aside(JOB, 0, os.getuid(), time.monotonic() - 0.1)
    assert all(path.exists() for path in left)


def test_what_belongs_to_a_living_slurmstepd_another_step_job_or_user_stays(node: Node) -> None:
    left = left_behind(node)
    for job, step, uid in ((JOB, 1, os.getuid()), (OTHER, 0, os.getuid())):
        assert node.stepds.set_aside(JobId(job), step, uid, time.monotonic() + FACT_S) == ()
    strangers = Stepds(node.conf, owner=os.getuid() + 1)
    assert strangers.set_aside(JOB, 0, os.getuid() + 2, time.monotonic() + FACT_S) == ()
    node.start(stepd())
    node.start(stepd())
    assert node.stepds.set_aside(JOB, 0, os.getuid(), time.monotonic() + FACT_S) == ()
    assert all(path.exists() for path in left)


# What an earlier run or attempt left running.


def test_a_process_that_left_the_tree_of_a_step_that_is_over_is_named(node: Node) -> None:
    batch = node.start(stepd(step="batch"), f"sleep 60 & {WAITS}")
    of_run = {"SLURM_JOB_ID": str(JOB), "SLURM_RESTART_COUNT": "1"}
    of_step = node.start("left", program="left", SLURM_STEP_ID="0", **of_run)
    of_old_run = node.start("older", program="older", SLURM_JOB_ID=str(JOB))
    node.start("daemon", program="daemon", **of_run)  # the script's own
    node.start("other", program="other", SLURM_JOB_ID=str(JOB + 1), SLURM_STEP_ID="0")
    until("the script has a task", lambda: children(batch.pid))
    left = node.stepds.left_behind(JOB, os.getuid(), 1)
    assert sorted(left) == sorted([f"{of_step.pid} left", f"{of_old_run.pid} older"])
    assert node.stepds.left_behind(JOB, os.getuid() + 1, 1) == ()


def test_a_process_of_a_step_that_runs_is_not_left_behind(node: Node) -> None:
    node.start(stepd(step="0"))
    node.start("daemon", program="daemon", SLURM_JOB_ID=str(JOB), SLURM_STEP_ID="0")
    assert node.stepds.left_behind(JOB, os.getuid(), 0) == ()
