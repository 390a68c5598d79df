"""The logs of nodes' setups on the head: `<folder>/<node>/<token>.log`."""

import time
from collections.abc import Callable
from pathlib import Path

from steward.adapters.wire.setup_messages import MAX_LOG, LogChunk
from steward.head.piece_files import PieceFiles, Rules
from steward.model.ids import NodeName

_LOGS_OF_A_NODE = 20


class SetupLogs:
    """`take` never blocks."""

    def __init__(self, folder: Path, *, keep_days: float, now: Callable[[], float] = time.time) -> None:
        rules = Rules(kind="log", suffix=".log", size=MAX_LOG, most=_LOGS_OF_A_NODE, keep_days=keep_days)
        self._files = PieceFiles(folder, rules, now=now)

    def path(self, node: NodeName, token: str) -> Path:
        return self._files.path(node, token)

    def take(self, node: NodeName, chunk: LogChunk) -> None:
        self._files.take(node, chunk.token, chunk.offset, chunk.text)

    def settle(self) -> None:
        """Until everything taken so far is written."""
        self._files.settle()
