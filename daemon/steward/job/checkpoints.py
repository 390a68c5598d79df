"""The choice of a checkpoint to continue from: the newest complete one, never a half-written one.

Each entry of the folder itself counts, but for symbolic links and names of drafts. Complete is

- a folder with a `.metadata` file, which torch.distributed.checkpoint writes last, and no empty shard beside it;
- a folder with a marker file `COMPLETE` or `.complete`, whatever its content: write the marker last;
- a file that got its name by a rename when it was whole. The name of a draft has a leading dot, a trailing `~`, or a
  part `tmp`, `temp`, `partial`, `part`, `incomplete`, `draft`, `writing` or `lock` between dots, dashes or underscores.
  An empty file is no checkpoint; a zip archive (.npz, torch.save) or .safetensors file must have its end.

The newest has the greatest step number in its name (`step-120`, `iter_7`, `checkpoint-500`; otherwise the last number
in the name). Of those with equal numbers or none, the newest is the one that was written last.
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
    """Return the newest complete checkpoint in `folder` whose name fits the shell pattern; None if there is none.

    Never raises: an entry that cannot be read is no checkpoint.
    """
    try:
        with os.scandir(folder) as entries:
            found = [key for entry in entries if fnmatch.fnmatch(entry.name, pattern) and (key := _sort_key(entry))]
    except (OSError, TypeError, ValueError):
        return None
    return Path(max(found)[-1]) if found else None


def _sort_key(entry: "os.DirEntry[str]") -> tuple[int, float, str] | None:
    """Return (step, mtime, path), the greatest for the newest; None if the entry is no complete checkpoint."""
    try:
        if is_draft(entry.name) or entry.name in MARKERS or entry.is_symlink():
            return None
        if not (_is_whole_folder(entry.path) if entry.is_dir() else _is_whole_file(entry.path)):
            return None
        return step_of(entry.name), entry.stat().st_mtime, entry.path
    except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):  # hostile headers
        return None


def is_draft(name: str) -> bool:
    """Return whether a name is that of a checkpoint which is still being written."""
    return _DRAFT.search(name) is not None


def step_of(name: str) -> int:
    """Return the step number in a checkpoint's name; -1 if there is none."""
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
    """Return whether a .safetensors file ends where its header says that the last tensor does."""
    length = int.from_bytes(start, "little")
    if len(start) < 8 or len(header) != length:
        return False
    records = json.loads(header)
    ends = [record["data_offsets"][1] for name, record in records.items() if name != "__metadata__"]
    return 8 + length + max(ends, default=0) == size
