"""A file that is written and read back past the page cache: what the disk keeps, and how fast."""

import contextlib
import mmap
import os
import shutil
import time
from pathlib import Path
from uuid import uuid4

from steward.deep.budget import Budget
from steward.deep.said import Here
from steward.model.deep import Measure

BLOCK = 4 << 20


def check_disk(here: Here, budget: Budget, folder: Path, most_bytes: int) -> list[Measure]:
    """At most `most_bytes` and half of what is free. The file is gone afterwards, also when we are killed: it has no
    name while it is used."""
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
    """A new file without a name, and whether O_DIRECT works on it. Raises OSError."""
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


def _measure(here: Here, fd: int, blocks: int, budget: Budget, how: str) -> list[Measure]:
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
    """(blocks written and synced, seconds). One at least."""
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
    """(blocks that differ, seconds)."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    spent, wrong = 0.0, 0
    for at in range(blocks):
        began = time.monotonic()
        got = os.preadv(fd, [buffer], at * BLOCK)
        spent += time.monotonic() - began
        wrong += got != BLOCK or buffer[:] != content(at)
    return wrong, spent


def content(number: int) -> bytes:
    """What block `number` holds: no block is like another."""
    return (number.to_bytes(8, "big") + bytes(range(248))) * (BLOCK // 256)
