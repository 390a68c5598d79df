"""The folder that an opted-in job has on a node while it runs there: `<agent.job_dir>/<job id>-<uid>/`, its user's
(0700).

Its tasks write `progress` into it (how far they are) and `stacks` (where they are, when they are asked by a signal);
both are named to them by STEWARD_PROGRESS_FILE and STEWARD_STACKS_FILE. What lies in it is hostile, and so is what its
user mounts over it. The user's number is in its name: a user may call any job his, also one that is to come, and must
not have its folder before its owner has.
"""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from steward.adapters.files import make_own, remove_tree
from steward.adapters.node.job_look import owner_of
from steward.model.ids import JobId

log = logging.getLogger(__name__)

PROGRESS = "progress"
STACKS = "stacks"
_NAME = re.compile(r"([0-9]+)-([0-9]+)", re.ASCII)
_MOUNTS = Path("/proc/self/mountinfo")


class JobFolders:
    """All of them, below `root` (which only root may change)."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._making = Lock()
        self._told: frozenset[str] = frozenset()
        """Folders of which the log says why they stay."""

    @property
    def root(self) -> Path:
        return self._root

    def folder(self, job: JobId, uid: int) -> Path:
        return self._root / f"{job}-{uid}"

    def progress(self, job: JobId, uid: int) -> Path:
        return self.folder(job, uid) / PROGRESS

    def stacks(self, job: JobId, uid: int) -> Path:
        return self.folder(job, uid) / STACKS

    def make(self, job: JobId, uid: int) -> Path:
        """The job's folder, made if it is not there. Steps that begin together ask in threads of their own. Raises
        OSError."""
        make_own(self._root, 0o755)
        with self._making:
            folder = self.folder(job, uid)
            if not (_is_of(folder, uid) or _is_mounted(folder)):
                remove_tree(folder)
                folder.mkdir(mode=0o700)
                if uid != os.geteuid():
                    os.chown(folder, uid, -1, follow_symlinks=False)
        return folder

    def remove(self, job: JobId) -> None:
        """Gone afterwards, or the log says once why not. Follows no symbolic link, and asks nothing of what a user has
        mounted over or into the folder: that may hang, and other users' folders wait."""
        for folder in [self._root / name for one, _, name in self._names() if one == job]:
            try:
                if _is_mounted(folder) or _has_mounts(folder):
                    raise PermissionError("its user has mounted something over it or into it")
                remove_tree(folder)
            except OSError as error:
                if folder.name not in self._told:
                    log.warning("the folder of a job stays job=%d why=%r", job, str(error))
                self._told |= {folder.name}
            else:
                self._told -= {folder.name}

    def all(self) -> frozenset[JobId]:
        """Jobs that have a folder here."""
        return frozenset(job for job, _, _ in self._names())

    def of_user(self, uid: int) -> frozenset[JobId]:
        """Those of `all` that are that user's, by their names: a user may have hundreds."""
        return frozenset(job for job, of, _ in self._names() if of == uid)

    def _names(self) -> Iterator[tuple[JobId, int, str]]:
        """(job, uid, name of its folder)."""
        try:
            names = os.listdir(self._root)
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            if found := _NAME.fullmatch(name):
                yield JobId(int(found[1])), int(found[2]), name


def _is_of(folder: Path, uid: int) -> bool:
    """A real folder of that user; what is mounted over it is not asked."""
    try:
        return owner_of(folder) == uid
    except OSError:
        return False


def _is_mounted(folder: Path) -> bool:
    """A user can mount over his own folder alone."""
    try:
        owner_of(folder)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def _has_mounts(folder: Path) -> bool:
    """Whether something is mounted below the folder, as the kernel lists it."""
    below = os.fsencode(folder.parent.resolve() / folder.name) + b"/"
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return False
    return any(_place(line).startswith(below) for line in lines)


def _place(line: bytes) -> bytes:
    """The mount point in a line of mountinfo, in which blanks are written as octal numbers."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), line.split(b" ", 5)[4])
