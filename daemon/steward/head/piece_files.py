"""Keep texts that agents send in pieces as files `<folder>/<group>/<name><suffix>`, bounded in size, number and age."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from steward.adapters.wire.job_messages import MAX_BUNDLE, BundlePiece
from steward.adapters.wire.order_messages import MAX_LOG, LogChunk
from steward.model.ids import NodeName

log = logging.getLogger(__name__)

_BUNDLES, _NODES = 200, 1024
"""The most bundles kept, and the most files in each."""
_LOGS_OF_A_NODE = 20
_WAITING = 2_000
_PRUNE_EVERY_S = 3600.0
_MISSING = "[a part of this %s did not reach the head]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceLimits:
    """The limits: `most` files a group, `groups` groups (None: any number), `size` characters a file."""

    kind: str
    """The kind of text, in a word."""
    suffix: str
    size: int
    most: int
    keep_days: float
    groups: int | None = None


class PieceFiles:
    """Text files that are written piece by piece.

    `put` never blocks: a daemon thread, begun with the first piece, writes; pieces beyond its speed are dropped. A
    piece may come twice or overlap another, because it is written at its own offset. The caller makes sure that names
    are fit for files.
    """

    def __init__(self, folder: Path, rules: PieceLimits, *, now: Callable[[], float] = time.time) -> None:
        self._folder, self._rules, self._now = folder, rules, now
        self._waiting: queue.Queue[tuple[str, str, int, str]] = queue.Queue(_WAITING)
        self._writer: threading.Thread | None = None
        self._pruned = 0.0

    def path(self, group: str, name: str) -> Path:
        """Return the path of a file."""
        return self._folder / group / f"{name}{self._rules.suffix}"

    def put(self, group: str, name: str, offset: int, text: str) -> None:
        """Queue a piece."""
        try:
            self._waiting.put_nowait((group, name, offset, text))
        except queue.Full:
            return  # the file will get a note that a part is missing
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name=self._folder.name, daemon=True)
            self._writer.start()

    def settle(self) -> None:
        """Wait until all queued pieces are written."""
        self._waiting.join()

    def _write_all(self) -> None:
        """Write queued pieces for ever."""
        while True:
            group, name, offset, text = self._waiting.get()
            try:
                self._write(self.path(group, name), offset, text)
                self._prune()
            except OSError as error:
                log.warning("%s/%s cannot be kept: %s", group, name, error)
            finally:
                self._waiting.task_done()

    def _write(self, path: Path, offset: int, text: str) -> None:
        """Write one piece, with a note in place of a missing part."""
        if not path.exists():
            self._drop_oldest_groups(path.parent)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._drop_oldest_files(path.parent)
            path.touch(mode=0o600)
        with path.open("r+b") as file:
            size = file.seek(0, 2)
            gap = offset - size
            if gap > 0:
                file.write((_MISSING % self._rules.kind).ljust(gap)[:gap].encode("ascii"))
            file.seek(offset)
            file.write(text.encode("ascii", "replace")[: self._rules.size - offset])

    def _drop_oldest_files(self, folder: Path) -> None:
        """Remove the oldest files of a full group."""
        newest_last = sorted(folder.glob(f"*{self._rules.suffix}"), key=lambda file: file.stat().st_mtime)
        for file in newest_last[: max(0, len(newest_last) - self._rules.most + 1)]:
            file.unlink(missing_ok=True)

    def _drop_oldest_groups(self, group: Path) -> None:
        """Remove the groups with the oldest last write, to make room for this one."""
        if self._rules.groups is None or group.exists() or not self._folder.is_dir():
            return
        newest_last = sorted(self._folder.iterdir(), key=lambda one: one.stat().st_mtime)
        for old in newest_last[: max(0, len(newest_last) - self._rules.groups + 1)]:
            _remove_folder(old)

    def _prune(self) -> None:
        """Remove the files that were not written to for `keep_days`."""
        now = self._now()
        if now - self._pruned < _PRUNE_EVERY_S:
            return
        self._pruned = now
        for file in self._folder.glob(f"*/*{self._rules.suffix}"):
            if now - file.stat().st_mtime > self._rules.keep_days * 86400.0:
                file.unlink(missing_ok=True)


def _remove_folder(folder: Path) -> None:
    """Remove a folder with its files."""
    for file in folder.iterdir():
        file.unlink(missing_ok=True)
    folder.rmdir()


class Bundles(PieceFiles):
    """Stacks of hanging jobs' tasks: `<folder>/<name>/<node>.txt`.

    Only the head's user may read them: they show what users' programs do.
    """

    def __init__(self, folder: Path, *, keep_days: float) -> None:
        rules = PieceLimits(
            kind="bundle",
            suffix=".txt",
            size=MAX_BUNDLE,
            most=_NODES,
            keep_days=keep_days,
            groups=_BUNDLES,
        )
        super().__init__(folder, rules)

    def take(self, node: NodeName, piece: BundlePiece) -> None:
        """Queue a piece of a bundle."""
        self.put(piece.name, node, piece.offset, piece.text)


class SetupLogs(PieceFiles):
    """The logs of nodes' setups: `<folder>/<node>/<token>.log`."""

    def __init__(self, folder: Path, *, keep_days: float, now: Callable[[], float] = time.time) -> None:
        rules = PieceLimits(kind="log", suffix=".log", size=MAX_LOG, most=_LOGS_OF_A_NODE, keep_days=keep_days)
        super().__init__(folder, rules, now=now)

    def take(self, node: NodeName, chunk: LogChunk) -> None:
        """Queue a piece of a log."""
        self.put(node, chunk.token, chunk.offset, chunk.text)
