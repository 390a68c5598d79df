"""Look at users' files with the users' own rights, in a child process that can be killed.

A user's path may lead anywhere, also to a file system that does not answer. A child that hangs in the kernel is left
behind, and collected once the kernel lets it go.
"""

import json
import os
import pwd
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

from steward.adapters.process import Child, Completed, Failed, Left, end, run, said_by

_PROGRAM = Path(__file__).with_name("user_look.py")
_LOOK_S = 3.0
_CHILD = ("env", "--ignore-environment", f"PATH={os.defpath}", "LC_ALL=C", sys.executable, "-I", "-S", str(_PROGRAM))
"""The child's command, without our environment, which may hold secrets."""

MAX_LEFT = 64
"""The most children of all users that may hang at once."""
_PATIENCE_S = 0.5


class _Hanging:
    """The children that hang, with their users. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left: list[tuple[int, Child]] = []

    def check(self, uid: int) -> None:
        """Raise Failed while a look as that user hangs, because the next look would hang, too."""
        with self._lock:
            self._left = [(whose, child) for whose, child in self._left if not end(child, 0.0)]
            pids = [child.pid for whose, child in self._left if whose == uid]
            if pids:
                raise Failed(f"a look at a file of uid {uid} hangs in the kernel (pid {pids[0]})")
            if len(self._left) >= MAX_LEFT:
                raise Failed(f"{len(self._left)} looks at files of users hang in the kernel")

    def add(self, uid: int, child: Child) -> None:
        with self._lock:
            self._left.append((uid, child))


_HANGING = _Hanging()


def tail(
    path: str,
    uid: int,
    *,
    max_bytes: int,
    timeout_s: float,
    start: int = 0,
    starts: Mapping[int, int] = MappingProxyType({}),
) -> str:
    """Return the last `max_bytes` of a file as text, without its first `start` bytes.

    `starts` says the same of files by their inodes. A file that is shorter was emptied since: none of its bytes are
    skipped. Raises Failed (a Retryable).
    """
    more = (str(max_bytes), str(start), *(f"{inode}:{at}" for inode, at in starts.items()))
    return _run_child("tail", path, uid, *more, timeout_s=timeout_s, max_bytes=max_bytes).text


def newest(path: str, uid: int) -> float | None:
    """Return the time of change (Unix s) of a file, or the newest one of a folder's entries that are not hidden.

    None if there is none. Raises Failed (a Retryable) if it cannot be read.
    """
    text = _run_child("newest", path, uid, timeout_s=_LOOK_S).text
    return None if text == "None" else float(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEnd:
    """A file up to where it was read: from `at` on it is new. `at` None: only what comes from now on is."""

    path: str
    inode: int = 0
    at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """How many new lines match each pattern, with the numbers that they caught, oldest first."""

    end: FileEnd
    counts: tuple[int, ...]
    numbers: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What was found in files; None for one that is no plain file or cannot be read. `bad`: patterns that are none."""

    files: tuple[Matches | None, ...]
    bad: Mapping[int, str]


def matches(files: Sequence[FileEnd], patterns: Sequence[str], uid: int, *, timeout_s: float) -> Matched:
    """Return what the new lines of a user's files match. Raises Failed (a Retryable), also if that takes too long."""
    asked = [{"path": one.path, "inode": one.inode, "at": one.at} for one in files]
    request = json.dumps({"files": asked, "patterns": list(patterns)}).encode()
    done = _run_child("matches", "-", uid, timeout_s=timeout_s, max_bytes=_MOST_REPLY, input=request)
    try:
        told = json.loads(done.text)
        found = (_matches_of(file, one) for file, one in zip(files, told["files"], strict=True))
        return Matched(files=tuple(found), bad={int(index): str(why) for index, why in told["bad"].items()})
    except (ValueError, TypeError, KeyError) as error:
        raise Failed(f"a look at output of uid {uid} told no sense") from error


_MOST_REPLY = 1 << 20


def _matches_of(file: FileEnd, told: dict[str, Any] | None) -> Matches | None:
    if told is None:
        return None
    return Matches(
        end=FileEnd(path=file.path, inode=int(told["inode"]), at=int(told["at"])),
        counts=tuple(int(count) for count, _ in told["hits"]),
        numbers=tuple(tuple(map(float, numbers)) for _, numbers in told["hits"]),
    )


def _run_child(
    what: str, path: str, uid: int, *more: str, timeout_s: float, max_bytes: int = 4096, input: bytes | None = None
) -> Completed:
    """Run the child as the user. Raises Failed, also if there is no such user."""
    if uid != os.geteuid():
        try:
            pwd.getpwuid(uid)
        except KeyError:
            raise Failed(f"uid {uid} is not a user of this node") from None
    _HANGING.check(uid)
    try:
        argv = (*_CHILD, str(uid), what, path, *more)
        return run(argv, timeout_s=timeout_s, max_bytes=max_bytes, patience_s=_PATIENCE_S, input=input)
    except Left as left:
        _HANGING.add(uid, left.child)
        raise
    except Failed as error:
        is_late = error.completed is not None and error.completed.seconds >= timeout_s
        raise Failed(f"no answer within {timeout_s:g} s" if is_late else said_by(error), error.completed) from None
