"""Folders that root works in: nobody else may change what is in them, and what others left there is removed safely."""

import os
import stat
from pathlib import Path

from steward.adapters.process import Failed, run

_REMOVE_S = 20.0
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_own(folder: Path, mode: int = 0o700) -> None:
    """The folder is there and ours alone to write in. Raises OSError: it cannot be made, or it is another's: who may
    change it could put a link in our way."""
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
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
    """Whatever it is, it is gone afterwards, and no link in it was followed. Raises OSError.

    `rm` also takes what is nested deeper than Python can go down.
    """
    try:
        run(("rm", "-rf", "--one-file-system", "--", str(path)), timeout_s=_REMOVE_S)
    except Failed as error:
        raise OSError(str(error)) from error
