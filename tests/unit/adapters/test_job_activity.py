"""Which jobs have processes here, and what the network carries, read from a /proc and a /sys of files."""

import os
from pathlib import Path
from threading import Thread

from steward.adapters.node.job_processes import fabric_bytes, jobs_here, network_bytes, processes
from steward.model.ids import JobId
from tests.fakes.until import FACT_S

J7, J8 = JobId(7), JobId(8)
USERS = {J7: os.getuid(), J8: os.getuid()}
"""The files of this /proc are ours."""
NET = """Inter-|   Receive                                                |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo: 999999   1 0 0 0 0 0 0 999999 1 0 0 0 0 0 0
  eth0: 1000     1 0 0 0 0 0 0 500 1 0 0 0 0 0 0
"""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.proc, self.sys = folder / "proc", folder / "sys"
        (self.proc / "net").mkdir(parents=True)
        (self.proc / "net" / "dev").write_text(NET)

    def process(self, pid: int, *, cgroup: str = "0::/", environ: str = "") -> None:
        place = self.proc / str(pid)
        place.mkdir()
        (place / "cgroup").write_text(f"{cgroup}\n")
        (place / "environ").write_text(environ)

    def counter(self, name: str, words: int) -> None:
        file = self.sys / "class/infiniband/mlx5_0/ports/1" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{words}\n")


def test_a_process_belongs_to_the_job_of_its_cgroup_or_else_of_its_environment(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.process(10, cgroup="0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0")
    machine.process(11, cgroup="4:freezer:/slurm/uid_0/job_8/step_batch")
    machine.process(12, environ="A=1\0SLURM_JOB_ID=7\0B=2\0")
    machine.process(13, environ="NOT_SLURM_JOB_ID=7\0")
    machine.process(14, cgroup="0::/job_77", environ="SLURM_JOB_ID=77\0")
    assert sorted(processes(USERS, machine.proc)) == [(10, 7), (11, 8), (12, 7)]
    assert processes({}, machine.proc) == []


def test_of_a_user_without_a_job_here_no_memory_is_read(tmp_path: Path) -> None:
    """A page of it may be a file that nobody serves: who reads it hangs."""
    machine = Machine(tmp_path)
    machine.process(10, environ="SLURM_JOB_ID=7\0")
    machine.process(11)
    (tmp_path / "proc" / "11" / "environ").unlink()
    os.mkfifo(tmp_path / "proc" / "11" / "environ")
    os.chown(tmp_path / "proc" / "11", os.getuid() + 1, -1)
    found: list[tuple[int, JobId]] = []
    look = Thread(target=lambda: found.extend(processes({J7: os.getuid()}, machine.proc)), daemon=True)
    look.start()
    look.join(FACT_S)
    assert found == [(10, J7)]


def test_who_says_in_his_environment_that_anothers_job_is_his_adds_nothing_to_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.process(10, environ="SLURM_JOB_ID=7\0")
    machine.process(11, cgroup="0::/job_8/step_0", environ="SLURM_JOB_ID=7\0")
    machine.process(12, cgroup="0::/user.slice/user-9.slice/user@9.service/job_7")
    assert jobs_here({J7: os.getuid() + 1}, machine.proc) == frozenset()
    assert jobs_here({J7: os.getuid() + 1, J8: os.getuid() + 1}, machine.proc) == {J8}


def test_the_networks_are_summed_with_loopback_and_what_passes_the_kernel_by_apart(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.counter("counters/port_xmit_data", 100)
    machine.counter("counters/port_rcv_data", 25)
    machine.counter("hw_counters/rx_bytes", 7)  # of EFA
    assert network_bytes(machine.proc) == 2 * 999999 + 1500
    assert fabric_bytes(machine.sys) == 4 * 125 + 7


def test_what_ends_meanwhile_is_left_out(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (machine.proc / "10").mkdir()
    assert jobs_here(USERS, machine.proc) == frozenset()
