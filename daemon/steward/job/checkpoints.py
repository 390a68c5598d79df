"""Which checkpoint to go on from: the newest one that is complete. A half-written one is never taken.

Looked at is each entry of the folder (not what is deeper), symbolic links and names of drafts left out. Complete is

- a folder with a `.metadata` file as torch.distributed.checkpoint writes it last, and no empty shard beside it;
- a folder with a marker file `COMPLETE` or `.complete`, whatever its content: write it last;
- a file that got its name by a rename when it was whole. A draft is known by its name: a leading dot, a trailing `~`,
  or a part `tmp`, `temp`, `partial`, `part`, `incomplete`, `draft`, `writing` or `lock` between dots, dashes or
  underscores. An empty file is none; a zip archive (.npz, torch.save) or .safetensors file must have its end.

The newest has the greatest step number in its name (`step-120`, `iter_7`, `checkpoint-500`; otherwise the last number
in it); of equals, and of those without a number, the one that was written last.
"""

import fnmatch
import json
import os
import re
import stat
import zipfile
from pathlib import Path

MARKERS = ("COMPLETE", ".complete")
_DRAFT = re.compile(
    r"^\.|~$|(?:^|[._-])(?:tmp|temp|partial|part|incomplete|draft|writing|lock)\d*(?:[._-]|$)", re.IGNORECASE
)
_STEP = re.compile(r"(?:step|iter|iteration|checkpoint|ckpt)[-_=]?(\d{1,18})", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,18}")
_MAX_HEADER = 64 << 20
_ZIP, _ZIP_NAMES = b"PK\x03\x04", (".npz", ".zip")


def latest_checkpoint(folder: "str | os.PathLike[str]", pattern: str = "*") -> Path | None:
    """The newest complete checkpoint in `folder` whose name fits `pattern` (as in a shell); None where there is none.

    Never raises: what cannot be read is no checkpoint.
    """
    try:
        with os.scandir(folder) as entries:
            found = [key for entry in entries if fnmatch.fnmatch(entry.name, pattern) and (key := _key(entry))]
    except (OSError, TypeError, ValueError):
        return None
    return Path(max(found)[-1]) if found else None


def _key(entry: "os.DirEntry[str]") -> tuple[int, float, str] | None:
    """(step, mtime, path), by which the newest is the greatest; None for what is no complete checkpoint."""
    try:
        if _DRAFT.search(entry.name) or entry.name in MARKERS or entry.is_symlink():
            return None
        if not (_is_whole_folder(entry.path) if entry.is_dir() else _is_whole_file(entry.path)):
            return None
        return step_of(entry.name), entry.stat().st_mtime, entry.path
    except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):  # hostile headers
        return None


def step_of(name: str) -> int:
    """The step that a checkpoint's name tells; -1 where it tells none."""
    stem = name.removesuffix(Path(name).suffix) if not Path(name).suffix[1:].isdigit() else name
    found = _STEP.findall(stem) or _NUMBER.findall(stem)
    return int(found[-1]) if found else -1


def _is_whole_folder(path: str) -> bool:
    with os.scandir(path) as entries:
        files = {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
    if any(name in files for name in MARKERS):
        return True
    shards = [size for name, size in files.items() if name.endswith(".distcp")]
    return files.get(".metadata", 0) > 0 and bool(shards) and all(shards)


def _is_whole_file(path: str) -> bool:
    if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a pipe would wait for its writer
        return False
    with open(path, "rb") as file:
        start, size = file.read(8), os.fstat(file.fileno()).st_size
        if path.endswith(".safetensors"):
            return _has_all_tensors(start, file.read(min(int.from_bytes(start, "little"), _MAX_HEADER)), size)
        if start.startswith(_ZIP) or path.endswith(_ZIP_NAMES):
            return zipfile.is_zipfile(file)
    return size > 0


def _has_all_tensors(start: bytes, header: bytes, size: int) -> bool:
    """The header names the end of each tensor: the last one is the end of the file."""
    length = int.from_bytes(start, "little")
    if len(start) < 8 or len(header) != length:
        return False
    records = json.loads(header)
    ends = [record["data_offsets"][1] for name, record in records.items() if name != "__metadata__"]
    return 8 + length + max(ends, default=0) == size
