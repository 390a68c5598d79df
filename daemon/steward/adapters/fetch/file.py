"""`file://`: a folder or an archive that every node sees under the same path.

What root runs must be root's, or anybody who may write there is root: a folder of others is refused.
"""

import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from steward.adapters.fetch.folder import Budget, store, unpack
from steward.adapters.owners import why_unsafe
from steward.ports import Permanent, Retryable

_REMEDY = "give it to root (chown -R root, chmod -R go-w), or name the sha256 of the scripts in the group's lifecycle"


def fetch_file(source: str, folder: Path, budget: Budget, *, pinned: bool = False) -> None:
    """Raises Retryable while there is nothing at the path (a file system that is mounted late), Permanent where others
    than root may change what is there; not where its digest is `pinned`."""
    parts = urlsplit(source)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise Permanent(f"{source}: write file:///PATH, three slashes, with the path in full")
    place = Path(unquote(parts.path))
    try:
        if not pinned and place.exists():
            refuse_others_way(place.parent)
            refuse_others_way(place.resolve())
        if place.is_dir():
            _copy(place.resolve(), folder, budget, pinned=pinned)
        elif place.is_file():
            unpack(place, folder, budget, single=place.name)
        else:
            raise Retryable(f"{source}: there is neither a folder nor a file")
    except OSError as error:
        raise Retryable(f"{source}: {error}") from error


def _copy(place: Path, folder: Path, budget: Budget, *, pinned: bool) -> None:
    """Links to files inside of the folder are followed, others are refused."""
    for top, folders, files in os.walk(place):
        if not pinned:
            refuse_others(Path(top))
        if linked := next((name for name in folders if (Path(top) / name).is_symlink()), None):
            raise Permanent(f"{top}/{linked} is a link to a folder: put the folder itself")
        for name in files:
            path = Path(top) / name
            real = path.resolve()
            if not real.is_file() or not real.is_relative_to(place):
                raise Permanent(f"{path} is not a file of the folder: put files only")
            with real.open("rb") as file:
                if not pinned:
                    refuse_others(real, os.fstat(file.fileno()))
                store(folder, path.relative_to(place).as_posix(), file, budget, mode=real.stat().st_mode)


def refuse_others(path: Path, seen: os.stat_result | None = None) -> None:
    """Raises Permanent where somebody else than root (or than ourselves) may change `path`; `seen`: of the open file.
    Raises OSError."""
    found = seen or path.stat()
    if why := why_unsafe(found, "folder" if stat.S_ISDIR(found.st_mode) else "file"):
        raise Permanent(f"{path}: {why}, and its scripts would run as root: {_REMEDY}")


def refuse_others_way(place: Path) -> None:
    """Refuse `place` where others may change it or a folder on the way to it: they could put another one in its place.
    In a sticky folder (/tmp) nobody moves what is root's."""
    for path in (place, *place.parents):
        refuse_others(path)
