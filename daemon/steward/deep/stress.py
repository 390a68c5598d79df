"""Measures of one node alone: GPUs, CPUs, memory and disk, one after the other."""

import contextlib
import hashlib
import math
import mmap
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from steward.adapters.process import Failed, run
from steward.deep.gpu import check_gpus, has_gpu
from steward.deep.memory import check_memory
from steward.deep.tell import MeasureMaker, Teller
from steward.deep.workers import Budget, TorchRunner, WorkerAnswer, on_every_core
from steward.model.deep import Measure

_MARGIN_S = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StressLimits:
    memory_share: float = 0.5
    memory_bytes: int = 1 << 50
    disk_folder: Path = Path("/var/tmp")
    disk_bytes: int = 1 << 30
    torch: TorchRunner = field(default_factory=TorchRunner)
    dcgm_level: int = 0


Part = tuple[str, float, Callable[[Budget], list[Measure]]]
"""A part's name, its share of the time left when it starts, and the function that measures."""


def parts(here: MeasureMaker, limits: StressLimits) -> Iterator[Part]:
    gpus = 0.6 if has_gpu() else 0.05
    yield "gpu", gpus, lambda budget: check_gpus(here, budget, torch=limits.torch, dcgm_level=limits.dcgm_level)
    yield "cpu", 0.35, lambda budget: check_cpu(here, budget)
    yield (
        "memory",
        0.6,
        lambda budget: check_memory(here, budget, share=limits.memory_share, most_bytes=limits.memory_bytes),
    )
    yield "disk", 0.6, lambda budget: check_disk(here, budget, limits.disk_folder, limits.disk_bytes)


def check_node(here: MeasureMaker, teller: Teller, budget: Budget, limits: StressLimits) -> None:
    """Measure all parts within the budget, and report each one when it is done."""
    mine = Budget(budget.until - min(_MARGIN_S, budget.left_s / 4))
    for name, share, measure in parts(here, limits):
        teller.progress(name)
        teller.tell(measure(mine.part(share)))


# Arithmetic with a known result on every core, to find cores that calculate wrongly and to measure their speed.

KNOWN = "3aee69797a6aed38404fbac425a02226bc9d1c871d42bc210286a1dfaf92d2ce"
"""The result of a healthy core after one round, the same on all machines: integers, IEEE doubles and SHA-256."""
_NG_FAILED = 2
_DATA = bytes(range(256)) * 1024


def compute_round() -> str:
    """Calculate for one round (about 50 ms), and return the digest of the results."""
    digest = hashlib.sha256()
    for turn in range(40):
        digest.update(_DATA)
        digest.update(pow(3, 10**60 + turn, 2**521 - 1).to_bytes(66, "big"))
    value = 0.5
    for turn in range(1, 60_000):
        value = math.sqrt(value * 1.0000001 + 1.0 / turn) - value / (turn + 3.0)
        value = abs(value) + 0.25
    digest.update(value.hex().encode())
    packed = zlib.compress(_DATA, 1)
    digest.update(zlib.decompress(packed))
    return digest.hexdigest()


def check_cpu(here: MeasureMaker, budget: Budget, *, known: str = KNOWN) -> list[Measure]:
    """Measure the cores; stress-ng gets half of the budget if it is installed."""
    tool = shutil.which("stress-ng")
    own = _verify_cores(here, budget.part(0.5) if tool else budget, known)
    if tool is None:
        return [own, here.skipped("cpu.stress_ng", "stress-ng is not installed")]
    return [own, _stress_ng(here, tool, budget)]


def _verify_cores(here: MeasureMaker, budget: Budget, known: str) -> Measure:
    def work(number: int, mine: Budget) -> dict[str, float | str]:
        rounds, wrong, began = 0, 0, time.process_time()
        while mine.left_s > 0 or rounds == 0:
            wrong += compute_round() != known
            rounds += 1
        return {"rounds": rounds, "wrong": wrong, "seconds": time.process_time() - began}

    began = time.monotonic()
    return judge_cores(here, on_every_core(work, budget), time.monotonic() - began)


def judge_cores(here: MeasureMaker, told: list[WorkerAnswer], seconds: float) -> Measure:
    """Judge the cores: a wrong result fails the node; a core without an answer makes the measure unknown."""
    wrong = [one.core for one in told if one.answer.get("wrong")]
    lost = [one for one in told if one.lost or "rounds" not in one.answer]
    if wrong:
        shown = ",".join(map(str, wrong[:16]))
        return here.bad("cpu.verify", f"{len(wrong)} of {len(told)} cores calculated wrongly: {shown}", seconds=seconds)
    if lost or not told:
        why = lost[0].lost or "no answer" if lost else "no core may be used"
        return here.unknown("cpu.verify", f"{len(lost)} of {len(told)} cores did not answer: {why}", seconds)
    # Per second of CPU time: the load of other programs must not count, a low frequency must.
    speed = sum(float(one.answer["rounds"]) / max(float(one.answer["seconds"]), 1e-6) for one in told)
    return here.good("cpu.verify", speed, "rounds/s", f"{len(told)} cores", seconds)


def _stress_ng(here: MeasureMaker, tool: str, budget: Budget) -> Measure:
    seconds = int(budget.left_s - 1)
    if seconds < 1:
        return here.skipped("cpu.stress_ng", "no time left")
    argv = [tool, "--cpu", "0", "--verify", "--oomable", "--timeout", f"{seconds}s"]
    try:
        done = run(argv, timeout_s=seconds + 1.0, check=False, max_bytes=1 << 20)
    except Failed as error:
        return here.unknown("cpu.stress_ng", str(error), seconds)
    failures = [line for line in (done.text + done.error_text).splitlines() if "fail:" in line]
    if done.returncode == _NG_FAILED and failures:
        return here.bad("cpu.stress_ng", failures[0].strip(), seconds=done.seconds)
    if done.returncode != 0:
        return here.unknown("cpu.stress_ng", f"stress-ng ended with status {done.returncode}", done.seconds)
    return here.good("cpu.stress_ng", done.seconds, "s", "stress-ng --verify", done.seconds)


# A file written and read back past the page cache, to check the content and to measure the speed.

BLOCK = 4 << 20


def check_disk(here: MeasureMaker, budget: Budget, folder: Path, most_bytes: int) -> list[Measure]:
    """Measure the disk under `folder` with a file of at most `most_bytes` and half of the free space.

    The file has no name, so that it is gone afterwards even if this process is killed.
    """
    began = time.monotonic()
    try:
        size = min(most_bytes, shutil.disk_usage(folder).free // 2)
        if size < BLOCK:
            return [here.skipped("disk.write", f"too little room in {folder}")]
        fd, is_direct = open_nameless(folder)
    except OSError as error:
        return [here.unknown("disk.write", f"cannot write in {folder}: {error.strerror}")]
    try:
        return _measure(here, fd, size // BLOCK, budget, "past the cache" if is_direct else "through the cache")
    except OSError as error:
        text = f"input/output in {folder} failed: {error.strerror}"
        return [here.unknown("disk.write", text, time.monotonic() - began)]
    finally:
        os.close(fd)


def open_nameless(folder: Path) -> tuple[int, bool]:
    """Return the descriptor of a new file without a name, and whether O_DIRECT works on it. Raises OSError."""
    path = folder / f".steward-deep-{uuid4().hex}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    for direct in (os.O_DIRECT, 0):
        try:
            fd = os.open(path, flags | direct, 0o600)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            if not direct:
                raise
            continue
        path.unlink()
        return fd, bool(direct)
    raise AssertionError("one of the two returns or raises")


def _measure(here: MeasureMaker, fd: int, blocks: int, budget: Budget, how: str) -> list[Measure]:
    buffer = mmap.mmap(-1, BLOCK)  # aligned, as O_DIRECT wants it
    written, write_s = _write(fd, buffer, blocks, budget.part(0.5))
    wrong, read_s = _read(fd, buffer, written)
    seconds = write_s + read_s
    if wrong:
        text = f"{wrong} of {written} blocks of {BLOCK >> 20} MiB were not read as they were written"
        return [here.bad("disk.write", text, seconds=seconds)]
    size = written * BLOCK / 1e6
    return [
        here.good("disk.write", size / max(write_s, 1e-6), "MB/s", f"{size:.0f} MB {how}", write_s),
        here.good("disk.read", size / max(read_s, 1e-6), "MB/s", f"{size:.0f} MB {how}", read_s),
    ]


def _write(fd: int, buffer: mmap.mmap, blocks: int, budget: Budget) -> tuple[int, float]:
    """Write and sync at least one block, more while there is time; return how many blocks, and the seconds."""
    spent, done = 0.0, 0
    while done < blocks and (budget.left_s > 0 or done == 0):
        buffer[:] = content(done)
        began = time.monotonic()
        if os.pwrite(fd, buffer, done * BLOCK) != BLOCK:
            raise OSError(0, "a short write")
        spent += time.monotonic() - began
        done += 1
    began = time.monotonic()
    os.fsync(fd)
    return done, spent + time.monotonic() - began


def _read(fd: int, buffer: mmap.mmap, blocks: int) -> tuple[int, float]:
    """Read the blocks back, and return how many differ, and the seconds."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    spent, wrong = 0.0, 0
    for at in range(blocks):
        began = time.monotonic()
        got = os.preadv(fd, [buffer], at * BLOCK)
        spent += time.monotonic() - began
        wrong += got != BLOCK or buffer[:] != content(at)
    return wrong, spent


def content(number: int) -> bytes:
    """Return the content of block `number`, different for each block."""
    return (number.to_bytes(8, "big") + bytes(range(248))) * (BLOCK // 256)
