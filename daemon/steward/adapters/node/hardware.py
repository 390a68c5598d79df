"""Which pieces of hardware this node has, by names that outlive an instance: its board's serial, its GPUs' UUIDs."""

from collections.abc import Callable
from pathlib import Path

from steward.model.text import printable

_LIMIT = 48
_NO_SERIAL = frozenset(
    (
        *("", "none", "n/a", "na", "default string", "not specified", "not applicable", "not available", "unknown"),
        *("to be filled by o.e.m.", "system serial number", "base board serial number", "0123456789", "123456789"),
    )
)
"""What firmware says that nobody filled in; as an identity it would make one machine of many."""


class Hardware:
    """`gpus` gives the UUIDs of the GPUs seen last."""

    def __init__(self, board_serial_file: Path, gpus: Callable[[], tuple[str, ...]]) -> None:
        self._board = _board(board_serial_file)
        self._gpus = gpus

    def __call__(self) -> tuple[str, ...]:
        return (*self._board, *self._gpus())


def _board(path: Path) -> tuple[str, ...]:
    try:
        serial = printable(path.read_text(errors="replace").strip(), _LIMIT)
    except OSError:
        return ()
    is_real = serial.lower() not in _NO_SERIAL and len(set(serial)) > 2
    return (f"board-{serial}",) if is_real else ()
