"""The folder that an opted-in job has on a node while it runs there: `<agent.job_dir>/<job id>/`, its user's (0700).

Its tasks write `progress` into it (how far they are) and `stacks` (where they are, when they are asked by a signal);
both are named to them by STEWARD_PROGRESS_FILE and STEWARD_STACKS_FILE. What lies in it is hostile.
"""

import logging
import os
import stat
from collections.abc import Collection
from pathlib import Path
from threading import Lock

from steward.adapters.own_folder import make_own, remove_tree
from steward.model.ids import JobId

log = logging.getLogger(__name__)

PROGRESS = "progress"
STACKS = "stacks"


class JobFolders:
    """All of them, below `root` (which only root may change)."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._making = Lock()

    @property
    def root(self) -> Path:
        return self._root

    def folder(self, job: JobId) -> Path:
        return self._root / str(job)

    def progress(self, job: JobId) -> Path:
        return self.folder(job) / PROGRESS

    def stacks(self, job: JobId) -> Path:
        return self.folder(job) / STACKS

    def make(self, job: JobId, uid: int) -> Path:
        """The job's folder, made if it is not there. One of another user (of a former job of that number) is removed
        before. Steps that begin together ask in threads of their own. Raises OSError."""
        make_own(self._root, 0o755)
        folder = self.folder(job)
        with self._making:
            if not _is_of(folder, uid):
                remove_tree(folder)
                folder.mkdir(mode=0o700)
                if uid != os.geteuid():
                    os.chown(folder, uid, -1, follow_symlinks=False)
        return folder

    def remove(self, job: JobId) -> None:
        """Gone afterwards, or the log says why not. Follows no symbolic link."""
        try:
            remove_tree(self.folder(job))
        except OSError as error:
            log.warning("the folder of a job stays job=%d why=%r", job, str(error))

    def keep_only(self, jobs: Collection[JobId]) -> None:
        """Remove those of all other jobs."""
        for job in self.all() - frozenset(jobs):
            self.remove(job)

    def all(self) -> frozenset[JobId]:
        """Jobs that have a folder here."""
        try:
            names = os.listdir(self._root)
        except FileNotFoundError:
            return frozenset()
        return frozenset(JobId(int(name)) for name in names if _is_job(name))

    def of_user(self, uid: int) -> frozenset[JobId]:
        """Those of `all` that are that user's."""
        try:
            with os.scandir(self._root) as entries:
                return frozenset(JobId(int(one.name)) for one in entries if _is_job(one.name) and _is_of(one, uid))
        except FileNotFoundError:
            return frozenset()


def _is_job(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _is_of(folder: "os.PathLike[str]", uid: int) -> bool:
    """One look each: a user may have hundreds. What cannot be looked at is nobody's: a user may mount a file system
    over his folder that does not let even root in."""
    try:
        seen = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == uid
