"""The digest of a folder of lifecycle scripts: what `sha256` of a group's lifecycle is compared with."""

import hashlib
from pathlib import Path

_CHUNK = 1 << 16


def digest(folder: Path) -> str:
    """SHA-256 (hex) over all files in the order of their relative paths (as bytes): for each the path with `/`, a zero
    byte, the size in decimal digits, a zero byte, the contents. Modes, times and empty directories do not count."""
    total = hashlib.sha256()
    files = {str(path.relative_to(folder).as_posix()).encode(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(files):
        path = files[name]
        total.update(name + b"\0" + str(path.stat().st_size).encode() + b"\0")
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                total.update(chunk)
    return total.hexdigest()
