"""Archives of lifecycle scripts. Only files and directories are taken: a link or a device refuses the archive."""

import tarfile
import zipfile
import zlib
from pathlib import Path

from steward.adapters.fetch.budget import Budget, store
from steward.ports import Permanent


def unpack(archive: Path, folder: Path, budget: Budget, *, single: str) -> None:
    """A tar (of any compression) or zip archive is unpacked; any other file is the one script `single`."""
    try:
        if tarfile.is_tarfile(archive):
            _untar(archive, folder, budget)
        elif zipfile.is_zipfile(archive):
            _unzip(archive, folder, budget)
        else:
            with archive.open("rb") as file:
                store(folder, single, file, budget)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        raise Permanent(f"the archive cannot be unpacked: {error}") from error


def _untar(archive: Path, folder: Path, budget: Budget) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            if file is not None:
                store(folder, member.name, file, budget, mode=member.mode)
            elif not member.isdir():
                raise Permanent(f"{member.name[:200]!r} in the archive is a link or a device: put files only")


def _unzip(archive: Path, folder: Path, budget: Budget) -> None:
    with zipfile.ZipFile(archive) as package:
        for member in package.infolist():
            if not member.is_dir():
                with package.open(member) as file:
                    store(folder, member.filename, file, budget, mode=(member.external_attr >> 16) or 0o644)
