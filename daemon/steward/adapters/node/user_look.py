"""The program that looks at a user's file as him: `python -I -S user_look.py UID WHAT PATH [BYTES START]`.

It begins as root and starts no other program once it is the user: what runs a program as somebody can be traced by him,
and made to run what he likes, where the agent runs and as late a victim of a full memory as it. For the same reason it
leaves the agent's cgroup, where cgroups can be written. The standard library only, so that it begins fast.
"""

import ctypes
import os
import pwd
import stat
import sys
from pathlib import Path

_SET_DUMPABLE, _DROP_FROM_BOUNDS, _NO_NEW_RIGHTS = 4, 24, 38
"""Options of prctl(2)."""
_MOST_CAPABILITIES = 64
_APART = "users"
"""The cgroup below the agent's own in which users' files are looked at."""


def leave_agent() -> None:
    """Be in a cgroup beside the agent's processes, of those by which systemd tells whose a process is.

    Nothing changes where cgroups cannot be written (in many containers), or where the agent has none of its own.
    """
    own, mounts = Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
    for line in own.splitlines():
        number, name, place = line.split(":", 2)
        if (number != "0" and name != "name=systemd") or place == "/":
            continue
        folder = cgroup_folder(line, mounts)
        if folder is not None:
            _enter(folder / _APART)


def _enter(cgroup: Path) -> None:
    try:
        cgroup.mkdir(exist_ok=True)
        (cgroup / "cgroup.procs").write_text("0")
    except OSError:
        return  # what the user could gain is small; that nothing of a job is seen would not be


def cgroup_folder(line: str, mounts: str) -> Path | None:
    """The folder of the cgroup that a line of /proc/PID/cgroup names, by our mountinfo; None where no mount has it.

    In a container only a part of the hierarchy may be mounted: then the root of that part is no part of the path.
    """
    number, controllers, place = line.split(":", 2)
    wanted = {"cgroup2"} if number == "0" else set(controllers.split(","))
    for fields in (mount.split() for mount in mounts.splitlines()):
        kind, options = fields[fields.index("-") + 1], set(fields[-1].split(","))
        if wanted <= ({kind} if kind == "cgroup2" else options if kind == "cgroup" else set()):
            root = "" if fields[3] == "/" else fields[3]
            if place == root or place.startswith(f"{root}/"):
                return Path(fields[4]) / place.removeprefix(root).lstrip("/")
    return None


def become(uid: int) -> None:
    """Be that user for good, out of his reach. Raises OSError; KeyError for one that is not a user of this node."""
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
            return  # the kernel has no more of them


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def tail(path: str, most: int, start: int) -> bytes:
    """The last bytes of what a file has after `start`, or of all of one that is shorter; nothing of what is no file."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        seen = os.fstat(file)
        if not stat.S_ISREG(seen.st_mode):
            return b""
        begin = start if seen.st_size >= start else 0
        return os.pread(file, most, max(seen.st_size - most, begin))
    finally:
        os.close(file)


def newest(path: str) -> float | None:
    """The newest time of change of what is in a folder, hidden names apart, or of the file; None for a link that leads
    nowhere."""
    seen = os.lstat(path) if os.path.islink(path) and not os.path.exists(path) else os.stat(path)
    if not stat.S_ISDIR(seen.st_mode):
        return seen.st_mtime if stat.S_ISREG(seen.st_mode) else None
    with os.scandir(path) as entries:
        times = (_time_of(entry) for entry in entries if not entry.name.startswith("."))
        return max((time for time in times if time is not None), default=None)


def _time_of(entry: "os.DirEntry[str]") -> float | None:
    """The entry's time of change; None where the file has gone meanwhile."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return None


def _look(what: str, path: str, most: int, start: int) -> bytes:
    match what:
        case "tail":
            return tail(path, most, start)
        case "newest":
            return str(newest(path)).encode()
    raise ValueError(what)


def main(uid: str, what: str, path: str, most: str = "0", start: str = "0") -> int:
    try:
        if int(uid) != os.geteuid():
            leave_agent()
        become(int(uid))
        sys.stdout.buffer.write(_look(what, path, int(most), int(start)))
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"{error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
