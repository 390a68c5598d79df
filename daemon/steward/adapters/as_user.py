"""Files of users, looked at with their own rights in a child that may be killed: a path of theirs may lead anywhere,
and where it leads may not answer."""

import os
import pwd

from steward.adapters.process import Completed, Failed, run

_LOOK_S = 3.0
_MAX_LISTING = 1 << 20
_ENV = {"LC_ALL": "C"}


def tail(path: str, uid: int, *, max_bytes: int, timeout_s: float) -> str:
    """The last bytes of a file, as text. Raises Failed (a Retryable)."""
    argv = (*_become(uid), "tail", "--bytes", str(max_bytes), "--", path)
    return run(argv, timeout_s=timeout_s, max_bytes=max_bytes, env=_ENV).text


def size(path: str, uid: int, *, timeout_s: float) -> int:
    """Of a file, in bytes. Raises Failed (a Retryable)."""
    text = run((*_become(uid), "stat", "--dereference", "--format=%s", "--", path), timeout_s=timeout_s, env=_ENV).text
    return int(text) if text.strip().isdigit() else 0


def newest(path: str, uid: int) -> float | None:
    """The newest time of change (Unix s) of what is in a folder, hidden names apart, or of the file; None where there
    is nothing of that.

    Raises Failed (a Retryable) when it cannot be known.
    """
    argv = (*_become(uid), "find", "-H", path, "-maxdepth", "1", "-printf", r"%d %y %T@ %.1f\0")
    done: Completed = run(argv, timeout_s=_LOOK_S, max_bytes=_MAX_LISTING, env=_ENV, check=False)
    times = [time for time in map(_time_that_counts, done.text.split("\0")) if time is not None]
    if done.returncode != 0 and not times:
        raise Failed(done.line(), done)
    return max(times, default=None)


def _time_that_counts(found: str) -> float | None:
    """Of one line of `find`: depth, type, time and first letter. A folder's own time says only that it was made."""
    words = found.split(" ", 3)
    if len(words) != 4 or not _is_time(words[2]):
        return None
    depth, kind, time, letter = words
    counts = kind == "f" if depth == "0" else letter != "."
    return float(time) if counts else None


def _is_time(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


def _become(uid: int) -> tuple[str, ...]:
    """The words that go before a program. Raises Failed where we cannot be that user."""
    if uid == os.geteuid():
        return ()
    try:
        who = pwd.getpwuid(uid)
    except KeyError:
        raise Failed(f"uid {uid} is no user of this node") from None
    ids = (f"--reuid={uid}", f"--regid={who.pw_gid}")
    # First: a user may read the environment of what runs as him, and ours may hold secrets.
    bare = ("env", "--ignore-environment", f"PATH={os.defpath}", *(f"{name}={value}" for name, value in _ENV.items()))
    return (*bare, "setpriv", *ids, "--init-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--")
