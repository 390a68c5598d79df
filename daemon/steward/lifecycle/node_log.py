"""The node's own log of setups: the runner's words and what scripts print, in which nothing stands twice."""

from collections import Counter
from pathlib import Path
from typing import IO

MAX_NODE_LOG = 64 << 20
"""Bytes that one setup may add."""
_FOR_ADMINS = 0o640
"""Scripts print passwords and keys."""
_CHUNK = 1 << 20
_MOST_KEPT = 10_000
"""Different lines of others that are remembered."""


def opened(log: Path) -> tuple[IO[bytes], IO[bytes]]:
    """To append to, and to read from; whatever it was before, it is not for all to read. Raises OSError."""
    log.touch(_FOR_ADMINS)
    log.chmod(log.stat().st_mode & _FOR_ADMINS)
    return log.open("ab", buffering=0), log.open("rb", buffering=0)


class NodeLog:
    """A script may write what it prints to this log by itself, too (`tee -a`, as HyperPod's do): a line that others
    wrote is not written again. So that they have done it by then, what a script prints waits from look to look."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file, self._reader = opened(path)
        self._read_to = self._reader.seek(0, 2)
        self._room = MAX_NODE_LOG
        self._ours: Counter[bytes] = Counter()
        self._others: Counter[bytes] = Counter()
        self._foreign_tail = self._tail = b""
        self._new: list[bytes] = []
        self._due: list[bytes] = []

    def close(self) -> None:
        for file in (self._file, self._reader):
            file.close()

    def add(self, text: bytes) -> None:
        """What a script printed, in pieces."""
        *lines, self._tail = (self._tail + text).split(b"\n")
        self._new += lines
        if len(self._tail) > _CHUNK:
            self._new.append(self._tail)
            self._tail = b""

    def follow(self) -> None:
        """Write what was added before the last call."""
        self._write(self._due)
        self._due, self._new = self._new, []

    def say(self, line: str) -> None:
        """A line of the runner's own, behind all that was added."""
        last = [self._tail] if self._tail else []
        self._write([*self._due, *self._new, *last])
        self._due, self._new, self._tail = [], [], b""
        own = line.encode("ascii")
        self._ours[own] += 1
        self._file.write(own + b"\n")

    def _write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        self._look()
        fresh = [line for line in lines if not _took(self._others, line)]
        text = b"".join(line + b"\n" for line in fresh)[: self._room]
        self._room -= len(text)
        self._ours.update(fresh)
        self._file.write(text)

    def _look(self) -> None:
        """At what others have written since."""
        size = self._reader.seek(0, 2)
        if not self._read_to <= size <= self._read_to + 4 * _CHUNK:  # rotated by truncation, or too much to compare
            self._read_to, self._foreign_tail = size, b""
            self._ours.clear()
        self._reader.seek(self._read_to)
        *lines, self._foreign_tail = (self._foreign_tail + self._reader.read(size - self._read_to)).split(b"\n")
        self._read_to = size
        self._others.update(line for line in lines if not _took(self._ours, line))
        if len(self._others) > _MOST_KEPT:
            self._others.clear()


def _took(lines: Counter[bytes], line: bytes) -> bool:
    """One of them, when there is one."""
    if lines[line] > 1:
        lines[line] -= 1
        return True
    return lines.pop(line, 0) > 0
