"""Messages between a training program and Steward: progress, stacks of a hanging job, and the job's past.

They go through files and variables that Steward names in the job's environment.
"""

import contextlib
import faulthandler
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, SupportsInt

EVERY_S = 1.0
"""The least time between two reports of steps."""

_lock = threading.Lock()
_reported: dict[str, object] = {}
_last_at = -EVERY_S
_open_files: list[IO[str]] = []
"""The files that faulthandler writes to, open as long as the process lives."""


def progress(step: SupportsInt) -> None:
    """Report that step `step` is done; writes at most once a second. Call this after every step, in one rank or all."""
    if time.monotonic() - _last_at >= EVERY_S:
        _report(lambda: {"step": int(step), "first": _reported.get("first", int(step))})


def checkpoint_saved(path: "str | os.PathLike[str]", step: SupportsInt) -> None:
    """Report that the checkpoint at `path`, after `step` steps, is complete and safe. Call this in one rank."""
    _report(
        lambda: {
            "checkpoint": os.path.abspath(os.fspath(path)),
            "checkpoint_step": int(step),
            "step": int(step),
            "first": _reported.get("first"),
        }
    )


def _report(news: Callable[[], dict[str, object]]) -> None:
    """Write a report. Never raises; does nothing while another thread writes, so that the training never waits."""
    global _last_at
    file = os.environ.get("STEWARD_PROGRESS_FILE")
    if not file or not _lock.acquire(blocking=False):
        return
    try:
        _last_at = time.monotonic()
        _reported.update(news())
        _write(file, json.dumps(_reported) + "\n")
    except Exception:  # a step may be of any type, a file system may be full
        return
    finally:
        _lock.release()


def _write(file: str, line: str) -> None:
    """Replace the file in one step, so that a reader sees a whole line, old or new."""
    draft = f"{file}.{os.getpid()}.tmp"
    with open(draft, "w", encoding="utf-8") as out:
        out.write(line)
    os.replace(draft, file)


@dataclass(frozen=True)
class ResumeInfo:
    """The earlier runs of this job; empty outside Steward and in a first run."""

    resumes: int = 0
    """How often the job was resumed before this run."""
    reason: str = ""
    """Why the job was last resumed, in words."""
    culprits: tuple[str, ...] = ()
    """The nodes that were blamed for the failure."""
    excluded: tuple[str, ...] = ()
    """The nodes that the job is kept away from."""
    checkpoint: Path | None = None
    """The last checkpoint that the job reported."""
    step: int | None = None
    """The step of this checkpoint, as the job reported it."""

    @property
    def is_resumed(self) -> bool:
        return self.resumes > 0


def resume_info(env: Mapping[str, str] | None = None) -> ResumeInfo:
    """Return the job's past from the STEWARD_* variables; malformed values are left out."""
    env = os.environ if env is None else env
    checkpoint = env.get("STEWARD_LAST_CHECKPOINT", "")
    return ResumeInfo(
        resumes=_whole(env.get("STEWARD_RESUME_COUNT")) or 0,
        reason=env.get("STEWARD_RESUME_REASON", ""),
        culprits=_nodes(env.get("STEWARD_CULPRITS", "")),
        excluded=_nodes(env.get("STEWARD_EXCLUDED_NODES", "")),
        checkpoint=Path(checkpoint) if checkpoint else None,
        step=_whole(env.get("STEWARD_LAST_STEP")),
    )


def _whole(word: str | None) -> int | None:
    return int(word) if word and re.fullmatch(r"[0-9]{1,18}", word) else None


def _nodes(words: str) -> tuple[str, ...]:
    """Split the node list at commas, but not at those in brackets (`n[1,3]`)."""
    return tuple(re.findall(r"(?:[^,\[]|\[[^\]]*\])+", words))


def allow_stacks(name: str = "") -> bool:
    """Let every thread of this process write its stack beside $STEWARD_STACKS_FILE at signal `name`, and go on.

    Call this once in each process, before the training loop. `name` is the signal given in
    `--auto-resume=1,stacks=USR1`; by default $STEWARD_STACKS_SIGNAL, or else USR1. Return whether this could be set up:
    False outside Steward.
    """
    file = os.environ.get("STEWARD_STACKS_FILE")
    word = (name or os.environ.get("STEWARD_STACKS_SIGNAL") or "USR1").upper().removeprefix("SIG")
    number = getattr(signal, f"SIG{word}", None)
    if not file or not isinstance(number, signal.Signals):
        return False
    with contextlib.suppress(OSError, RuntimeError, ValueError, AttributeError):
        kept = open(f"{file}.{os.getpid()}", "a", encoding="utf-8")  # noqa: SIM115  # it stays open
        _open_files.append(kept)
        faulthandler.register(number, file=kept, all_threads=True, chain=False)
        return True
    return False
