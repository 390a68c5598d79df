"""Files and folders on disk, written so that neither a crash nor another user can corrupt them.

A file is replaced whole, as text or as JSON. A folder of our own is checked to be writable by us alone, and a tree
is removed without following the links in it.
"""

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from steward.adapters.process import Failed, run
from steward.model.text import cause
from steward.ports import Retryable

_PRIVATE_MODE = 0o600
"""The mode of Steward's files: they name every user's jobs, and lie in folders that all users can enter."""


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Add `path` to an OSError from this block that names no file."""
    try:
        # The error of a write (a full disk) does not name its file.
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_whole(path: Path, text: str, *, mode: int = _PRIVATE_MODE, sync: bool = False) -> None:
    """Replace the file; with `sync` the new text survives a power cut.

    No other file is left in the folder, even after a failure, and no user whom `mode` shuts out can read the text at
    any time. Raises OSError.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming_file(path), open(new, "w", encoding="utf-8", opener=_open_private) as file:
            file.write(text)
            os.fchmod(file.fileno(), mode)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, _PRIVATE_MODE)


# A small state file that is either the old one or the new one, never half of one.


def read_json(path: Path, limit: int = 1 << 20) -> Any:
    """Return the content of the file, or None if it is missing or not JSON (the state can be rebuilt)."""
    try:
        with path.open("rb") as file:
            return json.loads(file.read(limit))
    except (OSError, ValueError, RecursionError):
        return None


def write_json(path: Path, value: object, *, sync: bool = False) -> None:
    """Replace the file; with `sync` it survives a power cut. Raises Retryable if it cannot be written."""
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(path, json.dumps(value, separators=(",", ":")), sync=sync)
    except OSError as error:
        raise Retryable(f"cannot write {path}: {cause(error)}") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, created if absent, after waiting for its holder. A dead holder's lock is free."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


T = TypeVar("T")


class SharedText(Protocol):
    """A text that several heads share. `write` raises Deposed if this head does not lead."""

    def read(self) -> str | None:
        """Return the text; None if none was written yet."""

    def write(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile(Generic[T]):
    """The state of `owner`, in one file, or in the text that the heads share in its place.

    Messages call its owner so. Writers hold `locked()`; readers need no lock, since the file is always whole. A
    file that cannot be read, or that `of_json` finds damaged (ValueError, TypeError, KeyError), raises Retryable; the
    message for a damaged one ends with `remedy`. `empty` is the state if there is no file yet.
    """

    path: Path
    owner: str
    remedy: str
    empty: Callable[[], T]
    of_json: Callable[[Any], T]
    to_json: Callable[[T], object]
    shared: SharedText | None = None

    @contextmanager
    def locked(self) -> Iterator[T]:
        """Hold the lock and yield the state. Raises Retryable if the file's directory cannot be used."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self.path.with_suffix(".lock")):
                yield self.load()
        except OSError as error:
            raise Retryable(
                f"{self.owner}: {self.path}: {cause(error)}; SlurmUser must be able to write there"
            ) from error

    def load(self) -> T:
        text = self._text()
        if text is None:
            return self.empty()
        try:
            return self.of_json(json.loads(text))
        except (ValueError, TypeError, KeyError) as error:
            raise Retryable(f"{self.owner}: {self.path} is damaged ({error}); {self.remedy}") from error

    def _text(self) -> str | None:
        if self.shared is not None:
            return self.shared.read()
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Retryable(f"{self.owner}: {self.path}: {cause(error)}") from error

    def save(self, state: T) -> None:
        """Save the state; it is on disk when this returns."""
        if self.shared is not None:
            self.shared.write(json.dumps(self.to_json(state), separators=(",", ":")))
        else:
            write_json(self.path, self.to_json(state), sync=True)


_REMOVE_S = 20.0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_own(folder: Path, mode: int = 0o700) -> None:
    """Create the folder if absent, and check that only this user can write in it.

    Raises OSError if it cannot be made, belongs to another user or can be written by others.
    """
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    # a user who can write in the folder could put a link there
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError("it is a link or no folder: remove it")
    if found.st_uid != os.geteuid():
        raise PermissionError(f"it belongs to uid {found.st_uid}: give it to root, or name another in the settings")
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError("it can be written by others: run chmod go-w on it")


def remove_tree(path: Path) -> None:
    """Remove the path, whatever it is, without following a link. Raises OSError."""
    try:
        # rm also removes trees nested deeper than Python can descend
        run(("rm", "-rf", "--one-file-system", "--", str(path)), timeout_s=_REMOVE_S)
    except Failed as error:
        raise OSError(str(error)) from error
