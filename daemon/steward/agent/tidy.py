"""Now and then: forget opted-in jobs that are long gone from this node."""

import asyncio
import logging
from typing import Protocol

from steward.agent.opted import OptedBook
from steward.model.ids import JobId, NodeName
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

TIDY_EVERY_S = 600.0


class JobsLook(Protocol):
    async def on(self, node: NodeName) -> frozenset[JobId]:
        """Jobs that have the node now. Raises Retryable when it cannot be known."""


async def keep_tidy(
    opted: OptedBook, look: JobsLook, node: NodeName, clock: Clock, *, every_s: float = TIDY_EVERY_S
) -> None:
    """Until cancelled. Slurm is asked only when the book is crowded; without its answer nothing is forgotten."""
    while True:
        await asyncio.sleep(every_s)
        if not opted.is_crowded:
            continue
        try:
            opted.prune(await look.on(node), clock.now())
        except PortError as error:
            log.info("opted jobs kept why=%r", str(error))
