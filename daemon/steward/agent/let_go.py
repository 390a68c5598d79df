"""On the head's order: end the slurmstepds of a job's lost run that have no task left and keep the node COMPLETING.

What killed ones left behind is put out of the way when a step of that number begins again.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from steward.adapters.node.stepds import Stepd
from steward.adapters.offload import Threads
from steward.adapters.wire.messages import LetGoOrder
from steward.agent.opted import OptedBook
from steward.model.ids import JobId
from steward.ports import PortError

log = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_ROOM_THREADS = 4


class Stepds(Protocol):
    def end_idle(self, job: JobId, before: float) -> tuple[Stepd, ...]:
        """Kill those of `job` that began before `before` (Unix s, our clock) and have no task; which they were."""

    def set_aside(self, job: JobId, step: int, uid: int, until: float) -> tuple[Path, ...]:
        """Rename what a killed one of this step left behind, and the next one stumbles over; what it was. Nothing after
        `until` (monotonic s): then the step has begun."""


class LettingGo:
    """Carries out one order at a time for a job; the head repeats itself while the node is COMPLETING."""

    def __init__(
        self, stepds: Stepds, *, opted: OptedBook, skew_s: Callable[[], float | None], threads: Threads
    ) -> None:
        self._stepds = stepds
        self._opted = opted
        self._skew_s = skew_s
        self._threads = threads
        self._room = Threads(_ROOM_THREADS)
        self._tasks: dict[JobId, asyncio.Task[None]] = {}

    def obey(self, order: LetGoOrder) -> None:
        """Begin, unless the order is of no use here: then say why."""
        skew, known = self._skew_s(), self._opted.of(order.job)
        if order.job in self._tasks:
            return
        if skew is None:
            log.info("not let go job=%d why='the clocks were not compared yet'", order.job)
        elif known is not None and known.restart > order.restart:
            log.warning("not let go job=%d why='restart %d of it began here'", order.job, known.restart)
        else:
            work = self._end(order, order.before - skew)
            self._tasks[order.job] = asyncio.get_running_loop().create_task(work)
            self._tasks[order.job].add_done_callback(lambda _: self._tasks.pop(order.job, None))

    async def make_room(self, job: JobId, step: int, uid: int, within_s: float) -> None:
        """Before this step begins, which waits for it. What fails or takes longer leaves the step to Slurm."""
        work = partial(self._stepds.set_aside, job, step, uid, time.monotonic() + within_s)
        try:
            left = await self._room.call(work, name=f"room {job}.{step}", timeout_s=within_s)
        except (PortError, OSError) as error:
            log.warning("no room made job=%d step=%d why=%r", job, step, str(error))
            return
        for path in left:
            log.warning("set aside job=%d step=%d path=%s why='a slurmstepd that was killed left it'", job, step, path)

    async def rest(self) -> None:
        """Until nothing is being done."""
        await asyncio.gather(*self._tasks.values())

    async def _end(self, order: LetGoOrder, before: float) -> None:
        try:
            ended = await self._threads.call(
                lambda: self._stepds.end_idle(order.job, before), name=f"let go {order.job}", timeout_s=_TIMEOUT_S
            )
        except (PortError, OSError) as error:
            log.warning("not let go job=%d why=%r", order.job, str(error))
            return
        for stepd in ended:
            pid = stepd.process.pid
            log.warning(
                "let go job=%d step=%s pid=%d restart=%d why=%r", order.job, stepd.step, pid, order.restart, order.why
            )
