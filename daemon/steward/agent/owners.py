"""Whose a job is that several users call theirs: Slurm says."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from steward.agent.opted import OptedBook
from steward.model.ids import JobId, NodeName
from steward.ports import PortError

log = logging.getLogger(__name__)

PATIENCE_S = 0.1
EVERY_S = 1.0


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
