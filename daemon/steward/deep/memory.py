"""The measure of memory: fill it with patterns, read them back, and time both."""

import contextlib
import mmap
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from steward.deep.tell import MeasureMaker
from steward.deep.workers import Budget, WorkerAnswer, on_every_core
from steward.model.deep import Measure

BLOCK = 8 << 20
_PIECE = 1 << 20
_KEPT_FREE = 0.15
"""The share of the machine's memory to leave free, because other programs may grow meanwhile."""
_FILL_SHARE = 0.3
"""The share of the time for allocating memory; the rest is for the patterns."""
_WRITE_SHARE = 0.4
"""The share of the remaining time for writing a pattern; reading it back takes longer."""
PATTERNS = (0x00, 0xFF, 0x55, 0xAA, 0x33)
_FILES = {
    "": ("memory.max", "memory.current"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes"),
}
_NO_LIMIT = 1 << 60


class Block(Protocol):
    """`BLOCK` bytes of memory."""

    def __setitem__(self, where: slice, what: bytes, /) -> None: ...

    def __getitem__(self, where: slice, /) -> bytes | bytearray: ...


def check_memory(here: MeasureMaker, budget: Budget, *, share: float, most_bytes: int) -> list[Measure]:
    """Measure `share` of the memory that is free and allowed, at most `most_bytes`, with all cores together."""
    began = time.monotonic()
    wanted = min(int(memory_room() * share), most_bytes)
    if wanted < BLOCK:
        return [here.skipped("memory.keep", f"less than {BLOCK >> 20} MiB may be used")]
    workers = min(len(os.sched_getaffinity(0)), wanted // BLOCK)

    held: list[Block] = []
    """Kept until the worker ends: freeing gigabytes takes seconds, for which the answer must not wait."""

    def work(number: int, mine: Budget) -> dict[str, float | str]:
        held.extend(allocate(wanted // workers, mine.part(_FILL_SHARE)))
        return dict(check_patterns(held, mine))

    answers = on_every_core(work, budget, cores=workers)
    return judge_memory(here, answers, time.monotonic() - began)


def allocate(size: int, budget: Budget) -> list[Block]:
    """Return blocks of at most `size` bytes in all, less if time or the machine's memory runs short."""
    blocks: list[Block] = []
    spare = int(total() * _KEPT_FREE)
    while (len(blocks) + 1) * BLOCK <= size and available() > spare + BLOCK and (budget.left_s > 0 or not blocks):
        block = mmap.mmap(-1, BLOCK)
        with contextlib.suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_HUGEPAGE)
        _write(block, bytes(_PIECE))
        blocks.append(block)
    return blocks


def check_patterns(blocks: Sequence[Block], budget: Budget) -> dict[str, float]:
    """Write each pattern to all blocks, then read the blocks back, until the budget is spent.

    `blocks` in the answer is how many blocks were read back.
    """
    # All blocks are written before any is read, so that reads come from the memory and not from a cache.
    wrong, moved, spent, passes, kept = 0, 0, 0.0, 0, 0
    while blocks and (budget.left_s > 0 or passes == 0):
        pattern = _pattern(passes)
        began = time.process_time()  # CPU time: the load of other programs must not count
        written = 0
        for block in _in_time(blocks, budget.part(_WRITE_SHARE)):
            _write(block, pattern)
            written += 1
        differs = [_differs(block, pattern) for block in _in_time(blocks[:written], budget)]
        spent += time.process_time() - began
        wrong += sum(differs)
        moved += (written + len(differs)) * BLOCK
        kept = max(kept, len(differs))
        passes += 1
    return {"blocks": kept, "wrong": wrong, "moved": moved, "seconds": spent, "passes": passes}


def _in_time(blocks: Sequence[Block], budget: Budget) -> Iterator[Block]:
    """Yield the blocks while there is time; the first one in any case."""
    for number, block in enumerate(blocks):
        if number and budget.left_s <= 0:
            return
        yield block


def judge_memory(here: MeasureMaker, told: list[WorkerAnswer], seconds: float) -> list[Measure]:
    wrong = sum(float(one.answer.get("wrong", 0)) for one in told)
    lost = [one.lost or str(one.answer.get("error", "")) for one in told if one.lost or "error" in one.answer]
    size = sum(float(one.answer.get("blocks", 0)) for one in told) * BLOCK / 2**20
    if wrong:
        blocks = f"{wrong:.0f} blocks of {BLOCK >> 20} MiB"
        return [here.bad("memory.keep", f"memory did not keep what was written: {blocks}", wrong, "blocks", seconds)]
    if lost:
        why = f"{len(lost)} of {len(told)} workers gave no result: {lost[0]}"
        return [here.unknown("memory.keep", why, seconds)]
    if not size:
        return [here.skipped("memory.keep", "no memory could be allocated")]
    passes = min(float(one.answer["passes"]) for one in told)
    speed = sum(_speed(one) for one in told)
    return [
        here.good("memory.keep", size, "MiB", f"{passes:.0f} patterns", seconds),
        here.good("memory.bandwidth", speed, "MB/s", f"{len(told)} cores", seconds),
    ]


def _speed(one: WorkerAnswer) -> float:
    return float(one.answer["moved"]) / max(float(one.answer["seconds"]), 1e-6) / 1e6


def _pattern(turn: int) -> bytes:
    return bytes([PATTERNS[turn % len(PATTERNS)] ^ (turn // len(PATTERNS) & 0xFF)]) * _PIECE


def _write(block: Block, piece: bytes) -> None:
    for at in range(0, BLOCK, _PIECE):
        block[at : at + _PIECE] = piece


def _differs(block: Block, piece: bytes) -> bool:
    return any(block[at : at + _PIECE] != piece for at in range(0, BLOCK, _PIECE))


def memory_room(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that the machine and the tightest of our cgroups have left; 0 if unknown."""
    return max(0, min([available(proc), *_cgroup_rooms(proc, cgroups)]))


def available(proc: Path = Path("/proc")) -> int:
    """Return MemAvailable in bytes; 0 if it cannot be read."""
    return _meminfo(proc, "MemAvailable")


def total(proc: Path = Path("/proc")) -> int:
    return _meminfo(proc, "MemTotal")


def _meminfo(proc: Path, name: str) -> int:
    try:
        lines = (proc / "meminfo").read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        key, _, rest = line.partition(":")
        if key == name and rest.split()[:1] and rest.split()[0].isdigit():
            return int(rest.split()[0]) * 1024
    return 0


def _cgroup_rooms(proc: Path, cgroups: Path) -> Iterator[int]:
    """Yield the bytes left in each cgroup with a limit, from our own up to the root."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        name = "memory" if "memory" in controllers.split(",") else controllers
        if name not in _FILES:
            continue
        limit_file, usage_file = _FILES[name]
        root = cgroups / name
        for level in _with_parents(root / path.lstrip("/"), root):
            limit, usage = _number(level / limit_file), _number(level / usage_file)
            if limit is not None and usage is not None and limit < _NO_LIMIT:
                yield limit - usage


def _with_parents(path: Path, root: Path) -> Iterator[Path]:
    yield path
    while path != root and root in path.parents:
        path = path.parent
        yield path


def _number(path: Path) -> int | None:
    try:
        word = path.read_text().strip()
    except OSError:
        return None
    return int(word) if word.isdigit() else None
