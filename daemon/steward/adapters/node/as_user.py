"""Files of users, looked at with their own rights in a child that may be killed: a path of theirs may lead anywhere,
and where it leads may not answer."""

import os
import pwd
import sys
from pathlib import Path

from steward.adapters.process import Completed, Failed, run

_PROGRAM = Path(__file__).with_name("user_look.py")
_LOOK_S = 3.0
_BARE = ("env", "--ignore-environment", f"PATH={os.defpath}", "LC_ALL=C", sys.executable, "-I", "-S", str(_PROGRAM))
"""Ours may hold secrets: nothing of it goes along."""


def tail(path: str, uid: int, *, max_bytes: int, timeout_s: float, start: int = 0) -> str:
    """The last bytes of what a file has after `start`, as text; a file that is shorter was emptied since. Raises Failed
    (a Retryable)."""
    return _look("tail", path, uid, str(max_bytes), str(start), timeout_s=timeout_s, max_bytes=max_bytes).text


def newest(path: str, uid: int) -> float | None:
    """The newest time of change (Unix s) of what is in a folder, hidden names apart, or of the file; None where there
    is nothing of that.

    Raises Failed (a Retryable) when it cannot be known.
    """
    text = _look("newest", path, uid, timeout_s=_LOOK_S).text
    return None if text == "None" else float(text)


def _look(what: str, path: str, uid: int, *more: str, timeout_s: float, max_bytes: int = 4096) -> Completed:
    """Raises Failed, also where we cannot be that user."""
    if uid != os.geteuid():
        try:
            pwd.getpwuid(uid)
        except KeyError:
            raise Failed(f"uid {uid} is not a user of this node") from None
    return run((*_BARE, str(uid), what, path, *more), timeout_s=timeout_s, max_bytes=max_bytes)
