"""The agent's senses on this machine."""

import os
import sys
import threading
from pathlib import Path

import pytest

from steward.adapters.node.nvml import with_missing
from steward.adapters.node.probe import KEEP_S, LocalProbes, SharedLooks
from steward.checks import CHECKS
from steward.checks.check import Check
from steward.model.probe import (
    DiskUsage,
    Gpu,
    HeadClock,
    ListProcesses,
    Probe,
    QueryGpus,
    Raw,
    ReadFiles,
    ReadTree,
    RunProgram,
)
from tests.fakes.until import FACT_S, until


def look(probe: ReadFiles | DiskUsage | RunProgram | HeadClock) -> Raw:
    return LocalProbes(skew_s=lambda: 0.25).look(probe)


def a_program(path: Path, text: str) -> tuple[str, ...]:
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return (str(path),)


def test_files_are_read_and_an_absent_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text \xff")
    raw = look(ReadFiles(paths=(str(tmp_path / "a"), str(tmp_path / "b"))))
    assert raw.files == {str(tmp_path / "a"): "text \ufffd", str(tmp_path / "b"): None}


def test_a_file_that_cannot_be_read_is_a_failed_look(tmp_path: Path) -> None:
    assert "Is a directory" in look(ReadFiles(paths=(str(tmp_path),))).error


def test_disks_are_counted_as_df_counts_them_and_absent_paths_are_left_out(tmp_path: Path) -> None:
    raw = look(DiskUsage(paths=(str(tmp_path), "/no/such/path")))
    (disk,) = raw.disks.values()
    seen = os.statvfs(tmp_path)
    assert disk.total == (seen.f_blocks - seen.f_bfree + seen.f_bavail) * seen.f_frsize
    assert 0 <= disk.free <= disk.total
    assert not disk.read_only


@pytest.mark.parametrize(("mode", "is_open"), [(0o1777, True), (0o755, False)])
def test_a_disk_says_whether_all_users_may_write_there_and_which_it_is(
    tmp_path: Path, mode: int, *, is_open: bool
) -> None:
    tmp_path.chmod(mode)
    (disk,) = look(DiskUsage(paths=(str(tmp_path),))).disks.values()
    assert (disk.is_open, disk.device) == (is_open, tmp_path.stat().st_dev)


def test_a_read_only_file_system_is_seen() -> None:
    raw = look(DiskUsage(paths=("/sys",) if not os.access("/sys", os.W_OK) else ("/proc",)))
    assert not raw.error


def test_a_program_tells_status_and_output(tmp_path: Path) -> None:
    argv = a_program(tmp_path / "p", "import os; print(os.environ['NODE']); raise SystemExit(2)")
    raw = look(RunProgram(argv=argv, env=(("NODE", "n1"),)))
    assert (raw.returncode, raw.output.strip(), raw.error) == (2, "n1", "")


def test_stderr_is_the_output_of_a_program_that_says_nothing_else(tmp_path: Path) -> None:
    argv = a_program(tmp_path / "p", "import sys; sys.exit('refused')")
    assert look(RunProgram(argv=argv)).output == "refused"


def test_a_program_that_takes_too_long_or_does_not_exist_is_a_failed_look(tmp_path: Path) -> None:
    argv = a_program(tmp_path / "p", "import time; time.sleep(1000)")
    assert "no end within 0.3 s" in look(RunProgram(argv=argv, timeout_s=0.3)).error
    assert "cannot start" in look(RunProgram(argv=(str(tmp_path / "none"),))).error


def test_a_program_that_prints_without_end_is_cut(tmp_path: Path) -> None:
    argv = a_program(tmp_path / "p", "print('x' * 1000000)")
    assert len(look(RunProgram(argv=argv, max_bytes=100)).output) == 100


def test_a_tree_is_read_where_sysfs_is_and_named_as_asked(tmp_path: Path) -> None:
    port = tmp_path / "class/infiniband/mlx5_0/ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    probe = ReadTree(patterns=("/sys/class/infiniband/*/ports/*/*", "/sys/class/none/*"))
    raw = LocalProbes(skew_s=lambda: None, sys=tmp_path).look(probe)
    folder = "/sys/class/infiniband/mlx5_0/ports/1"
    assert raw.files == {f"{folder}/state": "4: ACTIVE\n"}


def test_the_heads_clock_is_the_links() -> None:
    assert look(HeadClock()).skew_s == 0.25


def test_without_an_nvidia_driver_there_are_no_gpus_and_no_child_is_started(tmp_path: Path) -> None:
    probes = LocalProbes(skew_s=lambda: None, proc=tmp_path)
    assert probes.look(QueryGpus()) == Raw(gpus=())


@pytest.mark.skipif(Path("/proc/driver/nvidia/gpus").exists(), reason="this machine has an NVIDIA driver")
def test_a_driver_without_nvml_is_a_failed_look_not_a_missing_gpu(tmp_path: Path) -> None:
    (tmp_path / "driver/nvidia/gpus/0000:05:00.0").mkdir(parents=True)
    raw = LocalProbes(skew_s=lambda: None, proc=tmp_path).look(QueryGpus())
    assert raw.gpus is None
    assert "NVML cannot be asked" in raw.error or "nvidia-ml-py is not installed" in raw.error


def test_a_gpu_that_the_driver_lists_and_nvml_does_not_name_is_an_error() -> None:
    gpus = with_missing((Gpu(index=0),), ["0000:05:00.0", "0000:06:00.0"])
    assert [bool(gpu.error) for gpu in gpus] == [False, True]


class Looks:
    """Counts, and holds back its answer while `gate` is closed."""

    def __init__(self) -> None:
        self.asked: list[Probe] = []
        self.gate = threading.Event()
        self.gate.set()
        self.now = 1000.0

    def __call__(self, probe: Probe) -> Raw:
        self.asked.append(probe)
        self.gate.wait(FACT_S)
        return Raw(output=str(len(self.asked)))


@pytest.fixture
def looks() -> Looks:
    return Looks()


@pytest.fixture
def shared(looks: Looks) -> SharedLooks:
    return SharedLooks(looks, now=lambda: looks.now)


def test_equal_looks_at_the_same_moment_are_one_and_others_are_not(looks: Looks, shared: SharedLooks) -> None:
    assert [shared(HeadClock()).output for _ in range(3)] == ["1", "1", "1"]
    assert shared(ListProcesses()).output == "2"


def test_a_later_look_is_a_new_one(looks: Looks, shared: SharedLooks) -> None:
    shared(HeadClock())
    looks.now += KEEP_S + 0.01
    assert shared(HeadClock()).output == "2"


def test_threads_that_ask_the_same_wait_for_one_look_and_others_do_not_wait(looks: Looks, shared: SharedLooks) -> None:
    looks.gate.clear()
    got: list[str] = []
    threads = [threading.Thread(target=lambda: got.append(shared(HeadClock()).output)) for _ in range(4)]
    for thread in threads:
        thread.start()
    until("the first asks", lambda: looks.asked)
    looks.now += 60  # it hangs; old answers are let go meanwhile, the one that is awaited is not
    other = threading.Thread(target=shared, args=(ListProcesses(),))
    other.start()
    until("another question is asked beside it", lambda: len(looks.asked) == 2)
    looks.gate.set()
    for thread in [*threads, other]:
        thread.join(FACT_S)
    assert len(set(got)) == 1
    assert len(looks.asked) == 2


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_look_that_confirms_another_is_never_the_same_one(check: Check) -> None:
    assert check.confirm_s > KEEP_S
