"""Every process of the node, from a /proc that anybody may write names into."""

import os
import time
from pathlib import Path

from steward.adapters.node.probe import Processes
from steward.model.probe import Process

REST = "1 1 0 -1 4194560 0 0 0 0 {user} {system} 0 0 20 0 1 0 {start} 0 0\n"


def a_process(proc: Path, pid: int, name: str, *, user: int = 3, system: int = 4, start: int = 100) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_bytes(
        f"{pid} ({name}) D 1 ".encode(errors="surrogateescape")
        + REST.format(user=user, system=system, start=start).encode()
    )


def pid_of(process: Process | None) -> int | None:
    return process.pid if process else None


def test_this_process_is_seen_as_the_kernel_knows_it() -> None:
    me = next(process for process in Processes(Path("/proc")).every() if process.pid == os.getpid())
    assert (me.parent, me.uid, me.state) == (os.getppid(), os.geteuid(), "R")
    assert time.time() - 86400 < me.started <= time.time() + 1


def test_its_cpu_time_grows_while_it_works() -> None:
    processes = Processes(Path("/proc"))
    end = time.process_time() + 0.05
    before = next(p.ticks for p in processes.every() if p.pid == os.getpid())
    while time.process_time() < end:
        pass
    assert next(p.ticks for p in processes.every() if p.pid == os.getpid()) > before


def test_a_name_may_hold_anything(tmp_path: Path) -> None:
    a_process(tmp_path, 7, "a) R 0 (b\n\udcff")
    (seen,) = Processes(tmp_path).every()
    assert (seen.pid, seen.state, seen.parent, seen.name, seen.ticks) == (7, "D", 1, "a) R 0 (b ?", 7)


def test_what_ends_while_we_look_or_makes_no_sense_is_left_out(tmp_path: Path) -> None:
    a_process(tmp_path, 7, "there")
    (tmp_path / "8").mkdir()
    (tmp_path / "9").mkdir()
    (tmp_path / "9/stat").write_text("9 (short) S 1\n")
    (tmp_path / "uptime").write_text("1 1")
    assert [process.pid for process in Processes(tmp_path).every()] == [7]


def test_a_process_is_the_same_one_in_every_look(tmp_path: Path) -> None:
    a_process(tmp_path, 7, "there")
    processes = Processes(tmp_path)
    assert processes.every() == processes.every()


def test_a_process_is_found_by_the_begin_of_its_name(tmp_path: Path) -> None:
    a_process(tmp_path, 7, "other")
    processes = Processes(tmp_path, root=os.geteuid())
    assert processes.find("nv-fabric") is None
    a_process(tmp_path, 8, "nv-fabricmanage")
    assert pid_of(processes.find("nv-fabric")) == pid_of(processes.find("nv-fabric")) == 8


def test_a_users_process_of_that_name_is_no_service(tmp_path: Path) -> None:
    """It would hide that the fabric manager is dead; taken before it, that it lives."""
    a_process(tmp_path, 8, "nv-fabricmanage")
    assert Processes(tmp_path, root=os.geteuid() + 1).find("nv-fabric") is None


def test_one_that_was_started_anew_is_found_though_another_has_its_old_number(tmp_path: Path) -> None:
    a_process(tmp_path, 8, "nv-fabricmanage")
    processes = Processes(tmp_path, root=os.geteuid())
    assert pid_of(processes.find("nv-fabric")) == 8
    (tmp_path / "8").rename(tmp_path / "9")
    assert pid_of(processes.find("nv-fabric")) == 9
    a_process(tmp_path, 8, "other")
    (tmp_path / "9").rename(tmp_path / "10")
    assert pid_of(processes.find("nv-fabric")) == 10
    (tmp_path / "10").rename(tmp_path / "gone")
    assert processes.find("nv-fabric") is None
