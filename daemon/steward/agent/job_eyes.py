"""What the job watch looks with."""

from collections.abc import Callable, Mapping

from steward.adapters.node import as_user, job_activity, job_look
from steward.adapters.node.job_activity import Used
from steward.adapters.node.job_look import Look, Stamp
from steward.agent.job_folder import PROGRESS, JobFolders
from steward.model.ask import OptedIn
from steward.model.ids import JobId
from steward.model.probe import QueryGpus, Raw

_IDLE = 1
"""NVML's bit among the reasons for a GPU's clock: it has nothing to do."""


class JobEyes:
    def __init__(self, folders: JobFolders, look: Callable[[QueryGpus], Raw]) -> None:
        self._folders = folders
        self._look = look

    def told(self, opted: OptedIn, before: Stamp | None) -> Look:
        return job_look.look(self._folders.folder(opted.job), PROGRESS, opted.uid, before)

    def has_room(self) -> bool:
        return job_look.has_room(self._folders.root)

    def newest(self, path: str, uid: int) -> float | None:
        return as_user.newest(path, uid)

    def used(self, users: Mapping[JobId, int]) -> Used:
        return job_activity.used(users)

    def gpus_busy(self) -> bool | None:
        raw = self._look(QueryGpus())
        reasons = [gpu.clock_reasons for gpu in raw.gpus or ()]
        if raw.error or raw.hung or None in reasons:
            return None
        return any(not reason & _IDLE for reason in reasons if reason is not None)
