"""What is known of the end of a job's output: read with its user's rights, in children that are killed when slow."""

import logging
from typing import Protocol

from steward.adapters import as_user
from steward.adapters.offload import Threads
from steward.agent.opted import OptedBook, Output
from steward.checks.job_log import signs_in
from steward.model.ids import JobId
from steward.model.job_report import LogSign

log = logging.getLogger(__name__)

MAX_BYTES = 64 << 10
_READ_S = 0.3
_ALL_S = 0.5


class Files(Protocol):
    """Of users; both raise PortError."""

    def size(self, path: str, uid: int, *, timeout_s: float) -> int: ...

    def tail(self, path: str, uid: int, *, max_bytes: int, timeout_s: float) -> str: ...


class JobLogs:
    """`__call__` raises Retryable where the output cannot be read in time; of a job without a path nothing is known."""

    def __init__(self, opted: OptedBook, threads: Threads, files: Files = as_user) -> None:
        self._opted, self._files, self._threads = opted, files, threads

    async def __call__(self, job: JobId, uid: int) -> tuple[LogSign, ...]:
        out = self._opted.out_of(job, uid)
        if not out.path.startswith("/"):
            return ()
        found = await self._threads.call(
            lambda: signs_in(self._read(out, uid)), name=f"output of {job}", timeout_s=_ALL_S
        )
        log.info("output read job=%d signs=%s", job, ",".join(sign.sign for sign in found) or "none")
        return found

    def _read(self, out: Output, uid: int) -> str:
        """An output that is shorter than it was at the start was emptied since."""
        size = self._files.size(out.path, uid, timeout_s=_READ_S)
        new = size - out.start if size >= out.start else size
        return self._files.tail(out.path, uid, max_bytes=min(new, MAX_BYTES), timeout_s=_READ_S) if new > 0 else ""
