"""Lets Steward see where the job stands still: at a signal each thread's stack is written to a file."""

import contextlib
import faulthandler
import os
import signal
from typing import IO

_open: list[IO[str]] = []
"""faulthandler writes to the descriptor: it must stay open as long as the process lives."""


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
