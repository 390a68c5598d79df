"""The folder of an opted-in job on a node while the job runs there: `<agent.job_dir>/<job id>-<uid>/`.

The folder is its user's (0700). The job's tasks write `progress` into it (their last step) and `stacks` (their stacks,
on a signal); STEWARD_PROGRESS_FILE and STEWARD_STACKS_FILE hold both paths. The content of the folder is hostile, and
so is whatever its user mounts over it. The uid is part of the name because a user may claim any job, also a future one,
and must not own its folder before the job's owner does.
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
from steward.model.text import cause_and_file

log = logging.getLogger(__name__)

PROGRESS = "progress"
STACKS = "stacks"
_NAME = re.compile(r"([0-9]+)-([0-9]+)", re.ASCII)
_MOUNTS = Path("/proc/self/mountinfo")


class JobFolders:
    """The job folders of this node, below `root` (which only root may change)."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._making = Lock()
        self._told: frozenset[str] = frozenset()
        """Folders whose failed removal is in the log."""

    @property
    def root(self) -> Path:
        """Return the folder that holds all job folders."""
        return self._root

    def folder(self, job: JobId, uid: int) -> Path:
        """Return the path of the job's folder."""
        return self._root / f"{job}-{uid}"

    def progress(self, job: JobId, uid: int) -> Path:
        """Return the path of the job's progress file."""
        return self.folder(job, uid) / PROGRESS

    def stacks(self, job: JobId, uid: int) -> Path:
        """Return the path of the job's stacks file."""
        return self.folder(job, uid) / STACKS

    def make(self, job: JobId, uid: int) -> Path:
        """Return the job's folder, and make it if it is missing. Raises OSError."""
        make_own(self._root, 0o755)
        with self._making:  # steps that begin together call in threads of their own
            folder = self.folder(job, uid)
            if not (_is_owned_by(folder, uid) or _is_mounted(folder)):
                remove_tree(folder)
                folder.mkdir(mode=0o700)
                if uid != os.geteuid():
                    os.chown(folder, uid, -1, follow_symlinks=False)
        return folder

    def remove(self, job: JobId) -> None:
        """Remove the job's folders without following symbolic links; log once why one could not be removed."""
        # touching what a user has mounted over or in the folder may hang, and delay other users' folders
        for folder in [self._root / name for one, _, name in self._names() if one == job]:
            try:
                if _is_mounted(folder) or _has_mounts(folder):
                    raise PermissionError("its user has a mount over it or in it")
                remove_tree(folder)
            except OSError as error:
                if folder.name not in self._told:
                    log.warning("the folder of a job stays job=%d why=%r", job, cause_and_file(error))
                self._told |= {folder.name}
            else:
                self._told -= {folder.name}

    def all(self) -> frozenset[JobId]:
        """Return the jobs that have a folder here."""
        return frozenset(job for job, _, _ in self._names())

    def of_user(self, uid: int) -> frozenset[JobId]:
        """Return the jobs that have a folder of this user here, by the folders' names."""
        return frozenset(job for job, of, _ in self._names() if of == uid)

    def _names(self) -> Iterator[tuple[JobId, int, str]]:
        """Yield the job, uid and folder name of each job folder."""
        try:
            names = os.listdir(self._root)
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            if found := _NAME.fullmatch(name):
                yield JobId(int(found[1])), int(found[2]), name


def _is_owned_by(folder: Path, uid: int) -> bool:
    """Return whether this is a real folder of that user, without touching anything mounted over it."""
    try:
        return owner_of(folder) == uid
    except OSError:
        return False


def _is_mounted(folder: Path) -> bool:
    """Return whether a user has mounted something over the folder, which only its owner can."""
    try:
        owner_of(folder)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def _has_mounts(folder: Path) -> bool:
    """Return whether something is mounted below the folder, as the kernel lists it."""
    below = os.fsencode(folder.parent.resolve() / folder.name) + b"/"
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return False
    return any(_mount_point(line).startswith(below) for line in lines)


def _mount_point(line: bytes) -> bytes:
    """Return the mount point in a line of mountinfo, in which blanks are written as octal numbers."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), line.split(b" ", 5)[4])
