"""The program that looks at a file as its user.

    python -I -S user_look.py UID WHAT PATH [BYTES START [INODE:START...]]

WHAT is tail, newest or matches; the request of the last comes on stdin (`log_matches.py`).

It begins as root, and starts no other program once it is the user: the user could trace such a program and make it run
anything, in the agent's cgroup and as well protected from the OOM killer as the agent. For the same reason it leaves
the agent's cgroup, if cgroups can be written. Standard library only, for a fast start.
"""

import ctypes
import importlib
import os
import pwd
import stat
import sys
from collections.abc import Callable
from pathlib import Path

_SET_DUMPABLE, _DROP_FROM_BOUNDS, _NO_NEW_RIGHTS = 4, 24, 38
"""Options of prctl(2)."""
_MOST_CAPABILITIES = 64
_CGROUP = "users"
"""The cgroup below the agent's own in which users' files are looked at."""


def leave_agent() -> None:
    """Move into a cgroup beside the agent's processes, in the hierarchies by which systemd tells units apart.

    Does nothing if cgroups cannot be written (in many containers), or the agent has none of its own.
    """
    own, mounts = Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
    for line in own.splitlines():
        number, name, place = line.split(":", 2)
        if (number != "0" and name != "name=systemd") or place == "/":
            continue
        folder = cgroup_folder(line, mounts)
        if folder is not None:
            _enter(folder / _CGROUP)


def _enter(cgroup: Path) -> None:
    try:
        cgroup.mkdir(exist_ok=True)
        (cgroup / "cgroup.procs").write_text("0")
    except OSError:
        return  # go on: the user could gain little, and without the look nothing of the job would be known


def cgroup_folder(line: str, mounts: str) -> Path | None:
    """Return the folder of the cgroup in a line of /proc/PID/cgroup, by our mountinfo; None if it is not mounted."""
    # In a container only a part of the hierarchy may be mounted: then the root of that part is no part of the path.
    number, controllers, place = line.split(":", 2)
    wanted = {"cgroup2"} if number == "0" else set(controllers.split(","))
    for fields in (mount.split() for mount in mounts.splitlines()):
        kind, options = fields[fields.index("-") + 1], set(fields[-1].split(","))
        if wanted <= ({kind} if kind == "cgroup2" else options if kind == "cgroup" else set()):
            root = "" if fields[3] == "/" else fields[3]
            if place == root or place.startswith(f"{root}/"):
                return Path(fields[4]) / place.removeprefix(root).lstrip("/")
    return None


def become_user(uid: int) -> None:
    """Become that user for good, out of the user's reach. Raises OSError, or KeyError for an unknown user."""
    if uid != os.geteuid():
        who = pwd.getpwuid(uid)
        Path("/proc/self/oom_score_adj").write_text("0")
        _drop_bounds()
        os.initgroups(who.pw_name, who.pw_gid)
        os.setresgid(who.pw_gid, who.pw_gid, who.pw_gid)
        os.setresuid(uid, uid, uid)
        _prctl(_NO_NEW_RIGHTS, 1)
    _prctl(_SET_DUMPABLE, 0)


def _drop_bounds() -> None:
    for capability in range(_MOST_CAPABILITIES):
        try:
            _prctl(_DROP_FROM_BOUNDS, capability)
        except OSError:
            return  # the kernel has no more capabilities


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def tail(path: str, most: int, start: int, starts: "dict[int, int]") -> bytes:
    """Return the last `most` bytes of a file without its first ones; empty if it is no file.

    The first ones are those that `starts` says for its inode, else `start`; none if the file is shorter.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        seen = os.fstat(file)
        if not stat.S_ISREG(seen.st_mode):
            return b""
        start = starts.get(seen.st_ino, start)
        begin = start if seen.st_size >= start else 0
        return os.pread(file, most, max(seen.st_size - most, begin))
    finally:
        os.close(file)


def newest(path: str) -> float | None:
    """Return the time of change of a file, or the newest of a folder's entries that are not hidden; None if none."""
    # A link that leads nowhere counts as none.
    seen = os.lstat(path) if os.path.islink(path) and not os.path.exists(path) else os.stat(path)
    if not stat.S_ISDIR(seen.st_mode):
        return seen.st_mtime if stat.S_ISREG(seen.st_mode) else None
    with os.scandir(path) as entries:
        times = (_time_of(entry) for entry in entries if not entry.name.startswith("."))
        return max((time for time in times if time is not None), default=None)


def _time_of(entry: "os.DirEntry[str]") -> float | None:
    """Return the entry's time of change; None if it has gone meanwhile."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return None


def _look(what: str, path: str, most: int, start: int, starts: "dict[int, int]") -> bytes:
    match what:
        case "tail":
            return tail(path, most, start, starts)
        case "newest":
            return str(newest(path)).encode()
    raise ValueError(what)


def _matching() -> Callable[[], bytes]:
    """Return the look at matches, which only a job with rules needs: its imports take as long as all the rest."""
    sys.path.append(str(Path(__file__).parent))  # the user may not be able to read it
    answer: Callable[[], bytes] = importlib.import_module("log_matches").answer
    return answer


def main(uid: str, what: str, path: str, most: str = "0", start: str = "0", *more: str) -> int:
    pairs = (word.split(":") for word in more)
    starts = {int(inode): int(at) for inode, at in pairs}
    try:
        answer = _matching() if what == "matches" else lambda: _look(what, path, int(most), int(start), starts)
        if int(uid) != os.geteuid():
            leave_agent()
        become_user(int(uid))
        sys.stdout.buffer.write(answer())
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"{error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
