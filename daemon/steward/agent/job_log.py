"""What is known of the end of a job's output: read with its user's rights, in children that are killed when slow."""

import asyncio
import logging
from typing import Protocol

from steward.adapters import as_user
from steward.adapters.offload import Threads
from steward.agent.opted import OptedBook
from steward.checks.job_log import signs_in
from steward.model.ids import JobId
from steward.model.job_report import LogSign
from steward.ports import PortError

log = logging.getLogger(__name__)

MAX_BYTES = 64 << 10
_SIZE_S = 2.0
_READ_S = 0.3
_ALL_S = 0.5
_MOST_STARTS = 1024


class Files(Protocol):
    """Of users; both raise PortError."""

    def size(self, path: str, uid: int, *, timeout_s: float) -> int: ...

    def tail(self, path: str, uid: int, *, max_bytes: int, timeout_s: float) -> str: ...


class JobLogs:
    """`__call__` raises Retryable where the output cannot be read in time; of a job without a path nothing is known."""

    def __init__(self, opted: OptedBook, threads: Threads, files: Files = as_user) -> None:
        self._opted, self._files, self._threads = opted, files, threads
        self._starts: dict[tuple[JobId, int], tuple[int, int]] = {}
        """Of each user's job: a restart count, and how long its output was when that run began."""
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, job: JobId, uid: int) -> None:
        """A run of it has begun: what its output holds already (`--open-mode=append`) is of the runs before."""
        task = asyncio.get_running_loop().create_task(self._measure(job, uid))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def rest(self) -> None:
        """Until nothing is being done."""
        await asyncio.gather(*self._tasks)

    async def __call__(self, job: JobId, uid: int) -> tuple[LogSign, ...]:
        known, path = self._opted.by(job, uid), self._opted.out_of(job, uid)
        if known is None or not path.startswith("/"):
            return ()
        restart, start = self._starts.get((job, uid), (known.restart, 0))
        begun = start if restart == known.restart else 0
        found = await self._threads.call(
            lambda: signs_in(self._read(path, uid, begun)), name=f"output of {job}", timeout_s=_ALL_S
        )
        log.info("output read job=%d signs=%s", job, ",".join(sign.sign for sign in found) or "none")
        return found

    async def _measure(self, job: JobId, uid: int) -> None:
        known, path = self._opted.by(job, uid), self._opted.out_of(job, uid)
        if known is None or not path.startswith("/"):
            return
        try:
            start = await self._threads.call(
                lambda: self._files.size(path, uid, timeout_s=_SIZE_S), name=f"output of {job}", timeout_s=_SIZE_S
            )
        except (PortError, OSError) as error:
            log.info("output not measured job=%d why=%r", job, str(error))
            return
        self._starts[job, uid] = (known.restart, start)
        while len(self._starts) > _MOST_STARTS:
            del self._starts[next(iter(self._starts))]

    def _read(self, path: str, uid: int, start: int) -> str:
        """An output that is shorter than it was at the start was emptied since."""
        size = self._files.size(path, uid, timeout_s=_READ_S)
        new = size - start if size >= start else size
        return self._files.tail(path, uid, max_bytes=min(new, MAX_BYTES), timeout_s=_READ_S) if new > 0 else ""
