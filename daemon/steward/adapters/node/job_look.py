"""A job's own progress file, in its folder on the node, read as untrusted.

Nothing is opened before it is known to be a plain file of the job's user on the folder's own file system: no link, no
pipe, and no file system that the user has mounted over it and that may hang.
"""

import json
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from steward.model.text import printable

MAX_BYTES = 4096
MAX_STEP = 10**18
MAX_PATH = 255
_MIN_FREE_BYTES = 1024 * 1024
_MIN_FREE_INODES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedProgress:
    """The content of a progress file. `changed` is the file's time of change (Unix s, this node's clock).

    A number that the file does not give is None; a checkpoint that it does not give is empty."""

    changed: float
    step: int | None = None
    first: int | None = None
    """The first step that the run's processes reported."""
    checkpoint: str = ""
    checkpoint_step: int | None = None


Stamp = tuple[int, int]
"""One state of the file: (inode, time of change in ns)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressLook:
    """A look at a progress file. `told` is None if the file is unchanged since the given stamp, or malformed."""

    stamp: Stamp | None
    told: ReportedProgress | None = None


def has_room(root: Path) -> bool:
    """Return whether jobs can write their progress below `root`, which one user's job may fill for all."""
    try:
        seen = os.statvfs(root)
    except OSError:
        return True
    is_counted = seen.f_files > 0  # some file systems make inodes as needed
    return seen.f_bavail * seen.f_frsize >= _MIN_FREE_BYTES and (seen.f_favail >= _MIN_FREE_INODES or not is_counted)


def look(folder: Path, name: str, uid: int, before: Stamp | None) -> ProgressLook:
    """Return a look at `folder/name` if it has changed since `before`. Never raises: an unfit file counts as absent."""
    try:
        with _opened_file(folder, name) as file:
            return _read(file, uid, before)
    except (OSError, ValueError):
        return ProgressLook(stamp=None)


def text_of(folder: Path, name: str, uid: int, limit: int) -> str:
    """Return the last `limit` bytes of a file of the folder, with the same precautions; empty if there is none."""
    try:
        with _opened_file(folder, name) as file:
            if not _is_fit(file, uid):
                return ""
            start = max(os.fstat(file).st_size - limit, 0)
            return _content(file, limit, start).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def owner_of(folder: Path) -> int:
    """Return the owner of a real folder. Raises PermissionError for a mount point, OSError if it is absent."""
    # A file system that the user has mounted over the folder is not asked: it may hang.
    with _opened_folder(folder) as place:
        return os.fstat(place).st_uid


def dial(folder: Path, inner: str, name: str) -> socket.socket:
    """Return a connection to the socket `folder/inner/name`, found with the same precautions.

    Raises OSError if no program listens there, or its queue is full.
    """
    with (
        _opened_folder(folder) as own,
        _Descriptor(_open(inner, own, os.O_DIRECTORY)) as place,
        _Descriptor(_open(name, place, 0)) as file,
    ):
        if not stat.S_ISSOCK(os.fstat(file).st_mode):
            raise ConnectionRefusedError(f"{name} is no socket")
        dialled = socket.socket(socket.AF_UNIX)
        try:
            dialled.setblocking(False)
            dialled.connect(f"/proc/self/fd/{file}")
        except BaseException:
            dialled.close()
            raise
        return dialled


def names(folder: Path, limit: int) -> list[str]:
    """Return up to `limit` names in the folder, sorted; none if it is a link or does not exist."""
    try:
        with _opened_folder(folder) as place, os.scandir(f"/proc/self/fd/{place}") as entries:
            return sorted(entry.name for entry in islice(entries, limit))
    except (OSError, ValueError):
        return []


@contextmanager
def _opened_folder(folder: Path) -> Iterator[int]:
    with (
        _Descriptor(os.open(folder.parent, os.O_PATH | os.O_DIRECTORY)) as root,
        _Descriptor(_open(folder.name, root, os.O_DIRECTORY)) as place,
    ):
        yield place


@contextmanager
def _opened_file(folder: Path, name: str) -> Iterator[int]:
    with _opened_folder(folder) as place, _Descriptor(_open(name, place, 0)) as file:
        yield file


class _Descriptor:
    """A file descriptor that is closed at the end of its block."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> int:
        return self._number

    def __exit__(self, *_: object) -> None:
        os.close(self._number)


def _open(name: str, place: int, kind: int) -> int:
    """Return a handle that opens nothing yet. Raises OSError for a link or a mount of another file system."""
    found = os.open(name, os.O_PATH | os.O_NOFOLLOW | kind, dir_fd=place)
    if _mount(found) != _mount(place):
        os.close(found)
        raise PermissionError(f"{name} is on another file system than its folder")
    return found


def _mount(descriptor: int) -> str:
    """Return the id of the descriptor's mount, from the kernel, without asking the file system itself."""
    found = re.search(r"^mnt_id:\s*(\d+)", Path(f"/proc/self/fdinfo/{descriptor}").read_text(), re.MULTILINE)
    return found[1] if found else ""


def _is_fit(file: int, uid: int) -> bool:
    seen = os.fstat(file)
    return stat.S_ISREG(seen.st_mode) and seen.st_uid == uid


def _read(file: int, uid: int, before: Stamp | None) -> ProgressLook:
    seen = os.fstat(file)
    stamp = (seen.st_ino, seen.st_mtime_ns)
    if not _is_fit(file, uid) or stamp == before:
        return ProgressLook(stamp=before if stamp == before else None)
    told = parse(_content(file, MAX_BYTES + 1), seen.st_mtime)
    return ProgressLook(stamp=stamp if told is not None else None, told=told)


def _content(file: int, limit: int, start: int = 0) -> bytes:
    with _Descriptor(os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_NONBLOCK)) as opened:
        return os.pread(opened, limit, start)


def parse(content: bytes, changed: float) -> ReportedProgress | None:
    """Return the progress in the first line, a JSON object or only a step; None if it is malformed."""
    if len(content) > MAX_BYTES:
        return None
    try:
        said = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        said = {"step": said}
    told = ReportedProgress(
        changed=changed,
        step=_whole(said.get("step")),
        first=_whole(said.get("first")),
        checkpoint=_path(said.get("checkpoint")),
        checkpoint_step=_whole(said.get("checkpoint_step")),
    )
    return told if told != ReportedProgress(changed=changed) else None


def _whole(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_STEP else None


def _path(value: Any) -> str:
    """Return the path if it is absolute and printable; else empty."""
    # It becomes an environment variable of the next run.
    fits = isinstance(value, str) and value.startswith("/") and printable(value, MAX_PATH) == value
    return value if fits else ""
