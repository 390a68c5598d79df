"""The directory of the site's own checks: the files that may be run, and why others may not."""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from steward.adapters.owners import why_unsafe
from steward.checks.site import is_name
from steward.model.text import cause

MAX_CHECKS = 64
_MAX_DIGESTED = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteDir:
    """The content of the directory. `programs` are paths that may be run; `refused` has a line for any other file."""

    programs: tuple[Path, ...] = ()
    refused: tuple[str, ...] = ()


class Digests:
    """The digests of files (eight hex digits), read again only if the file was replaced or written."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int, int, int], str]] = {}

    def of(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the digests of the files that can be read."""
        told = {path: self._digest(path) for path in paths}
        self._known = {path: one for path, one in told.items() if one is not None}
        return {path: digest for path, (_, digest) in self._known.items()}

    def _digest(self, path: Path) -> tuple[tuple[int, int, int, int], str] | None:
        try:
            seen = path.stat()
            stamp = (seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size)
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return known
            with path.open("rb") as file:
                return stamp, hashlib.sha256(file.read(_MAX_DIGESTED)).hexdigest()[:8]
        except OSError:
            return None


def make_results_dir(folder: Path) -> None:
    """Make the folder in which site checks may keep files; without it they run all the same."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def look(folder: Path) -> SiteDir:
    """Return the content of `folder`, empty if it does not exist; hidden files and backups (`~`) are ignored."""
    try:
        why = why_unsafe(folder.stat(), "directory")
        names = sorted(name for name in os.listdir(folder) if not name.startswith(".") and not name.endswith("~"))
    except FileNotFoundError:
        return SiteDir()
    except OSError as error:
        return SiteDir(refused=(f"{folder}: {cause(error)}",))
    if why:
        return SiteDir(refused=(f"{folder}: {why}",))
    reasons = {folder / name: _why_not_run(folder / name) for name in names}
    programs = tuple(path for path, reason in reasons.items() if not reason)
    refused = tuple(f"{path.name}: {reason}" for path, reason in reasons.items() if reason)
    over = tuple(f"{path.name}: more than {MAX_CHECKS} checks" for path in programs[MAX_CHECKS:])
    return SiteDir(programs=programs[:MAX_CHECKS], refused=(*refused, *over))


def why_not_read(path: Path) -> str:
    """Return why root must not trust the content of this file; empty if it may, or if the file cannot be read."""
    try:
        real = path.resolve(strict=True)
        return why_unsafe(real.stat(), "file") or why_unsafe(real.parent.stat(), "directory")
    except (OSError, RuntimeError):
        return ""


def _why_not_run(path: Path) -> str:
    """Return why the agent (root) must not run this file; empty if it may."""
    if not is_name(path.name):
        return "its name is not made of a-z, 0-9, '_', '.' and '-' (35 at most)"
    try:
        real = path.resolve(strict=True)
        seen = real.stat()
        if not stat.S_ISREG(seen.st_mode):
            return "not a file"
        if not seen.st_mode & 0o111:
            return "not executable (chmod 755)"
        return why_unsafe(seen, "file") or why_unsafe(real.parent.stat(), "directory")
    except (OSError, RuntimeError) as error:
        return cause(error)
