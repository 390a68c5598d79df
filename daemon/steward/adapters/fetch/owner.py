"""Whose a folder of lifecycle scripts is: what root runs must be root's, or anybody who may write there is root."""

import os
import stat
from pathlib import Path

from steward.ports import Permanent

_REMEDY = "give it to root (chown -R root, chmod -R go-w), or name the sha256 of the scripts in the group's lifecycle"


def refuse_others(path: Path, seen: os.stat_result | None = None) -> None:
    """Raises Permanent where somebody else than root (or than ourselves) may change `path`; `seen`: of the open file.
    Raises OSError."""
    found = seen or path.stat()
    is_sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if found.st_uid not in (0, os.geteuid()):
        raise Permanent(f"{path} belongs to uid {found.st_uid}, and its scripts would run as root: {_REMEDY}")
    if not is_sticky and (found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != 0)):
        raise Permanent(f"{path} can be written by others, and its scripts would run as root: {_REMEDY}")


def refuse_others_way(place: Path) -> None:
    """The same for `place` and every folder on the way to it: who may change one could put another in its place. In a
    sticky one (/tmp) nobody moves what is root's."""
    for path in (place, *place.parents):
        refuse_others(path)
