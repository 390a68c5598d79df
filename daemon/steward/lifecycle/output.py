"""The output of a setup: the scripts write to one file, whose content the runner copies.

The node's log gets all output, the head a bounded and harmless part, and the report the last lines.
"""

import time
from collections import Counter, deque
from pathlib import Path
from types import TracebackType
from typing import IO

from steward.adapters.wire.order_messages import MAX_LOG
from steward.model.setup import MAX_LINE, MAX_LINES
from steward.model.text import printable
from steward.ports import Permanent

_CHUNK = 1 << 20
_CUT_TRIES = 20
"""The most reads before the file is cut: a script may write faster than the runner reads."""
_CUT = b"\n[the rest is in the log on the node]\n"
_DROPPED = b"\r\0"
_HARMLESS = bytes(byte if 32 <= byte < 127 or byte in b"\n\t" else ord("?") for byte in range(256))
MAX_NODE_LOG = 64 << 20
"""The most bytes that one setup may add to the node's log."""
_FOR_ADMINS = 0o640
"""The mode of the logs: scripts print passwords and keys."""
_MAX_KEPT = 10_000
"""The most different lines of other writers that are remembered."""


def scripts_log(log: Path) -> Path:
    """Return the path of the file that only the scripts write to, beside the node's log."""
    return log.with_name(f"{log.stem}.scripts{log.suffix}")


class SetupOutput:
    """The output of one setup. The scripts, and programs that they leave in the background, append to `file`."""

    def __init__(self, log: Path, copy: Path) -> None:
        """Open the files. Raises Permanent if the node's log cannot be written."""
        try:
            self._log = NodeLog(log)
            self.file, self._reader = opened(scripts_log(log))
            self._copy = copy.open("ab", buffering=0)
        except OSError as error:
            raise Permanent(f"cannot write {error.filename}: {error.strerror}; correct agent.setup_log") from error
        self._begin = self._read_to = self._size()
        self._copied = self._copy.tell()
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._tail = b""

    def __enter__(self) -> "SetupOutput":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self.file, self._reader, self._copy, self._log):
            file.close()

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines of the programs, without the runner's; printable and bounded."""
        tail = printable(self._tail.decode("ascii"), MAX_LINE)
        return (*self._lines, tail)[-MAX_LINES:] if tail else tuple(self._lines)

    def say(self, line: str) -> None:
        """Write a line of the runner itself."""
        self.follow()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        own = f"{stamp} [Steward] {printable(line, 1000)}"
        self._log.say(own)
        begin = "\n" if self._tail else ""
        self._copy_for_head(f"{begin}{own}\n".encode("ascii"))

    def follow(self) -> None:
        """Copy the output written since the last call, and cut the scripts' file to its limit."""
        size = self._size()
        if size < self._read_to:  # rotated by truncation
            self._begin = self._read_to = 0
        if size - self._read_to > 2 * _CHUNK:  # scripts write faster than we read: skip ahead
            self._read_to = size - _CHUNK
        while self._read_to < size and (chunk := self._read(min(_CHUNK, size - self._read_to))):
            self._distribute(chunk)
        if self._size() > self._begin + MAX_NODE_LOG:
            self._cut()
        self._log.follow()

    def _cut(self) -> None:
        """Cut the scripts' file to its limit, if possible right after a read that found no more output."""
        # Output written between the last read and the cut is lost, so the last read must be short.
        self._read_to = max(self._read_to, self._size() - _CHUNK)
        unread = b""
        for _ in range(_CUT_TRIES):
            if not (more := self._read(2 * _CHUNK)):
                break
            unread = (unread + more)[-2 * _CHUNK :]
        self._read_to = self._begin + MAX_NODE_LOG
        self.file.truncate(self._read_to)
        self._distribute(unread)

    def _read(self, most: int) -> bytes:
        """Read the next bytes, at most `most`."""
        self._reader.seek(self._read_to)
        chunk = self._reader.read(most)
        self._read_to += len(chunk)
        return chunk

    def _distribute(self, chunk: bytes) -> None:
        self._log.add(chunk)
        text = chunk.translate(_HARMLESS, _DROPPED)
        self._copy_for_head(text)
        *lines, self._tail = (self._tail + text).split(b"\n")
        self._tail = self._tail[-4 * MAX_LINE :]
        shown = [printable(line.decode("ascii"), MAX_LINE) for line in lines]
        self._lines.extend(line for line in shown if line.strip())

    def _copy_for_head(self, text: bytes) -> None:
        room = MAX_LOG - len(_CUT) - self._copied
        if room <= 0:
            return
        piece = text[:room] + (_CUT if len(text) >= room else b"")
        self._copied += self._copy.write(piece)

    def _size(self) -> int:
        return self._reader.seek(0, 2)


def opened(log: Path) -> tuple[IO[bytes], IO[bytes]]:
    """Open a log for appending and for reading, and let only owner and group read it. Raises OSError."""
    log.touch(_FOR_ADMINS)
    log.chmod(log.stat().st_mode & _FOR_ADMINS)
    return log.open("ab", buffering=0), log.open("rb", buffering=0)


class NodeLog:
    """The node's log, which gets each line of the scripts' output once.

    A script may also write its output to this log itself (`tee -a`, as HyperPod's do): a line found in the log is not
    written again. So output is written one `follow()` late, when such a script has written its lines.
    """

    def __init__(self, path: Path) -> None:
        """Open the log. Raises OSError."""
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
        """Add a piece of a script's output."""
        *lines, self._tail = (self._tail + text).split(b"\n")
        self._new += lines
        if len(self._tail) > _CHUNK:
            self._new.append(self._tail)
            self._tail = b""

    def follow(self) -> None:
        """Write the output that was added before the last call."""
        self._write(self._due)
        self._due, self._new = self._new, []

    def say(self, line: str) -> None:
        """Write a line of the runner itself, after all output added so far."""
        last = [self._tail] if self._tail else []
        self._write([*self._due, *self._new, *last])
        self._due, self._new, self._tail = [], [], b""
        own = line.encode("ascii")
        self._ours[own] += 1
        self._file.write(own + b"\n")

    def _write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        self._read_others()
        fresh = [line for line in lines if not _taken_from(self._others, line)]
        text = b"".join(line + b"\n" for line in fresh)[: self._room]
        self._room -= len(text)
        self._ours.update(fresh)
        self._file.write(text)

    def _read_others(self) -> None:
        """Read the lines that other writers added since the last call."""
        size = self._reader.seek(0, 2)
        if not self._read_to <= size <= self._read_to + 4 * _CHUNK:  # rotated by truncation, or too much to compare
            self._read_to, self._foreign_tail = size, b""
            self._ours.clear()
        self._reader.seek(self._read_to)
        *lines, self._foreign_tail = (self._foreign_tail + self._reader.read(size - self._read_to)).split(b"\n")
        self._read_to = size
        self._others.update(line for line in lines if not _taken_from(self._ours, line))
        if len(self._others) > _MAX_KEPT:
            self._others.clear()


def _taken_from(lines: Counter[bytes], line: bytes) -> bool:
    """Take the line out of the counter once, and return whether it was there."""
    if lines[line] > 1:
        lines[line] -= 1
        return True
    return lines.pop(line, 0) > 0
