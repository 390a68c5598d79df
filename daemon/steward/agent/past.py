"""What the head knows of a resumed job's past, asked when something of it starts here.

The head tells it by itself with the answer that lets a step run again: then nobody need ask.
"""

import asyncio
from typing import Protocol

from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import facts_wanted_frame
from steward.model.ids import JobId
from steward.model.job_report import ResumeFacts

PATIENCE_S = 0.25
"""The head may have to look first where the job runs now."""
TOLD_S = 5.0
"""So long what was told unasked answers a question."""
MAX_TOLD = 256


class Head(Protocol):
    def post(self, frame: Frame) -> None: ...


class Past:
    def __init__(self, head: Head, *, patience_s: float = PATIENCE_S) -> None:
        self._head = head
        self._patience_s = patience_s
        self._wanted: dict[JobId, asyncio.Future[ResumeFacts | None]] = {}
        self._told: dict[JobId, tuple[ResumeFacts, float]] = {}

    async def of(self, job: JobId) -> ResumeFacts | None:
        """None: the head does not know the job, or did not answer in time. Many may wait for one answer."""
        if (told := self._told.get(job)) is not None and _now() < told[1] + TOLD_S:
            return told[0]
        wanted = self._wanted.get(job)
        if wanted is None:
            wanted = self._wanted[job] = asyncio.get_running_loop().create_future()
            self._head.post(facts_wanted_frame(job))
        await asyncio.wait((wanted,), timeout=self._patience_s)
        if self._wanted.get(job) is wanted:
            del self._wanted[job]
        return wanted.result() if wanted.done() else None

    def hear(self, job: JobId, facts: ResumeFacts | None) -> None:
        """The head's word; nobody may wait for it any more, or yet."""
        wanted = self._wanted.get(job)
        if wanted is not None and not wanted.done():
            wanted.set_result(facts)
        elif facts is not None:
            self._told = {id: told for id, told in self._told.items() if id != job and _now() < told[1] + TOLD_S}
            if len(self._told) < MAX_TOLD:
                self._told[job] = facts, _now()


def _now() -> float:
    return asyncio.get_running_loop().time()
