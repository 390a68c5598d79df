"""`file://`: a folder or an archive that every node sees under the same path."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from steward.adapters.fetch.budget import Budget, store
from steward.adapters.fetch.owner import refuse_others, refuse_others_way
from steward.adapters.fetch.unpack import unpack
from steward.ports import Permanent, Retryable


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
                raise Permanent(f"{path} is no file of the folder: put files only")
            with real.open("rb") as file:
                if not pinned:
                    refuse_others(real, os.fstat(file.fileno()))
                store(folder, path.relative_to(place).as_posix(), file, budget, mode=real.stat().st_mode)
