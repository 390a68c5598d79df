"""Small text files of the kernel, found by patterns and read with as few calls as that takes: checks do it all day."""

import errno
import fnmatch
import os
from collections.abc import Iterable, Iterator

MAX_BYTES = 65536
_NOTHING_TO_SAY = (errno.EINVAL, errno.EIO, errno.ENODEV, errno.EOPNOTSUPP)
"""What sysfs answers for a property that this device does not have, or a link that is down."""
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)
_MAGIC = frozenset("*?[")


def text_of(path: str) -> str | None:
    """None where it is absent, or a file of sysfs that has nothing to say. Raises OSError otherwise."""
    try:
        return _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _NOTHING_TO_SAY:
            return None
        raise


def texts_of(patterns: Iterable[str], max_files: int) -> Iterator[tuple[str, str, str | None]]:
    """(path, pattern, text) of every file that matches, sorted by path, `max_files` at most. The text is None where the
    file has nothing to say. Folders are listed once for all patterns. Raises OSError for a file that cannot be read."""
    names: dict[str, tuple[str, ...]] = {}
    found = sorted((path, pattern) for pattern in patterns for path in _expanded(pattern, names))
    for path, pattern in found:
        if max_files <= 0:
            return
        try:
            yield path, pattern, _read(path)
        except OSError as error:
            if error.errno in _NO_FILE:
                continue
            if error.errno not in _NOTHING_TO_SAY:
                raise
            yield path, pattern, None
        max_files -= 1


def _expanded(pattern: str, names: dict[str, tuple[str, ...]]) -> list[str]:
    """Paths that may be files: what follows the last wildcard is looked for when it is opened."""
    paths = [""]
    for part in pattern.split("/")[1:]:
        if _MAGIC.isdisjoint(part):
            paths = [f"{path}/{part}" for path in paths]
        else:
            paths = [f"{path}/{name}" for path in paths for name in _matching(path, part, names)]
    return paths


def _matching(folder: str, part: str, names: dict[str, tuple[str, ...]]) -> Iterable[str]:
    if folder not in names:
        try:
            names[folder] = tuple(name for name in os.listdir(folder or "/") if not name.startswith("."))
        except OSError:
            names[folder] = ()
    return names[folder] if part == "*" else fnmatch.filter(names[folder], part)


def _read(path: str) -> str:
    """A pipe that somebody put there does not hold us up."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        read = b""
        while len(read) < MAX_BYTES and (piece := os.read(descriptor, MAX_BYTES - len(read))):
            read += piece
    finally:
        os.close(descriptor)
    return read.decode("utf-8", "replace")
