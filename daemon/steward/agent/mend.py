"""On the head's order: carry out a light repair, once per token and boot, and tell the head how it ended. Without it:
restart munged.

What was begun is written down before it is done: an agent that is killed meanwhile never does it a second time, but
tells that it does not know how it ended, and the head goes up a rung.

Where munged does not answer, the agent can prove nothing that it says: its connection ends and nobody can order a
restart. So the agent restarts munged by itself, as seldom as the head would.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from steward.adapters.files import read_json, write_json
from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Frame, Malformed
from steward.adapters.wire.order_messages import MendOrder, mended_frame, mended_of
from steward.agent.link import Outbox
from steward.model.health import Advice, Incarnation
from steward.model.mend import MendReport
from steward.ports import Clock, MungePort, PortError, Retryable

log = logging.getLogger(__name__)

CUT_OFF = "the agent ended while this was being done: the result is not known"
_LOOK_AGAIN_S = 70.0
"""Checks that were bad have this long to say anew how things stand, before the head hears that it is done."""
_TIMEOUT_S = 170.0


class Mender(Protocol):
    def restart(self, unit: str) -> None:
        """Blocks. Raises PortError."""

    def reset(self, gpu: str) -> tuple[str, ...]:
        """Blocks; the names of the GPU. Raises PortError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterMend:
    """The consequences of a successful repair for what the agent holds of the node: `forget` the events about a GPU or
    a unit that are older than a time (Unix s), and look again with `start_anew`, for so many seconds at most."""

    forget: Callable[[tuple[str, ...], float], None]
    start_anew: Callable[[float], Awaitable[None]]


class Mending:
    """One repair at a time; an order that comes while another one is carried out is left to the head's next try."""

    def __init__(
        self,
        path: Path,
        *,
        incarnation: Incarnation,
        head: Outbox,
        mender: Mender,
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
        """How the last order of this boot ended, if there was one."""
        return () if self._report is None else (mended_frame(self._report),)

    def obey(self, order: MendOrder) -> None:
        """Begin, or tell again how it ended; never blocks."""
        if self._task is not None:
            return
        if self._report is not None and self._report.token == order.token:
            self._head.post(mended_frame(self._report))
            return
        self._task = asyncio.get_running_loop().create_task(self._carry_out(order))
        self._task.add_done_callback(lambda _: self._rested())

    async def restart(self, unit: str) -> str:
        """By the agent's own will, for what it cannot tell the head of, after what is being done already. Why it could
        not be; empty when it was."""
        while self._task is not None:
            await self.rest()
        order = MendOrder(rung=Advice.RESTART_SERVICE, target=unit, token="")
        task = asyncio.get_running_loop().create_task(self._error_of(order))
        self._task = task
        task.add_done_callback(lambda _: self._rested())
        return await task

    async def rest(self) -> None:
        """Until nothing is being done."""
        if self._task is not None:
            await asyncio.gather(self._task)

    def _rested(self) -> None:
        self._task = None

    async def _carry_out(self, order: MendOrder) -> None:
        log.warning("mend begins rung=%s target=%s token=%s", order.rung.value, order.target, order.token)
        try:
            self._save(MendReport(token=order.token, error=CUT_OFF, at=self._clock.now()))
            error = await self._error_of(order)
        except PortError as failure:
            error = str(failure)
        self._report = MendReport(token=order.token, error=error, at=self._clock.now())
        log.warning("mend ended rung=%s target=%s why=%r", order.rung.value, order.target, error or "done")
        self._head.post(mended_frame(self._report))
        try:
            self._save(self._report)
        except PortError as failure:
            log.warning("mend not saved why=%r", str(failure))

    async def _error_of(self, order: MendOrder) -> str:
        """Carry it out; how that failed, or nothing."""
        try:
            await self._do(order)
        except (PortError, OSError) as failure:
            return str(failure) or type(failure).__name__
        return ""

    async def _do(self, order: MendOrder) -> None:
        began = self._clock.now()
        if order.rung is Advice.RESET_GPU:
            names = await self._blocking(lambda: self._mender.reset(order.target))
            self._after.forget(names, began)
        else:
            await self._blocking(lambda: self._restart(order.target))
            self._after.forget((order.target,), began)
        await self._after.start_anew(_LOOK_AGAIN_S)

    def _restart(self, unit: str) -> tuple[str, ...]:
        self._mender.restart(unit)
        return ()

    async def _blocking(self, what: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        return await self._threads.call(what, name="mend", timeout_s=_TIMEOUT_S)

    def _save(self, report: MendReport) -> None:
        write_json(self._path, {"whose": self._whose, "report": mended_frame(report)}, sync=True)

    def _recall(self) -> MendReport | None:
        """The result of the last order of this very boot."""
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


UNIT = "munge.service"
LOOKS = 3
BETWEEN_S = 2.0
"""A restart or an upgrade of munge is no fault: it must not answer so many times, this far apart."""
PER_HOUR = 2
_HOUR_S = 3600.0
_ASK_S = 10.0
Restart = Callable[[str], Awaitable[str]]
"""Restarts a unit; why it could not, or nothing."""


class MungeCare:
    """`path` keeps when munged was restarted."""

    def __init__(
        self,
        path: Path,
        *,
        munge: MungePort,
        threads: Threads,
        clock: Clock,
        between_s: float = BETWEEN_S,
    ) -> None:
        self._path, self._munge = path, munge
        self._threads, self._clock, self._between_s = threads, clock, between_s
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._is_given_up = False

    def no_answer(self, why: str) -> None:
        """Munged did not answer somebody; from any thread."""
        self._loop.call_soon_threadsafe(self._bell.set)

    async def run(self, restart: Restart) -> None:
        """Until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            await self.turn(restart)

    async def turn(self, restart: Restart) -> None:
        """See whether it is dead, and mend it then."""
        if why := await self._why_dead():
            await self._mend(why, restart)
        else:
            self._is_given_up = False

    async def _why_dead(self) -> str:
        """Why it does not answer, now and some seconds on; empty when it does."""
        for look in range(LOOKS):
            if look:
                await asyncio.sleep(self._between_s)
            try:
                await self._threads.call(lambda: self._munge.encode(b""), name="munge care", timeout_s=_ASK_S)
            except Retryable as error:
                why = str(error)
            except PortError:
                return ""  # it answers, if only with a refusal
            else:
                return ""
        return why

    async def _mend(self, why: str, restart: Restart) -> None:
        done = self._restarts()
        if len(done) >= PER_HOUR:
            if not self._is_given_up:
                log.error(
                    "munge dead why=%r restarts=%d: restart no more within the hour: look at munged", why, len(done)
                )
            self._is_given_up = True
            return
        log.warning("munge dead why=%r restart=%d of %d in an hour", why, len(done) + 1, PER_HOUR)
        try:
            write_json(self._path, [*done, self._clock.now()])
        except PortError as error:
            log.error("munge not restarted why=%r", str(error))
            return
        failure = await restart(UNIT)
        log.warning("munge restart ended why=%r", failure or "done")

    def _restarts(self) -> list[float]:
        """When it was restarted within the last hour."""
        kept: Any = read_json(self._path)
        now = self._clock.now()
        times = kept if isinstance(kept, list) else []
        return [at for at in times if isinstance(at, int | float) and now - _HOUR_S < at <= now]
