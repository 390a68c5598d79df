"""A file that is either the old one or the new one, never half of one."""

import os
from pathlib import Path


def write_whole(path: Path, text: str, *, mode: int | None = None, sync: bool = False) -> None:
    """Replace the file; with `sync` the new text outlives a power cut from now on. Nothing else is left in its folder,
    however it ends. Raises OSError."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None:
            new.chmod(mode)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
