"""How much memory may be used: what is free on the machine, and what the job's cgroups still allow."""

from collections.abc import Iterator
from pathlib import Path

_FILES = {
    "": ("memory.max", "memory.current"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes"),
}
_NO_LIMIT = 1 << 60


def memory_room(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that could be taken before the machine, or the tightest of our cgroups, is full; 0 when it is not known."""
    return max(0, min([available(proc), *_cgroup_rooms(proc, cgroups)]))


def available(proc: Path = Path("/proc")) -> int:
    """MemAvailable in bytes; 0 when it cannot be read."""
    return _meminfo(proc, "MemAvailable")


def total(proc: Path = Path("/proc")) -> int:
    return _meminfo(proc, "MemTotal")


def _meminfo(proc: Path, name: str) -> int:
    try:
        lines = (proc / "meminfo").read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        key, _, rest = line.partition(":")
        if key == name and rest.split()[:1] and rest.split()[0].isdigit():
            return int(rest.split()[0]) * 1024
    return 0


def _cgroup_rooms(proc: Path, cgroups: Path) -> Iterator[int]:
    """For each level from our own cgroup up to the root that has a limit."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        name = "memory" if "memory" in controllers.split(",") else controllers
        if name not in _FILES:
            continue
        limit_file, usage_file = _FILES[name]
        root = cgroups / name
        for level in _up(root / path.lstrip("/"), root):
            limit, usage = _number(level / limit_file), _number(level / usage_file)
            if limit is not None and usage is not None and limit < _NO_LIMIT:
                yield limit - usage


def _up(path: Path, root: Path) -> Iterator[Path]:
    yield path
    while path != root and root in path.parents:
        path = path.parent
        yield path


def _number(path: Path) -> int | None:
    try:
        word = path.read_text().strip()
    except OSError:
        return None
    return int(word) if word.isdigit() else None
