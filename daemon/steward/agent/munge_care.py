"""The agent's own restarts of munged, without which the agent cannot prove its identity."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from steward.adapters.files import read_json, write_json
from steward.adapters.offload import Threads
from steward.ports import Clock, MungePort, PortError, Retryable

log = logging.getLogger(__name__)

UNIT = "munge.service"
LOOKS = 3
BETWEEN_S = 2.0
"""The interval of `LOOKS` failed calls after which munged counts as dead; a restart or an upgrade takes less."""
PER_HOUR = 2
_HOUR_S = 3600.0
_ASK_S = 10.0
Restart = Callable[[str], Awaitable[str]]
"""Restart a unit; return the error, empty on success."""


class MungeCare:
    """A watch that restarts a dead munged; the file `path` keeps the times of restarts."""

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
        """Note, from any thread, that a call to munged got no answer."""
        self._loop.call_soon_threadsafe(self._bell.set)

    async def run(self, restart: Restart) -> None:
        """After each call without an answer, restart munged if it is dead; until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            await self.turn(restart)

    async def turn(self, restart: Restart) -> None:
        """Restart munged if it is dead."""
        if why := await self._why_dead():
            await self._mend(why, restart)
        else:
            self._is_given_up = False

    async def _why_dead(self) -> str:
        """Return why munged does not answer `LOOKS` calls in a row; empty if it answers one."""
        for look in range(LOOKS):
            if look:
                await asyncio.sleep(self._between_s)
            try:
                await self._threads.call(lambda: self._munge.encode(b""), name="munge care", timeout_s=_ASK_S)
            except Retryable as error:
                why = str(error)
            except PortError:
                return ""  # munged answers, if only with a refusal
            else:
                return ""
        return why

    async def _mend(self, why: str, restart: Restart) -> None:
        done = self._restarts()
        if len(done) >= PER_HOUR:
            if not self._is_given_up:
                log.error(
                    "munge dead why=%r restarts=%d: no more restarts within the hour: look at munged", why, len(done)
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
        """Return the times at which the agent restarted munged within the last hour."""
        kept: Any = read_json(self._path)
        now = self._clock.now()
        times = kept if isinstance(kept, list) else []
        return [at for at in times if isinstance(at, int | float) and now - _HOUR_S < at <= now]
