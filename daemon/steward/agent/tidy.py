"""Now and then: forget opted-in jobs that are gone from this node, and remove their folders."""

import asyncio
import logging
from functools import partial

from steward.adapters.offload import Threads
from steward.agent.job_folder import JobFolders
from steward.agent.opted import OptedBook
from steward.agent.owners import JobsLook
from steward.model.ids import JobId, NodeName
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

TIDY_EVERY_S = 600.0
_REMOVE_S = 30.0


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
