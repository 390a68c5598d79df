"""A process of which the kernel gives no answer holds up one thread, and no look at the processes of others.

A named pipe that nobody writes to stands in for such a file of /proc.
"""

import os
import threading
from pathlib import Path

import pytest

from steward.adapters.proc import PassedOver, ProcessFiles
from tests.fakes.until import until

HANGS_S = 0.2
USER, OTHER, ROOT = 1000, 1001, 0
HUNG, HIS, THEIRS, SLURMS = 11, 12, 13, 14


@pytest.fixture
def files(tmp_path: Path) -> ProcessFiles:
    for pid, uid in ((HUNG, USER), (HIS, USER), (THEIRS, OTHER), (SLURMS, ROOT)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(f"Name:\tsh\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        (tmp_path / str(pid) / "io").write_text("rchar: 1\n")
    return ProcessFiles(str(tmp_path), hangs_s=HANGS_S)


def hang(files: ProcessFiles, folder: Path, pid: int) -> tuple[threading.Thread, list[OSError]]:
    """A thread reads a file of the process, and it has been hanging for so long that others pass it over."""
    os.mkfifo(folder / str(pid) / "stat")
    raised: list[OSError] = []

    def read() -> None:
        try:
            files.read(pid, "stat", 100)
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    until("it hangs", lambda: not can_read(files, pid))
    return thread, raised


def can_read(files: ProcessFiles, pid: int) -> bool:
    try:
        return files.read(pid, "io", 100) == b"rchar: 1\n"
    except PassedOver:
        return False


def go_on(folder: Path, pid: int) -> None:
    os.close(os.open(folder / str(pid) / "stat", os.O_WRONLY))


def test_while_a_reading_hangs_nothing_of_that_users_processes_is_read_and_all_of_others(
    files: ProcessFiles, tmp_path: Path
) -> None:
    thread, _ = hang(files, tmp_path, HUNG)
    assert {pid for pid in (HIS, THEIRS, SLURMS) if can_read(files, pid)} == {THEIRS, SLURMS}
    go_on(tmp_path, HUNG)
    thread.join(5.0)
    assert can_read(files, HUNG)
    assert can_read(files, HIS)


def test_the_look_that_waited_so_long_ends_there(files: ProcessFiles, tmp_path: Path) -> None:
    """Another look is under way in its place."""
    thread, raised = hang(files, tmp_path, HUNG)
    go_on(tmp_path, HUNG)
    thread.join(5.0)
    assert [type(error) for error in raised] == [TimeoutError]


def test_of_root_only_the_process_that_hangs_is_passed_over(files: ProcessFiles, tmp_path: Path) -> None:
    """Slurm's own are root's, too."""
    (tmp_path / "15").mkdir()
    for name in ("status", "io"):
        (tmp_path / "15" / name).write_bytes((tmp_path / str(SLURMS) / name).read_bytes())
    thread, _ = hang(files, tmp_path, SLURMS)
    assert can_read(files, 15)
    go_on(tmp_path, SLURMS)
    thread.join(5.0)
