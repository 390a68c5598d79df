"""Archives of lifecycle scripts, and what is in a folder."""

import io
import tarfile
import time
from pathlib import Path

from steward.adapters.fetch.folder import FetchBudget


def budget(*, bytes_left: int = 1 << 20, files_left: int = 100) -> FetchBudget:
    return FetchBudget(deadline=time.monotonic() + 1000, bytes_left=bytes_left, files_left=files_left)


def tar(*members: tuple[str, bytes], links: tuple[tuple[str, str], ...] = ()) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            archive.addfile(info, io.BytesIO(content))
        for name, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return out.getvalue()


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
