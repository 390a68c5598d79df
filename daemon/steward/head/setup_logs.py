"""The logs of nodes' setups on the head: `<folder>/<node>/<token>.log`, bounded in size, number and age."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

from steward.adapters.setup_messages import MAX_LOG, LogChunk
from steward.model.ids import NodeName

log = logging.getLogger(__name__)

_WAITING = 2_000
_LOGS_OF_A_NODE = 20
_PRUNE_EVERY_S = 3600.0
_MISSING = "[a part of this log did not reach the head]"


class SetupLogs:
    """`take` never blocks: a thread of its own writes, and what it cannot keep up with is left out of the file.

    A daemon thread, begun with the first chunk. Pieces may come again or overlap: an offset has one place.
    """

    def __init__(self, folder: Path, *, keep_days: float, now: Callable[[], float] = time.time) -> None:
        self._folder, self._keep_s, self._now = folder, keep_days * 86400.0, now
        self._waiting: queue.Queue[tuple[NodeName, LogChunk]] = queue.Queue(_WAITING)
        self._writer: threading.Thread | None = None
        self._pruned = 0.0

    def path(self, node: NodeName, token: str) -> Path:
        return self._folder / node / f"{token}.log"

    def take(self, node: NodeName, chunk: LogChunk) -> None:
        try:
            self._waiting.put_nowait((node, chunk))
        except queue.Full:
            return  # the file will say that a part is missing
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="setup logs", daemon=True)
            self._writer.start()

    def settle(self) -> None:
        """Until everything taken so far is written."""
        self._waiting.join()

    def _write_all(self) -> None:
        while True:
            node, chunk = self._waiting.get()
            try:
                self._write(node, chunk)
                self._prune()
            except OSError as error:
                log.warning("the log of a setup cannot be kept: %s", error, extra={"node": node})
            finally:
                self._waiting.task_done()

    def _write(self, node: NodeName, chunk: LogChunk) -> None:
        path = self.path(node, chunk.token)
        if not path.exists():
            path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._make_room(path.parent)
            path.touch(mode=0o640)
        with path.open("r+b") as file:
            size = file.seek(0, 2)
            gap = chunk.offset - size
            if gap > 0:
                file.write(_MISSING.ljust(gap)[:gap].encode("ascii"))
            file.seek(chunk.offset)
            file.write(chunk.text.encode("ascii", "replace")[: MAX_LOG - chunk.offset])

    def _make_room(self, folder: Path) -> None:
        newest_last = sorted(folder.glob("*.log"), key=lambda file: file.stat().st_mtime)
        for file in newest_last[: max(0, len(newest_last) - _LOGS_OF_A_NODE + 1)]:
            file.unlink(missing_ok=True)

    def _prune(self) -> None:
        """Those that nobody wrote to for the time that they are kept."""
        now = self._now()
        if now - self._pruned < _PRUNE_EVERY_S:
            return
        self._pruned = now
        for file in self._folder.glob("*/*.log"):
            if now - file.stat().st_mtime > self._keep_s:
                file.unlink(missing_ok=True)
