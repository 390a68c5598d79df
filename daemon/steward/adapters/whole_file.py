"""A file that is either the old one or the new one, never half of one."""

import os
from pathlib import Path

_OURS = 0o600
"""What we keep tells of every user's jobs, and lies in folders that all can enter."""


def write_whole(path: Path, text: str, *, mode: int = _OURS, sync: bool = False) -> None:
    """Replace the file; with `sync` the new text outlives a power cut from now on. Nothing else is left in its folder,
    however it ends, and nobody whom `mode` shuts out can read it at any time. Raises OSError."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(new, "w", encoding="utf-8", opener=_made) as file:
            file.write(text)
            os.fchmod(file.fileno(), mode)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _made(path: str, flags: int) -> int:
    return os.open(path, flags, _OURS)
