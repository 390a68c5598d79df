"""The rule for files that root may trust: the settings, the site's checks, and lifecycle scripts' folders."""

import os
import stat
from pathlib import Path


class OthersMayChange(PermissionError):
    """A file that is refused because other users may change it."""


def why_unsafe(seen: os.stat_result, what: str) -> str:
    """Return why root must not trust the file or directory, called `what` in the text; empty if it may."""
    if seen.st_uid not in (0, os.geteuid()):
        return f"its {what} belongs to uid {seen.st_uid}, not to root (chown root)"
    # in a sticky directory (/tmp) other users cannot move root's files
    if stat.S_ISDIR(seen.st_mode) and seen.st_mode & stat.S_ISVTX:
        return ""
    if seen.st_mode & stat.S_IWOTH or (seen.st_mode & stat.S_IWGRP and seen.st_gid != 0):
        return f"its {what} can be written by others (chmod go-w)"
    return ""


def settings_problem(where: Path, seen: os.stat_result | None = None) -> str:
    """Return why the settings file must not be used; empty if it may be. Raises OSError.

    `seen` is the stat result of the open file.
    """
    real = where.resolve()
    why = why_unsafe(seen or real.stat(), "file") or why_unsafe(real.parent.stat(), "directory")
    return f"{why}, and it names every folder and command that Steward works with as root" if why else ""


def settings_text(where: Path) -> str:
    """Return the settings file's text without a byte order mark.

    Raises OthersMayChange, OSError, UnicodeDecodeError.
    """
    with where.open("rb") as file:
        if why := settings_problem(where, os.fstat(file.fileno())):
            raise OthersMayChange(why)
        return file.read().decode("utf-8-sig")
