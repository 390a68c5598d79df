"""What a deep check measures on one node alone: healthy ones pass, broken ones are found, and budgets hold."""

import errno
import json
import os
import signal
import time
from pathlib import Path

import pytest

from steward.deep.gpu import check_gpus, judge_dcgm, judge_gpus
from steward.deep.memory import BLOCK, PATTERNS, allocate, check_memory, check_patterns, judge_memory, memory_room
from steward.deep.stress import BLOCK as DISK_BLOCK
from steward.deep.stress import KNOWN, check_cpu, check_disk, compute_round, judge_cores
from steward.deep.tell import MeasureMaker
from steward.deep.workers import Budget, TorchRunner, WorkerAnswer, on_every_core
from steward.model.deep import Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName

HERE = MeasureMaker(NodeName("n1"))
CORES = len(os.sched_getaffinity(0))
DCGM = Path(__file__).parents[2] / "recordings" / "dcgm"


class Forgetful:
    """Memory in which one bit is always read as set."""

    def __init__(self, size: int) -> None:
        self._content = bytearray(size)

    def __setitem__(self, where: slice, what: bytes) -> None:
        self._content[where] = what

    def __getitem__(self, where: slice) -> bytearray:
        got = self._content[where]
        got[17] |= 1
        return got


def cpu(known: str = KNOWN) -> Measure:
    """What all cores said; on a busy machine some need more than the shortest time to say anything."""
    for seconds in (0.3, 3.0, 20.0):
        own, *_ = check_cpu(HERE, Budget.of(seconds), known=known)
        if own.outcome is not Outcome.UNKNOWN and own.text.startswith(f"{CORES} "):
            break
    return own


def test_every_core_that_calculates_finds_the_known_answer() -> None:
    assert compute_round() == KNOWN


def test_a_good_node_passes_and_its_speed_is_told() -> None:
    own = cpu()
    assert (own.outcome, own.unit) == (Outcome.PASSED, "rounds/s")
    assert own.value > 1


def test_cores_that_find_another_answer_fail_the_node() -> None:
    own = cpu(known="another answer")
    assert own.outcome is Outcome.FAILED
    assert own.text.startswith(f"{CORES} of {CORES} cores calculated wrongly: ")


def test_a_core_that_does_not_answer_is_unknown() -> None:
    told = [
        WorkerAnswer(core=0, answer={"rounds": 5, "wrong": 0, "seconds": 1.0}),
        WorkerAnswer(core=1, lost="ended by SIGBUS"),
    ]
    said = judge_cores(HERE, told, 1.0)
    assert (said.outcome, said.text) == (Outcome.UNKNOWN, "1 of 2 cores did not answer: ended by SIGBUS")


def test_a_worker_that_never_ends_is_killed() -> None:
    def work(number: int, budget: Budget) -> dict[str, float | str]:
        while True:
            time.sleep(1)

    told = on_every_core(work, Budget.of(0.1))
    assert {one.lost for one in told} == {"no end in time, or killed"}


def test_a_worker_that_dies_is_told_at_once() -> None:
    def work(number: int, budget: Budget) -> dict[str, float | str]:
        os.kill(os.getpid(), signal.SIGTERM)
        return {}

    (told,) = on_every_core(work, Budget.of(600.0), cores=1)
    assert told.lost == "ended by SIGTERM"


def test_good_memory_keeps_all_patterns_and_its_bandwidth_is_told() -> None:
    kept, speed = check_memory(HERE, Budget.of(0.5), share=0.5, most_bytes=4 * BLOCK)
    assert kept.outcome is Outcome.PASSED
    assert 0 < kept.value <= 4 * BLOCK / 2**20
    assert (speed.outcome, speed.unit) == (Outcome.PASSED, "MB/s")


def test_memory_that_forgets_a_bit_fails_without_telling_where() -> None:
    answer = check_patterns([Forgetful(BLOCK), bytearray(BLOCK)], Budget.of(0.05))
    assert answer["wrong"] >= 1
    (said,) = judge_memory(HERE, [WorkerAnswer(core=0, answer=answer)], 1.0)
    assert said.outcome is Outcome.FAILED
    assert said.text.startswith("memory did not keep what was written: ")


def test_good_memory_of_any_pattern_has_no_wrong_block() -> None:
    for seconds in (0.3, 3.0, 30.0):  # on a busy machine all patterns need more than the shortest time
        answer = check_patterns([bytearray(BLOCK)], Budget.of(seconds))
        assert answer["wrong"] == 0
        if answer["passes"] >= len(PATTERNS):
            break
    assert answer["passes"] >= len(PATTERNS)


class Slow(bytearray):
    """Memory of a machine that others use, too."""

    def __getitem__(self, where: slice) -> bytearray:  # type: ignore[override]
        time.sleep(0.01)
        return bytearray(super().__getitem__(where))


def test_slow_memory_is_read_back_only_as_far_as_time_allows() -> None:
    blocks = [Slow(BLOCK) for _ in range(20)]
    answer = check_patterns(blocks, Budget.of(0.5))
    assert 1 <= answer["blocks"] < 20


def test_no_more_memory_is_taken_than_asked() -> None:
    assert len(allocate(3 * BLOCK + 1, Budget.of(5))) == 3
    assert allocate(BLOCK - 1, Budget.of(5)) == []


def test_too_little_room_is_skipped() -> None:
    (said,) = check_memory(HERE, Budget.of(0.5), share=0.5, most_bytes=BLOCK - 1)
    assert said.outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("line", "limit", "usage"),
    [
        ("0::/slurm/job", "slurm/job/memory.max", "slurm/job/memory.current"),
        ("0::/slurm/job", "slurm/memory.max", "slurm/memory.current"),
        ("9:memory:/slurm", "memory/slurm/memory.limit_in_bytes", "memory/slurm/memory.usage_in_bytes"),
    ],
)
def test_room_is_what_the_tightest_cgroup_leaves(tmp_path: Path, line: str, limit: str, usage: str) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 2000000 kB\nMemAvailable:  1000000 kB\n")
    (proc / "self/cgroup").write_text(line + "\n")
    assert memory_room(proc, groups) == 1_000_000 * 1024
    (groups / limit).parent.mkdir(parents=True)
    (groups / limit).write_text("500000\n")
    (groups / usage).write_text("200000\n")
    assert memory_room(proc, groups) == 300_000
    (groups / limit).write_text("max\n")
    assert memory_room(proc, groups) == 1_000_000 * 1024


def test_a_disk_is_written_and_read_and_leaves_nothing(tmp_path: Path) -> None:
    wrote, read = check_disk(HERE, Budget.of(2), tmp_path, 2 * DISK_BLOCK)
    assert {wrote.outcome, read.outcome} == {Outcome.PASSED}
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_unknown_and_no_fault(tmp_path: Path) -> None:
    (said,) = check_disk(HERE, Budget.of(1), tmp_path / "none", DISK_BLOCK)
    assert said.outcome is Outcome.UNKNOWN
    assert os.strerror(errno.ENOENT) in said.text


def test_without_a_gpu_the_gpu_is_skipped(tmp_path: Path) -> None:
    (said,) = check_gpus(HERE, Budget.of(1), torch=TorchRunner(), dcgm_level=2, dev=tmp_path)
    assert (said.outcome, said.text) == (Outcome.SKIPPED, "no GPU")


def gpu_line(gpu: int, value: float, wrong: int = 0) -> str:
    return json.dumps(
        {"check": "gpu.gemm", "gpu": gpu, "value": value, "unit": "TFLOP/s", "wrong": wrong, "text": "no"}
    )


def test_the_slowest_gpu_stands_for_the_node_and_one_that_errs_fails_it() -> None:
    (slow,) = judge_gpus(HERE, f"{gpu_line(0, 600.0)}\n{gpu_line(1, 300.0)}\n", 1.0)
    assert (slow.value, slow.text) == (300.0, "2 GPUs, the slowest is 1")
    (bad,) = judge_gpus(HERE, f"{gpu_line(0, 600.0)}\n{gpu_line(1, 600.0, wrong=1)}\n", 1.0)
    assert (bad.outcome, bad.text) == (Outcome.FAILED, "GPU 1: no")
    (none,) = judge_gpus(HERE, '{"error": "no GPU seen"}\nnoise\n', 1.0)
    assert none.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("sample", "outcome", "words"),
    [
        ("good.json", Outcome.PASSED, "level 2: 4 results passed"),
        ("bad_memory.json", Outcome.FAILED, "level 2: Memory on GPU 1 failed: A DBE was detected"),
        ("bad_memory_dcgm3.json", Outcome.FAILED, "level 2: GPU Memory on GPU 1 failed: 1 uncorrectable error"),
        ("set_up.json", Outcome.UNKNOWN, "level 2: Denylist could not be done"),
        ("cuda_in_use.json", Outcome.UNKNOWN, "level 2: Diagnostic could not be done"),
    ],
)
def test_dcgms_word_is_a_fault_only_where_it_is_about_hardware(sample: str, outcome: Outcome, words: str) -> None:
    said = judge_dcgm(HERE, (DCGM / sample).read_text(), 2, 5.0)
    assert said.outcome is outcome
    assert said.text.startswith(words)


@pytest.mark.parametrize(
    "text", ["", "Error: unable to connect", "{", "[]", '{"a": {"test_categories": [1, {"tests": 3}]}}']
)
def test_garbage_from_dcgm_is_unknown(text: str) -> None:
    assert judge_dcgm(HERE, text, 2, 1.0).outcome is Outcome.UNKNOWN
