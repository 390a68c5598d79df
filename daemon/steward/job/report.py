"""Tells Steward's agent how far the job is, by a small file in the node's memory ($STEWARD_PROGRESS_FILE)."""

import json
import os
import threading
import time
from collections.abc import Callable
from typing import SupportsInt

EVERY_S = 1.0
"""Steps that come faster are not told one by one."""

_turn = threading.Lock()
_told: dict[str, object] = {}
_last = -EVERY_S


def progress(step: SupportsInt) -> None:
    """Step number `step` is done. Call it after every step, in one rank or in all: it writes at most once a second."""
    if time.monotonic() - _last >= EVERY_S:
        _tell(lambda: {"step": int(step), "first": _told.get("first", int(step))})


def checkpoint_saved(path: "str | os.PathLike[str]", step: SupportsInt) -> None:
    """The checkpoint at `path`, which holds `step` done steps, is complete and safe. Call it in one rank."""
    _tell(
        lambda: {
            "checkpoint": os.path.abspath(os.fspath(path)),
            "checkpoint_step": int(step),
            "step": int(step),
            "first": _told.get("first"),
        }
    )


def _tell(news: Callable[[], dict[str, object]]) -> None:
    """A training goes on whatever becomes of this: no error comes out, and a second thread does not wait for us."""
    global _last
    file = os.environ.get("STEWARD_PROGRESS_FILE")
    if not file or not _turn.acquire(blocking=False):
        return
    try:
        _last = time.monotonic()
        _told.update(news())
        _write(file, json.dumps(_told) + "\n")
    except Exception:  # a step may be of any type, a file system may be full
        return
    finally:
        _turn.release()


def _write(file: str, line: str) -> None:
    """Whole or not at all: who reads meanwhile sees the line before."""
    draft = f"{file}.{os.getpid()}.tmp"
    with open(draft, "w", encoding="utf-8") as out:
        out.write(line)
    os.replace(draft, file)
