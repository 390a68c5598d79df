"""A small state file that is either the old one or the new one, never half of one."""

import json
from pathlib import Path
from typing import Any

from steward.adapters.whole_file import write_whole
from steward.ports import Retryable


def read_json(path: Path, limit: int = 1 << 20) -> Any:
    """What is in the file, or None where there is none or it cannot be read as JSON (a state that can be rebuilt)."""
    try:
        with path.open("rb") as file:
            return json.loads(file.read(limit))
    except (OSError, ValueError, RecursionError):
        return None


def write_json(path: Path, value: object, *, sync: bool = False) -> None:
    """Replace the file; with `sync` it outlives a power cut from now on. Raises Retryable when that is not possible."""
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(path, json.dumps(value, separators=(",", ":")), sync=sync)
    except OSError as error:
        raise Retryable(f"cannot write {path}: {error}") from error
