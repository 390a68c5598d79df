"""What a job writes: changed files below the folders that its script works in."""

import glob
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steward.job.checkpoints import is_draft, latest_checkpoint

_NOT_SAVES = re.compile(
    r"\.(?:py|pyc|sh|sbatch|log|out|err|txt|md|csv|tsv|jsonl|ya?ml|toml|ini|cfg|lock|pid)$|tfevents|^(?:core|nohup)",
    re.I,
)
_NOT_ENTERED = {"__pycache__", ".git", ".venv", "venv", "node_modules", ".cache", "wandb", "mlruns", "site-packages"}
_MOST_FILES = 20_000
_SETTLED_S = 1.0
_WHOLE = (".pt", ".pth", ".ckpt", ".bin", ".npz", ".safetensors", ".json", ".zip")
_TOO_WIDE = {Path("/"), Path("/tmp"), Path("/home"), Path("/scratch"), Path("/dev"), Path("/proc"), Path("/sys")}
_STAMP = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSeen:
    """Files that were written at one time. `path` is the largest of them."""

    path: Path
    began: float
    ended: float


@dataclass(slots=True)
class FolderWatch:
    """The files of some folders, compared from look to look. Times are those of a steady clock."""

    places: list[Path]
    leave_out: set[Path] = field(default_factory=set)
    """The job's own output."""
    is_cut: bool = False
    """Whether there are more files than are looked at."""
    made: set[Path] = field(default_factory=set)
    """All files that were new or changed since the first look."""
    writing_since: float | None = None
    """When the files that are being written now began to change; None while nothing is written."""
    _known: dict[Path, _STAMP] = field(default_factory=dict)
    _changed: dict[Path, float] = field(default_factory=dict)

    def begin(self) -> None:
        """Note what is there already."""
        self._known = self._look()

    def look(self) -> SaveSeen | None:
        """Compare with the look before; return a save that has come to its end."""
        now, found = time.monotonic(), self._look()
        changed = [path for path, stamp in found.items() if self._known.get(path) != stamp]
        self._known = found
        self.made.update(changed)
        for path in changed:
            self._changed[path] = now
        if not self._changed:
            return None
        began = self.writing_since = self.writing_since or now
        if now - max(self._changed.values()) < _SETTLED_S:
            return None
        written = {path: at for path, at in self._changed.items() if path in found and not _is_draft_path(path)}
        self._changed, self.writing_since = {}, None
        if not written:
            return None
        largest = max(written, key=lambda path: (found[path][1], written[path]))
        return SaveSeen(path=largest, began=began, ended=max(written.values()))

    def forget_writing(self) -> None:
        """Take files that are being written for cut off: their run is over."""
        self._changed, self.writing_since = {}, None

    def left(self) -> list[Path]:
        """Return the files that are there and were not before, or were changed."""
        return sorted(path for path in self.made if path in self._known)

    def _look(self) -> dict[Path, _STAMP]:
        found: dict[Path, _STAMP] = {}
        seen: set[tuple[int, int]] = set()
        waiting = list(self.places)
        while waiting and len(found) < _MOST_FILES:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        self._see(entry, found, waiting, seen)
            except OSError:
                continue
        self.is_cut = self.is_cut or bool(waiting)
        return found

    def _see(
        self,
        entry: "os.DirEntry[str]",
        found: dict[Path, _STAMP],
        waiting: list[Path],
        seen: set[tuple[int, int]],
    ) -> None:
        """Note one entry: a file in `found`, a folder in `waiting`."""
        try:
            if entry.is_dir():
                status = entry.stat()
                if entry.name not in _NOT_ENTERED and (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    waiting.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False) and not _NOT_SAVES.search(entry.name):
                path, status = Path(entry.path), entry.stat()
                if path not in self.leave_out:
                    found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            return  # gone meanwhile


def _is_draft_path(path: Path) -> bool:
    return is_draft(path.name) or is_draft(path.parent.name)


def torn(paths: Iterable[Path]) -> list[Path]:
    """Return those of the files that end too early, and have no name of a draft."""
    return [
        path
        for path in paths
        if path.name.endswith(_WHOLE)
        and not _is_draft_path(path)
        and path.exists()
        and (latest_checkpoint(path.parent, glob.escape(path.name)) is None or _is_torn_json(path))
    ]


def _is_torn_json(path: Path) -> bool:
    if not path.name.endswith(".json"):
        return False
    try:
        return path.read_bytes().rstrip()[-1:] not in (b"}", b"]", b'"') and not path.read_bytes().strip().isdigit()
    except OSError:
        return False


def named_folders(text: str, env: Mapping[str, str]) -> list[Path]:
    """Return the folders that a script names by an absolute path and that its user may write to."""
    words = re.findall(r"[\w./${}~-]*/[\w./${}~-]+", text)
    found = set[Path]()
    for word in words:
        bare = os.path.expanduser(re.sub(r"\$\{?(\w+)\}?", lambda name: env.get(name[1], name[0]), word))
        path = Path(bare)
        if path.is_absolute() and not path.is_dir():
            path = path.parent
        if path.is_absolute() and path not in _TOO_WIDE and path.is_dir() and os.access(path, os.W_OK):
            found.add(path)
    home = Path(env.get("HOME", "/"))
    return sorted(path for path in found if path != home and path not in home.parents and not _is_systems(path))


def _is_systems(path: Path) -> bool:
    return path.parts[:2] in {("/", top) for top in ("usr", "bin", "opt", "etc", "dev", "proc", "sys", "run", "var")}
