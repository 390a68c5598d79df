"""The kernel log: /dev/kmsg, or a plain file for a test bed or container without a kernel log of its own.

Only lines of the kernel itself count: a line that a user writes to /dev/kmsg has another facility.
"""

import asyncio
import errno
import math
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from steward.model.text import cause
from steward.ports import Clock, Retryable

MAX_LINE = 1000
BATCH = 256
_RECORD_SIZE = 16384
_RECORD = re.compile(r"^(?P<priority>\d{1,6}),(?P<seq>\d{1,20}),(?P<usec>\d{1,20}),[^;]*;(?P<text>[^\n]*)")
_DMESG_PREFIX = re.compile(r"^(?:<\d{1,3}>)?(?:\[\s*\d+\.\d+\]\s*)?")
_KERNEL = 0
_POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """A line that the kernel itself wrote; `at` is Unix seconds."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """New lines in order, the position after them, and how many reads found that lines were lost."""

    lines: tuple[KernelLine, ...]
    position: int
    inode: int = 0
    lost: int = 0


class KernelLog(Protocol):
    """A log that is open for reading. `read` and `wait` raise Retryable if it cannot be read any more."""

    def read(self) -> Batch | None:
        """Return the new lines, in bounded number; None if there are none."""

    async def wait(self) -> None:
        """Wait until there may be new lines."""

    def close(self) -> None: ...


def open_log(path: Path, *, clock: Clock, position: int | None, inode: int) -> KernelLog:
    """Open the log at `path` after `position`, which is None if this boot's log was never read.

    Raises Retryable if the log cannot be read. A file that does not exist may appear later.
    """
    try:
        is_device = stat.S_ISCHR(path.stat().st_mode)
    except FileNotFoundError:
        is_device = False
    except OSError as error:
        raise _unreadable(path, error) from error
    if is_device:
        return DeviceLog(path, clock=clock, position=-1 if position is None else position)
    return FileLog(path, clock=clock, position=position, inode=inode)


class DeviceLog:
    """/dev/kmsg, read from the start of the ring, which is this boot's, or after `position` (a sequence number)."""

    def __init__(self, path: Path, *, clock: Clock, position: int) -> None:
        self._path = path
        self._clock = clock
        self._position = position
        self._empty_at = -math.inf
        """When the device was last read to its end, on the monotonic clock."""
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise _unreadable(path, error) from error

    async def wait(self) -> None:
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._fd, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._fd)

    def close(self) -> None:
        os.close(self._fd)

    def read(self) -> Batch | None:
        """Return the new lines of at most `BATCH` records; None if there are no records."""
        lines: list[KernelLine] = []
        lost = count = 0
        while count < BATCH:
            try:
                record = os.read(self._fd, _RECORD_SIZE)
            except BlockingIOError:
                self._empty_at = time.monotonic()
                break
            except OSError as error:
                if error.errno != errno.EPIPE:
                    raise _unreadable(self._path, error) from error
                lost += 1  # the ring was overwritten before we read it; the next read finds its oldest record
            else:
                lines += self._line(record)
            count += 1
        return Batch(lines=tuple(lines), position=self._position, lost=lost) if count else None

    def _line(self, record: bytes) -> list[KernelLine]:
        match = _RECORD.match(record.decode("utf-8", "replace"))
        if match is None or int(match["seq"]) <= self._position:
            return []
        self._position = int(match["seq"])
        return [self._dated(match)] if _is_kernels(match) else []

    def _dated(self, match: "re.Match[str]") -> KernelLine:
        """Return the record as a line, with its own time."""
        # A record's time is in microseconds of a clock that NTP does not correct, which drifts by about a second a day.
        # A record that came after the device was last read to its end cannot be older than that read.
        now = time.monotonic()
        age = max(0.0, min(now - int(match["usec"]) / 1e6, now - self._empty_at))
        return KernelLine(at=self._clock.now() - age, text=match["text"][:MAX_LINE])


class FileLog:
    """A plain file, by name: it may appear later, be replaced or cut. Lines look like those of /dev/kmsg or dmesg.

    Without a position, reading begins at the file's present end: older lines may be from another boot.
    """

    def __init__(self, path: Path, *, clock: Clock, position: int | None, inode: int = 0) -> None:
        self._path = path
        self._clock = clock
        self._position = position
        self._inode = inode

    async def wait(self) -> None:
        await asyncio.sleep(_POLL_S)

    def close(self) -> None:
        """Do nothing: the file is not open between two reads."""

    def read(self) -> Batch | None:
        seen = self._stat()
        if self._position is None:
            self._position, self._inode = (seen.st_size, seen.st_ino) if seen else (0, 0)
            return Batch(lines=(), position=self._position, inode=self._inode)
        if seen is None:
            return None
        if seen.st_ino != self._inode or seen.st_size < self._position:
            self._inode, self._position = seen.st_ino, 0
        return self._whole_lines(self._position) if seen.st_size > self._position else None

    def _stat(self) -> os.stat_result | None:
        try:
            return self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def _whole_lines(self, start: int) -> Batch | None:
        """Return the complete lines from `start` on; None if there is none yet."""
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                data = file.read(1 << 16)
        except OSError as error:
            raise _unreadable(self._path, error) from error
        whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == 1 << 16 else b"")
        if not whole:
            return None
        self._position = start + len(whole)
        lines = [line for text in whole.decode("utf-8", "replace").split("\n") for line in self._line(text)]
        return Batch(lines=tuple(lines), position=self._position, inode=self._inode)

    def _line(self, text: str) -> list[KernelLine]:
        match = _RECORD.match(text)
        if match is not None and not _is_kernels(match):
            return []
        plain = match["text"] if match is not None else _DMESG_PREFIX.sub("", text)
        return [KernelLine(at=self._clock.now(), text=plain[:MAX_LINE])] if plain else []


def _unreadable(path: Path, error: OSError) -> Retryable:
    return Retryable(f"cannot read the kernel log {path}: {cause(error)}")


def _is_kernels(match: "re.Match[str]") -> bool:
    return int(match["priority"]) >> 3 == _KERNEL
