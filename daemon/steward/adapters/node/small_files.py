"""Small text files of the kernel, found by patterns and read with few system calls, since checks do so all day."""

import errno
import fnmatch
import os
from collections.abc import Iterable, Iterator

MAX_BYTES = 65536
_NO_VALUE = (errno.EINVAL, errno.EIO, errno.ENODEV, errno.EOPNOTSUPP)
"""The errors of sysfs for a property that the device does not have, or for a link that is down."""
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)
_MAGIC = frozenset("*?[")


def text_of(path: str) -> str | None:
    """Return the text of a small file; None if it is absent, or sysfs has no value for it. Raises OSError otherwise."""
    try:
        return _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _NO_VALUE:
            return None
        raise


def texts_of(patterns: Iterable[str], max_files: int, needs: str = "") -> Iterator[tuple[str, str, str | None]]:
    """Yield (path, pattern, text) of the files that match, sorted by path, at most `max_files`.

    The text is None if sysfs has no value for the file. Folders are listed once for all patterns; `needs` is as in
    ReadTree. Raises OSError for a file that cannot be read.
    """
    folders = _Folders(needs)
    found = sorted((path, pattern) for pattern in patterns for path in folders.expanded(pattern))
    for path, pattern in found:
        if max_files <= 0:
            return
        try:
            yield path, pattern, _read(path)
        except OSError as error:
            if error.errno in _NO_FILE:
                continue
            if error.errno not in _NO_VALUE:
                raise
            yield path, pattern, None
        max_files -= 1


def is_any_there(patterns: Iterable[str]) -> bool:
    """Return whether a file or folder matches one of the patterns, each of which ends in a wildcard."""
    folders = _Folders()
    return any(folders.expanded(pattern) for pattern in patterns)


class _Folders:
    """The content of folders, for one look: each is listed once, and checked once for the file `needs`."""

    def __init__(self, needs: str = "") -> None:
        self._needs = needs
        self._names: dict[str, tuple[str, ...]] = {}
        self._first: dict[tuple[str, str], list[str]] = {}

    def expanded(self, pattern: str) -> list[str]:
        """Return the paths that may match; whether the part after the last wildcard exists shows when it is opened."""
        paths, is_first = [""], True
        for part in pattern.split("/")[1:]:
            if _MAGIC.isdisjoint(part):
                paths = [f"{path}/{part}" for path in paths]
            elif is_first:
                paths, is_first = self._wanted(paths[0], part), False
            else:
                paths = [f"{path}/{name}" for path in paths for name in self._matching(path, part)]
        return paths

    def _wanted(self, folder: str, part: str) -> list[str]:
        found = self._first.get((folder, part))
        if found is None:
            paths = [f"{folder}/{name}" for name in self._matching(folder, part)]
            found = [path for path in paths if not self._needs or os.path.exists(f"{path}/{self._needs}")]
            self._first[folder, part] = found
        return found

    def _matching(self, folder: str, part: str) -> Iterable[str]:
        if folder not in self._names:
            try:
                self._names[folder] = tuple(name for name in os.listdir(folder or "/") if not name.startswith("."))
            except OSError:
                self._names[folder] = ()
        return self._names[folder] if part == "*" else fnmatch.filter(self._names[folder], part)


def _read(path: str) -> str:
    """Return the text of the file. Raises OSError."""
    # O_NONBLOCK: a pipe in its place must not block us.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        read = b""
        while len(read) < MAX_BYTES and (piece := os.read(descriptor, MAX_BYTES - len(read))):
            read += piece
    finally:
        os.close(descriptor)
    return read.decode("utf-8", "replace")
