"""The folder that a fetch fills with lifecycle scripts: limits, paths, archives, and the digest of the files."""

import hashlib
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from steward.adapters.files import naming_file
from steward.model.text import cause_and_file
from steward.ports import Permanent

MAX_BYTES = 512 << 20
MAX_FILES = 20_000
_CHUNK = 1 << 16


class TimeOver(Permanent):
    """A fetch that has passed its deadline."""


@dataclass(slots=True, kw_only=True)
class FetchBudget:
    """The limits of one try of a fetch. `deadline` is on the monotonic clock, the same for all tries."""

    deadline: float
    bytes_left: int = MAX_BYTES
    files_left: int = MAX_FILES
    now: Callable[[], float] = time.monotonic

    def take_file(self) -> None:
        """Count one more file. Raises Permanent if there are too many, TimeOver after the deadline."""
        self.files_left -= 1
        if self.files_left < 0:
            raise Permanent(f"the source has more files than allowed ({MAX_FILES})")
        self._check_deadline()

    def take(self, count: int) -> None:
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise Permanent(f"the source is larger than allowed ({MAX_BYTES >> 20} MiB)")
        self._check_deadline()

    @property
    def left_s(self) -> float:
        return max(0.0, self.deadline - self.now())

    def _check_deadline(self) -> None:
        if self.now() >= self.deadline:
            raise TimeOver("execution timed out before all scripts were fetched")


def inside(folder: Path, name: str) -> Path:
    """Return the path of `name` (with `/`) below `folder`. Raises Permanent for a name that leads out of the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise Permanent(f"{name[:200]!r} is not a path inside of the scripts' folder")
    return folder / path


def store(folder: Path, name: str, source: IO[bytes], budget: FetchBudget, *, mode: int = 0o644) -> None:
    """Write one file of the source. Raises Permanent as `inside` and the budget do, OSError for a fault of a disk."""
    target = inside(folder, name)
    budget.take_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with naming_file(target), target.open("wb") as file:
        while chunk := source.read(_CHUNK):
            budget.take(len(chunk))
            file.write(chunk)
    target.chmod((mode | 0o600) & 0o755)


# Archives. Only files and directories are unpacked: an archive with a link or a device is refused.


def unpack(archive: Path, folder: Path, budget: FetchBudget, *, single: str) -> None:
    """Unpack a tar (of any compression) or zip archive; store any other file as the one script `single`."""
    try:
        if tarfile.is_tarfile(archive):
            _untar(archive, folder, budget)
        elif zipfile.is_zipfile(archive):
            _unzip(archive, folder, budget)
        else:
            with archive.open("rb") as file:
                store(folder, single, file, budget)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        raise Permanent(f"the archive cannot be unpacked: {cause_and_file(error)}") from error


def _untar(archive: Path, folder: Path, budget: FetchBudget) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            if file is not None:
                store(folder, member.name, file, budget, mode=member.mode)
            elif not member.isdir():
                raise Permanent(f"{member.name[:200]!r} in the archive is a link or a device: use regular files only")


def _unzip(archive: Path, folder: Path, budget: FetchBudget) -> None:
    with zipfile.ZipFile(archive) as package:
        for member in package.infolist():
            if not member.is_dir():
                with package.open(member) as file:
                    store(folder, member.filename, file, budget, mode=(member.external_attr >> 16) or 0o644)


def digest(folder: Path) -> str:
    """Return the SHA-256 (hex) over all files, in the order of their relative paths as bytes.

    Each file counts with its path (with `/`), a zero byte, its size in decimal digits, a zero byte, and its contents.
    Modes, times and empty directories do not count.
    """
    total = hashlib.sha256()
    files = {str(path.relative_to(folder).as_posix()).encode(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(files):
        path = files[name]
        total.update(name + b"\0" + str(path.stat().st_size).encode() + b"\0")
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                total.update(chunk)
    return total.hexdigest()
