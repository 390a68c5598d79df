"""What jobs' tasks were doing when they stood still: `<folder>/<name>/<node>.txt`, for the head's eyes only."""

import time
from collections.abc import Callable
from pathlib import Path

from steward.adapters.wire.stacks_messages import MAX_BUNDLE, BundlePiece
from steward.head.piece_files import PieceFiles, Rules
from steward.model.ids import NodeName

_BUNDLES = 200
_NODES = 1024


class Bundles:
    """`take` never blocks. Only the head's user may read them: they show what users' programs do."""

    def __init__(self, folder: Path, *, keep_days: float, now: Callable[[], float] = time.time) -> None:
        rules = Rules(
            kind="bundle",
            suffix=".txt",
            size=MAX_BUNDLE,
            most=_NODES,
            keep_days=keep_days,
            groups=_BUNDLES,
            folder_mode=0o700,
            file_mode=0o600,
        )
        self._files = PieceFiles(folder, rules, now=now)

    def path(self, name: str, node: NodeName) -> Path:
        return self._files.path(name, node)

    def take(self, node: NodeName, piece: BundlePiece) -> None:
        self._files.take(piece.name, node, piece.offset, piece.text)

    def settle(self) -> None:
        """Until everything taken so far is written."""
        self._files.settle()
