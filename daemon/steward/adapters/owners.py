"""Who may change what root reads: one rule for the settings, the site's checks and the folders of lifecycle scripts."""

import os
import stat
from pathlib import Path


class OthersMayChange(PermissionError):
    """A file that others may change is not used."""


def why_unsafe(seen: os.stat_result, what: str) -> str:
    """Why root must not do what is written in the file or directory `what`; empty when it may. In a sticky directory
    (/tmp) nobody moves what is root's."""
    if seen.st_uid not in (0, os.geteuid()):
        return f"its {what} belongs to uid {seen.st_uid}, not to root (chown root)"
    if stat.S_ISDIR(seen.st_mode) and seen.st_mode & stat.S_ISVTX:
        return ""
    if seen.st_mode & stat.S_IWOTH or (seen.st_mode & stat.S_IWGRP and seen.st_gid != 0):
        return f"its {what} can be written by others (chmod go-w)"
    return ""


def settings_problem(where: Path, seen: os.stat_result | None = None) -> str:
    """Why the settings file is not to be used; empty when it may be. `seen`: of the open file. Raises OSError."""
    real = where.resolve()
    why = why_unsafe(seen or real.stat(), "file") or why_unsafe(real.parent.stat(), "directory")
    return f"{why}, and it names every folder and command that Steward works with as root" if why else ""


def settings_text(where: Path) -> str:
    """The text of the settings file, without a byte order mark. Raises OthersMayChange, OSError, UnicodeDecodeError."""
    with where.open("rb") as file:
        if why := settings_problem(where, os.fstat(file.fileno())):
            raise OthersMayChange(why)
        return file.read().decode("utf-8-sig")
