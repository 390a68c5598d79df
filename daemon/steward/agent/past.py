"""What the head knows of a resumed job's past, asked when something of it starts here."""

import asyncio
from typing import Protocol

from steward.adapters.job_messages import facts_wanted_frame
from steward.adapters.wire import Frame
from steward.model.ids import JobId
from steward.model.job_report import ResumeFacts

PATIENCE_S = 0.15


class Head(Protocol):
    def post(self, frame: Frame) -> None: ...


class Past:
    def __init__(self, head: Head, *, patience_s: float = PATIENCE_S) -> None:
        self._head = head
        self._patience_s = patience_s
        self._wanted: dict[JobId, asyncio.Future[ResumeFacts | None]] = {}

    async def of(self, job: JobId) -> ResumeFacts | None:
        """None: the head does not know the job, or did not answer in time. Many may wait for one answer."""
        wanted = self._wanted.get(job)
        if wanted is None:
            wanted = self._wanted[job] = asyncio.get_running_loop().create_future()
            self._head.post(facts_wanted_frame(job))
        await asyncio.wait((wanted,), timeout=self._patience_s)
        if self._wanted.get(job) is wanted:
            del self._wanted[job]
        return wanted.result() if wanted.done() else None

    def hear(self, job: JobId, facts: ResumeFacts | None) -> None:
        """The head's word; nobody may wait for it any more."""
        wanted = self._wanted.get(job)
        if wanted is not None and not wanted.done():
            wanted.set_result(facts)
