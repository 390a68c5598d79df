"""What a training program and Steward tell each other, through files and variables that Steward names in the job's
environment: how far the job is, where it stands still, and its past."""

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
"""Steps that come faster are not told one by one."""

_turn = threading.Lock()
_told: dict[str, object] = {}
_last = -EVERY_S
_open: list[IO[str]] = []
"""faulthandler writes to the descriptor: it must stay open as long as the process lives."""


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


@dataclass(frozen=True)
class ResumeInfo:
    """The past of this run of the job. Outside Steward, and in a first run, all of it is empty."""

    resumes: int = 0
    """How often the job was resumed before this run."""
    reason: str = ""
    """Why it was resumed last, in words."""
    culprits: tuple[str, ...] = ()
    """The nodes that were blamed for it."""
    excluded: tuple[str, ...] = ()
    """Nodes that the job is kept away from."""
    checkpoint: Path | None = None
    """The last checkpoint that the job told of."""
    step: int | None = None
    """The step that this checkpoint holds, as the job told it."""

    @property
    def is_resumed(self) -> bool:
        return self.resumes > 0


def resume_info(env: Mapping[str, str] | None = None) -> ResumeInfo:
    """From the STEWARD_* variables; what makes no sense is left out."""
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
    """Split at commas, those in brackets (`n[1,3]`) left alone."""
    return tuple(re.findall(r"(?:[^,\[]|\[[^\]]*\])+", words))


def allow_stacks(name: str = "") -> bool:
    """At signal `name` every thread of this process writes its stack beside $STEWARD_STACKS_FILE, and goes on.

    `name` is what the job said in `--auto-resume=1,stacks=USR1`; empty: $STEWARD_STACKS_SIGNAL, or else USR1. Whether
    that could be set up: False outside Steward. Call it once in each process, before the training loop.
    """
    file = os.environ.get("STEWARD_STACKS_FILE")
    word = (name or os.environ.get("STEWARD_STACKS_SIGNAL") or "USR1").upper().removeprefix("SIG")
    number = getattr(signal, f"SIG{word}", None)
    if not file or not isinstance(number, signal.Signals):
        return False
    with contextlib.suppress(OSError, RuntimeError, ValueError, AttributeError):
        kept = open(f"{file}.{os.getpid()}", "a", encoding="utf-8")  # noqa: SIM115  # it stays open
        _open.append(kept)
        faulthandler.register(number, file=kept, all_threads=True, chain=False)
        return True
    return False
