"""What is mounted here, as /proc/mounts tells it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    point: str
    type: str


def mounts(proc: Path) -> tuple[Mount, ...]:
    """In the order of mounting. Raises OSError. Nothing but the table is touched: a hung one does not hold us."""
    lines = (proc / "mounts").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    fields = (line.split(" ") for line in lines)
    return tuple(Mount(point=_plain(words[1]), type=words[2]) for words in fields if len(words) >= 3)


def of_types(table: Iterable[Mount], types: Iterable[str]) -> tuple[str, ...]:
    """The mount points of these file system types, sorted, each once."""
    wanted = frozenset(types)
    return tuple(sorted({mount.point for mount in table if mount.type in wanted}))


def _plain(field: str) -> str:
    r"""The kernel writes white space and backslashes of a path as `\040`."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)
