"""Every process of the node, as /proc lists them."""

import os
import time
from pathlib import Path

from steward.model.probe import Process
from steward.model.text import printable

_TICKS = os.sysconf("SC_CLK_TCK")
_MAX_STAT = 4096
_MAX_NAME = 64


class Processes:
    """The time of boot is taken once: a step of the clock must not make every process another one."""

    def __init__(self, proc: Path) -> None:
        self._proc = str(proc)
        self._found: dict[str, str] = {}
        self._booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def every(self) -> tuple[Process, ...]:
        """All of them, by /proc's order. What ends while we look is left out. Raises OSError."""
        seen = (self._look(entry) for entry in os.listdir(self._proc) if entry.isdigit())
        return tuple(process for process in seen if process is not None)

    def find(self, prefix: str) -> Process | None:
        """One whose name begins so. The one that was found last is asked first: it mostly runs on. Raises OSError."""
        known = self._found.get(prefix)
        if known is not None and (process := self._look(known)) is not None and process.name.startswith(prefix):
            return process
        found = next((process for process in self.every() if process.name.startswith(prefix)), None)
        if found is not None:
            self._found[prefix] = str(found.pid)
        return found

    def _look(self, pid: str) -> Process | None:
        folder = f"{self._proc}/{pid}"
        try:
            uid = os.stat(folder).st_uid
            text = _read(f"{folder}/stat")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return None
        return self._parse(int(pid), uid, text)

    def _parse(self, pid: int, uid: int, text: bytes) -> Process | None:
        """The name is in parentheses and may hold anything, a `)` too; what follows the last one is plain."""
        head, _, rest = text.rpartition(b")")
        fields = rest.split(None, 20)
        if len(fields) < 20:
            return None
        return Process(
            pid=pid,
            parent=int(fields[1]),
            uid=uid,
            state=fields[0].decode("ascii", "replace"),
            name=_name(head.partition(b"(")[2].decode("utf-8", "replace")),
            started=self._booted + int(fields[19]) / _TICKS,
            ticks=int(fields[11]) + int(fields[12]),
        )


def _name(text: str) -> str:
    """Thousands of names are plain; `printable` looks at every character."""
    return text[:_MAX_NAME] if text.isascii() and text.isprintable() else printable(text, _MAX_NAME)


def _read(path: str) -> bytes:
    """One read: the kernel gives such a file whole. Without Python's file objects it costs a third."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MAX_STAT)
    finally:
        os.close(descriptor)
