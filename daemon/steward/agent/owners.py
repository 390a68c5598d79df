"""Slurm's word on the opted-in jobs of this node: whose a job is that several users call theirs, and now and then which
are gone, so that they are forgotten and their folders removed."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from steward.adapters.offload import Threads
from steward.agent.job_folder import JobFolders
from steward.agent.opted import OptedBook
from steward.model.ids import JobId, NodeName
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

PATIENCE_S = 0.1
EVERY_S = 1.0
TIDY_EVERY_S = 600.0
_REMOVE_S = 30.0


class JobsLook(Protocol):
    async def on(self, node: NodeName) -> Mapping[JobId, int]:
        """The users of the jobs that have the node now. Raises Retryable when that cannot be known."""


class Owners:
    """Slurm is asked only in a dispute, and at most once a second: users cannot make the agent ask it at their pace."""

    def __init__(self, node: NodeName, opted: OptedBook, look: JobsLook) -> None:
        self._node, self._opted, self._look = node, opted, look
        self._inquiry: asyncio.Task[None] | None = None
        self._asked = float("-inf")

    async def settle(self, job: JobId) -> None:
        """Forget those who call it theirs and are wrong, within `PATIENCE_S` where Slurm answers so fast, or later."""
        now = asyncio.get_running_loop().time()
        if not self._opted.is_disputed(job):
            return
        if self._inquiry is None and now >= self._asked + EVERY_S:
            self._asked = now
            self._inquiry = asyncio.get_running_loop().create_task(self._ask())
        if self._inquiry is not None:
            await asyncio.wait((self._inquiry,), timeout=PATIENCE_S)

    async def _ask(self) -> None:
        try:
            self._opted.settle(await self._look.on(self._node))
        except PortError as error:
            log.info("not known whose jobs are why=%r", str(error))
        finally:
            self._inquiry = None


# Jobs that are gone.


async def keep_tidy(
    opted: OptedBook,
    folders: JobFolders,
    look: JobsLook,
    node: NodeName,
    clock: Clock,
    *,
    every_s: float = TIDY_EVERY_S,
) -> None:
    """Until cancelled; then the book is closed. Slurm is asked only when it is crowded or a job has a folder here;
    without its answer nothing is forgotten."""
    threads = Threads(1)
    try:
        while True:
            await asyncio.sleep(every_s)
            if opted.is_crowded or folders.all():
                await _tidy(opted, folders, look, node, clock, threads)
    finally:
        opted.close()


async def _tidy(
    opted: OptedBook, folders: JobFolders, look: JobsLook, node: NodeName, clock: Clock, threads: Threads
) -> None:
    try:
        opted.prune(await look.on(node), clock.now())
        await threads.call(partial(_remove, folders, _left(folders, opted)), name="tidy", timeout_s=_REMOVE_S)
    except PortError as error:
        log.info("opted jobs kept why=%r", str(error))


def _left(folders: JobFolders, opted: OptedBook) -> frozenset[JobId]:
    """Jobs that have a folder and are in the book no more."""
    return folders.all() - {one.job for one in opted.all()}


def _remove(folders: JobFolders, jobs: frozenset[JobId]) -> None:
    for job in jobs:
        folders.remove(job)
