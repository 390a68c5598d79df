"""The kernel log, judged line by line; what it told stays over a restart of the agent, and goes with the boot."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steward.adapters.jsonfile import read_json, write_json
from steward.adapters.kmsg import Batch, KernelLog, open_log
from steward.adapters.messages import finding_of, finding_record
from steward.checks.check import Verdict
from steward.checks.kernel_events import Kept, remember
from steward.checks.kernel_log import judge
from steward.model.health import Finding, Incarnation, Outcome
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

CHECK = "kernel_log"
_RETRY_S = 30.0
_SAVE_EVERY_S = 10.0
_CATCH_UP_BATCHES = 16


class KernelWatch:
    """Follows the log at `path` and keeps what it told in the file `state`."""

    def __init__(
        self,
        path: Path,
        *,
        state: Path,
        incarnation: Incarnation,
        clock: Clock,
    ) -> None:
        self._path = path
        self._state = state
        self._whose = [incarnation.instance, incarnation.boot]
        self._clock = clock
        self._source: KernelLog | None = None
        self._trouble = ""
        self._since = clock.now()
        self._position: int | None = None
        self._inode = 0
        self._events: tuple[Kept, ...] = ()
        self._saved_at = 0.0
        self._restore()

    def findings(self) -> tuple[Finding, ...]:
        """One for the log itself, and one for each event."""
        outcome = Outcome.UNKNOWN if self._trouble else Outcome.PASSED
        text = self._trouble or f"follows {self._path}"
        return (
            Finding(check=CHECK, outcome=outcome, text=text, at=self._since),
            *(event.finding for event in self._events),
        )

    async def run(self, changed: Callable[[], None], look_again: Callable[[], None]) -> None:
        """Until cancelled. `changed` is called after each new finding, `look_again` when lines were lost. A log that
        cannot be read is tried again, and said to be unknown meanwhile."""
        while True:
            try:
                await self._follow(changed, look_again)
            except PortError as error:
                if self._say(str(error)):
                    changed()
            await asyncio.sleep(_RETRY_S)

    def catch_up(self) -> None:
        """Take in what lies there already, so that a report which is due now has it."""
        with contextlib.suppress(PortError):  # `run` sees it, too, and says so
            for _ in range(_CATCH_UP_BATCHES):
                if self._source is None or (batch := self._source.read()) is None:
                    return
                self._take(batch)

    async def _follow(self, changed: Callable[[], None], look_again: Callable[[], None]) -> None:
        source = open_log(self._path, clock=self._clock, position=self._position, inode=self._inode)
        self._source = source
        try:
            while True:
                while (batch := source.read()) is not None:
                    if self._take(batch):
                        changed()
                    if batch.lost:
                        look_again()
                    await asyncio.sleep(0)  # a flood of lines must not starve the heartbeat
                await source.wait()
        finally:
            self._source = None
            source.close()

    def _take(self, batch: Batch) -> bool:
        """Judge and keep; True when there is a new finding."""
        self._position, self._inode = batch.position, batch.inode
        before = self._events
        for line in batch.lines:
            if (sign := judge(line.text)) is not None:
                log.warning("kernel check=%s text=%r", sign.check, sign.verdict.text)
                self._events = remember(self._events, sign, line.at)
        is_news = self._events != before
        if is_news or abs(self._clock.now() - self._saved_at) > _SAVE_EVERY_S:
            self._save()
        return self._say("lines were lost: the kernel wrote faster than we read" if batch.lost else "") or is_news

    def _say(self, trouble: str) -> bool:
        """Note how the following goes; True when that is news."""
        if trouble == self._trouble:
            return False
        self._trouble, self._since = trouble, self._clock.now()
        log.log(logging.WARNING if trouble else logging.INFO, "kernel log %s", trouble or "followed")
        return True

    def _restore(self) -> None:
        """What this very incarnation has saved; a state of another boot or machine is nothing to us."""
        state = read_json(self._state)
        if not isinstance(state, dict) or state.get("whose") != self._whose:
            return
        try:
            self._events = tuple(_kept_of(record) for record in state["events"])
            self._position, self._inode = int(state["position"]), int(state["inode"])
        except (KeyError, TypeError, ValueError, PortError) as error:
            log.warning("kernel state dropped why=%r", str(error))

    def _save(self) -> None:
        self._saved_at = self._clock.now()
        events = [_kept_record(event) for event in self._events]
        state = {"whose": self._whose, "position": self._position, "inode": self._inode, "events": events}
        try:
            write_json(self._state, state)
        except PortError as error:
            log.warning("kernel state not saved why=%r", str(error))


def _kept_record(event: Kept) -> dict[str, Any]:
    return {"finding": finding_record(event.finding), "subject": event.subject, "times": list(event.times)}


def _kept_of(record: Any) -> Kept:
    finding = finding_of(record["finding"])
    verdict = Verdict(outcome=finding.outcome, severity=finding.severity, advice=finding.advice, text=finding.text)
    times = tuple(float(time) for time in record["times"]) or (finding.at,)
    return Kept(check=finding.check, subject=str(record["subject"]), verdict=verdict, times=times)
