"""What is known of the end of a job's output: read with its user's rights, in children that are killed when slow."""

import logging
from typing import Protocol

from steward.adapters.node import as_user
from steward.adapters.offload import Threads
from steward.agent.opted import OptedBook, Output
from steward.checks.job_log import signs_in
from steward.model.ids import JobId
from steward.model.job_report import LogSign

log = logging.getLogger(__name__)

MAX_BYTES = 64 << 10
_READ_S = 0.5


class Files(Protocol):
    """Of users; raises PortError."""

    def tail(self, path: str, uid: int, *, max_bytes: int, timeout_s: float, start: int) -> str: ...


class JobLogs:
    """`__call__` raises Retryable where the output cannot be read in time; of a job without a path nothing is known."""

    def __init__(self, opted: OptedBook, threads: Threads, files: Files = as_user) -> None:
        self._opted, self._files, self._threads = opted, files, threads

    async def __call__(self, job: JobId, uid: int) -> tuple[LogSign, ...]:
        out = self._opted.out_of(job, uid)
        if not out.path.startswith("/"):
            return ()
        found = await self._threads.call(
            lambda: signs_in(self._read(out, uid)), name=f"output of {job}", timeout_s=_READ_S
        )
        log.info("output read job=%d signs=%s", job, ",".join(sign.sign for sign in found) or "none")
        return found

    def _read(self, out: Output, uid: int) -> str:
        return self._files.tail(out.path, uid, max_bytes=MAX_BYTES, timeout_s=_READ_S, start=out.start)
