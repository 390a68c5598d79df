"""`file://`: a folder or an archive that every node sees under the same path.

Root runs these scripts: a folder that other users may write to is refused, since they would become root.
"""

import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from steward.adapters.fetch.folder import FetchBudget, store, unpack
from steward.adapters.owners import why_unsafe
from steward.model.text import cause
from steward.ports import Permanent, Retryable

_REMEDY = "give it to root (chown -R root, chmod -R go-w), or name the sha256 of the scripts in the group's lifecycle"


def fetch_file(source: str, folder: Path, budget: FetchBudget, *, pinned: bool = False) -> None:
    """Fetch a folder or an archive from a path.

    Raises Retryable while the path does not exist (a file system that is mounted late), Permanent if users other than
    root may change its content, unless its digest is `pinned`.
    """
    parts = urlsplit(source)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise Permanent(f"{source}: write file:///PATH, three slashes, with the path in full")
    place = Path(unquote(parts.path))
    try:
        if not pinned and place.exists():
            require_no_other_writer_above(place.parent)
            require_no_other_writer_above(place.resolve())
        if place.is_dir():
            _copy(place.resolve(), folder, budget, pinned=pinned)
        elif place.is_file():
            unpack(place, folder, budget, single=place.name)
        else:
            raise Retryable(f"{source}: there is neither a folder nor a file")
    except OSError as error:
        raise Retryable(f"{source}: {cause(error)}") from error


def _copy(place: Path, folder: Path, budget: FetchBudget, *, pinned: bool) -> None:
    """Copy the folder; follow links to files inside of it, and refuse any other link."""
    for top, folders, files in os.walk(place):
        if not pinned:
            require_no_other_writer(Path(top))
        if linked := next((name for name in folders if (Path(top) / name).is_symlink()), None):
            raise Permanent(f"{top}/{linked} is a link to a folder: replace it by the folder itself")
        for name in files:
            path = Path(top) / name
            real = path.resolve()
            if not real.is_file() or not real.is_relative_to(place):
                raise Permanent(f"{path} is not a file inside the folder: use regular files only")
            with real.open("rb") as file:
                if not pinned:
                    require_no_other_writer(real, os.fstat(file.fileno()))
                store(folder, path.relative_to(place).as_posix(), file, budget, mode=real.stat().st_mode)


def require_no_other_writer(path: Path, seen: os.stat_result | None = None) -> None:
    """Raise Permanent if a user other than root or ourselves may change `path`; `seen` is the status of an open file.

    Raises OSError.
    """
    found = seen or path.stat()
    if why := why_unsafe(found, "folder" if stat.S_ISDIR(found.st_mode) else "file"):
        raise Permanent(f"{path}: {why}, and its scripts would run as root: {_REMEDY}")


def require_no_other_writer_above(place: Path) -> None:
    """Raise Permanent if another user may change, and so replace, `place` or a folder above it."""
    # A sticky folder (/tmp) passes: only root can move root's files there.
    for path in (place, *place.parents):
        require_no_other_writer(path)
