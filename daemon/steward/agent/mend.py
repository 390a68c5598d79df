"""The light repairs of this node on the head's order, once per token and boot."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from steward.adapters.files import read_json, write_json
from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Frame, Malformed
from steward.adapters.wire.order_messages import mended_frame, mended_of
from steward.agent.link import Outbox
from steward.model.agent_action import MendNode
from steward.model.health import Advice, Incarnation
from steward.model.mend import MendReport
from steward.model.text import cause_and_file
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

CUT_OFF = "the agent ended during this repair: the result is not known"
_LOOK_AGAIN_S = 70.0
"""The time that bad checks have to look again before the head hears that the repair is done."""
_TIMEOUT_S = 170.0


class MenderPort(Protocol):
    """The light repairs of a node; each blocks and raises PortError."""

    def restart(self, unit: str) -> None:
        """Restart a systemd unit."""

    def reset(self, gpu: str) -> tuple[str, ...]:
        """Reset a GPU, and return its names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterMend:
    """The consequences of a successful repair for the agent's picture of the node.

    `forget` ends the events about a GPU or a unit up to a time (Unix s); `start_anew` has the checks look again, within
    a number of seconds.
    """

    forget: Callable[[tuple[str, ...], float], None]
    start_anew: Callable[[float], Awaitable[None]]


class Mending:
    """The light repairs, one at a time; an order that comes during a repair is ignored until the head repeats it."""

    def __init__(
        self,
        path: Path,
        *,
        incarnation: Incarnation,
        head: Outbox,
        mender: MenderPort,
        after: AfterMend,
        threads: Threads,
        clock: Clock,
    ) -> None:
        self._path, self._whose = path, [incarnation.instance, incarnation.boot]
        self._head, self._mender, self._after = head, mender, after
        self._threads, self._clock = threads, clock
        self._task: asyncio.Task[None] | asyncio.Task[str] | None = None
        self._report = self._recall()

    def frames(self) -> tuple[Frame, ...]:
        """Return the report on the last order of this boot; empty if there was none."""
        return () if self._report is None else (mended_frame(self._report),)

    def obey(self, order: MendNode) -> None:
        """Start the repair, or report its result again if it was done; never block."""
        if self._task is not None:
            return
        if self._report is not None and self._report.token == order.token:
            self._head.post(mended_frame(self._report))
            return
        self._task = asyncio.get_running_loop().create_task(self._carry_out(order))
        self._task.add_done_callback(lambda _: self._forget_task())

    async def restart(self, unit: str) -> str:
        """Restart a unit without an order of the head, after the current repair; return the error, empty on success."""
        while self._task is not None:
            await self.rest()
        task = asyncio.get_running_loop().create_task(self._try(Advice.RESTART_SERVICE, unit))
        self._task = task
        task.add_done_callback(lambda _: self._forget_task())
        return await task

    async def rest(self) -> None:
        """Wait until no repair is under way."""
        if self._task is not None:
            await asyncio.gather(self._task)

    def _forget_task(self) -> None:
        self._task = None

    async def _carry_out(self, order: MendNode) -> None:
        log.warning("mend begins rung=%s target=%s token=%s", order.rung.value, order.target, order.token)
        try:
            self._save(MendReport(token=order.token, error=CUT_OFF, at=self._clock.now()))
            error = await self._try(order.rung, order.target)
        except PortError as failure:
            error = str(failure)
        self._report = MendReport(token=order.token, error=error, at=self._clock.now())
        log.warning("mend ended rung=%s target=%s why=%r", order.rung.value, order.target, error or "done")
        self._head.post(mended_frame(self._report))
        try:
            self._save(self._report)
        except PortError as failure:
            log.warning("mend not saved why=%r", str(failure))

    async def _try(self, rung: Advice, target: str) -> str:
        """Carry out the rung; return the error, empty on success."""
        try:
            await self._apply(rung, target)
        except (PortError, OSError) as failure:
            return cause_and_file(failure)
        return ""

    async def _apply(self, rung: Advice, target: str) -> None:
        began = self._clock.now()
        if rung is Advice.RESET_GPU:
            names = await self._blocking(lambda: self._mender.reset(target))
            self._after.forget(names, began)
        else:
            await self._blocking(lambda: self._restart(target))
            self._after.forget((target,), began)
        await self._after.start_anew(_LOOK_AGAIN_S)

    def _restart(self, unit: str) -> tuple[str, ...]:
        self._mender.restart(unit)
        return ()

    async def _blocking(self, what: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        return await self._threads.call(what, name="mend", timeout_s=_TIMEOUT_S)

    def _save(self, report: MendReport) -> None:
        write_json(self._path, {"whose": self._whose, "report": mended_frame(report)}, sync=True)

    def _recall(self) -> MendReport | None:
        """Return the saved report on the last order of this boot; None if there is none."""
        state: Any = read_json(self._path)
        if (
            not isinstance(state, dict)
            or state.get("whose") != self._whose
            or not isinstance(state.get("report"), dict)
        ):
            return None
        try:
            return mended_of(state["report"])
        except Malformed as error:
            log.warning("mend state dropped why=%r", str(error))
            return None
