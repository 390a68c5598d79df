"""Files and folders of our processes.

A file is either the old one or the new one, never half of one, as bytes or as JSON, with one writer at a time. A folder
in which root works is root's alone to change; a file or folder of others is removed safely.
"""

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from steward.adapters.process import Failed, run
from steward.ports import Retryable

_OURS = 0o600
"""The mode of our files: they tell of every user's jobs, and lie in folders that all can enter."""


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Have an OSError raised in this block name the file or folder: one of a write (a full disk) does not by itself."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_whole(
    path: Path, text: str, *, mode: int = _OURS, sync: bool = False, owner: tuple[int, int] | None = None
) -> None:
    """Replace the file; with `sync` the new text is on disk before this returns. Raises OSError.

    A failure leaves nothing else in the folder, and users whom `mode` shuts out can never read the file. `owner`: user
    and group of the file; None: those of the caller.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with named(path), open(new, "w", encoding="utf-8", opener=_made) as file:
            file.write(text)
            if owner is not None:
                os.fchown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _made(path: str, flags: int) -> int:
    return os.open(path, flags, _OURS)


# A small state file that is either the old one or the new one, never half of one.


def read_json(path: Path, limit: int = 1 << 20) -> Any:
    """Return the content of the file; None where there is no file or it is not JSON (the state can be rebuilt)."""
    try:
        with path.open("rb") as file:
            return json.loads(file.read(limit))
    except (OSError, ValueError, RecursionError):
        return None


def write_json(path: Path, value: object, *, sync: bool = False) -> None:
    """Replace the file; with `sync` it is on disk before this returns. Raises Retryable if that is not possible."""
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(path, json.dumps(value, separators=(",", ":")), sync=sync)
    except OSError as error:
        raise Retryable(f"cannot write {path}: {error}") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, made if absent; wait while another process holds it. A dead holder's lock is free."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OURS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile(Generic[T]):
    """The memory of `whose`, in one file. Writers hold `locked()`; readers need no lock: the file is always whole.

    Unlike `read_json` it loses nothing: a file that cannot be read, or that `of_json` finds damaged (ValueError,
    TypeError, KeyError), is an error with a `remedy`. `empty` is the state if there is no file yet.
    """

    path: Path
    whose: str
    remedy: str
    empty: Callable[[], T]
    of_json: Callable[[Any], T]
    to_json: Callable[[T], object]

    @contextmanager
    def locked(self) -> Iterator[T]:
        """Hold the lock, and yield the state. Raises Retryable if the file's directory cannot be used."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self.path.with_suffix(".lock")):
                yield self.load()
        except OSError as error:
            raise Retryable(f"{self.whose}: {self.path}: {error}; SlurmUser must be able to write there") from error

    def load(self) -> T:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return self.empty()
        except OSError as error:
            raise Retryable(f"{self.whose}: {self.path}: {error}") from error
        try:
            return self.of_json(json.loads(text))
        except (ValueError, TypeError, KeyError) as error:
            raise Retryable(f"{self.whose}: {self.path} is damaged ({error}); {self.remedy}") from error

    def save(self, state: T) -> None:
        """Write the state; it is on disk before this returns."""
        write_json(self.path, self.to_json(state), sync=True)


_REMOVE_S = 20.0
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_own(folder: Path, mode: int = 0o700) -> None:
    """Make the folder, writable for this user alone. Raises OSError if it cannot be made or others may change it."""
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    # another user who may change the folder could put a link in our way
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{folder} is a link or no folder: remove it")
    if found.st_uid != os.geteuid():
        raise PermissionError(
            f"{folder} belongs to uid {found.st_uid}: give it to root, or name another in the settings"
        )
    if found.st_mode & _OTHERS:
        raise PermissionError(f"{folder} can be written by others: run chmod go-w on it")


def remove_tree(path: Path) -> None:
    """Remove a file or a folder with all below it; no link in it is followed. Raises OSError.

    `rm` also removes folders that are nested deeper than Python can descend.
    """
    try:
        run(("rm", "-rf", "--one-file-system", "--", str(path)), timeout_s=_REMOVE_S)
    except Failed as error:
        raise OSError(str(error)) from error
