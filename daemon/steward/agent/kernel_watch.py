"""The kernel log, judged line by line. Its events outlive a restart of the agent and end with the boot."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steward.adapters.files import read_json, write_json
from steward.adapters.node.kmsg import Batch, KernelLine, KernelLog, open_log
from steward.adapters.node.mender import same_gpu
from steward.adapters.wire.messages import finding_of, finding_record
from steward.agent.tasks import Debounced
from steward.checks.check import Judgement
from steward.checks.kernel_events import KernelEvent, judged_together, with_line
from steward.checks.kernel_log import FAMILY, judge, with_limits
from steward.checks.limits import Limits
from steward.model.dotted import lookup_dotted
from steward.model.health import Advice, Finding, Incarnation, Outcome
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

_RETRY_S = 30.0
_SAVE_EVERY_S = 10.0
_CATCH_UP_BATCHES = 16
_REST = 4.0
"""The pause after each batch, in multiples of the batch's CPU time: a flood of lines costs a fifth of a core at most.

Lines that the kernel drops during a pause are noticed, and every check looks again.
"""
CALM_S = 60.0
"""The shortest interval between looks of all checks that lost lines cause; the first look is at once.

The loss is reported until this long after the last lost line.
"""


def _open(path: Path, clock: Clock, position: int | None, inode: int) -> KernelLog:
    return open_log(path, clock=clock, position=position, inode=inode)


class KernelWatch:
    """The watch of the kernel log at `path`; the file `state` keeps its events."""

    def __init__(
        self,
        path: Path,
        *,
        state: Path,
        incarnation: Incarnation,
        clock: Clock,
        limits: Limits | None = None,
        opens: Callable[[Path, Clock, int | None, int], KernelLog] = _open,
        calm_s: float = CALM_S,
    ) -> None:
        self._opens = opens
        self._limits = limits or Limits()
        self._path = path
        self._state = state
        self._whose = [incarnation.instance, incarnation.boot]
        self._clock = clock
        self._source: KernelLog | None = None
        self._look_again: Callable[[], None] = lambda: None
        self._calm_s = calm_s
        self._looks = Debounced(lambda: self._look_again(), calm_s)
        self._lost_at = float("-inf")
        self._trouble = ""
        self._since = clock.now()
        self._position: int | None = None
        self.is_read = False
        self._inode = 0
        self._events: tuple[KernelEvent, ...] = ()
        self._saved_at = 0.0
        self._restore()

    def findings(self) -> tuple[Finding, ...]:
        """Return a finding for the log itself, and one for each event."""
        outcome = Outcome.UNKNOWN if self._trouble else Outcome.PASSED
        text = self._trouble or f"follows {self._path}"
        return (
            Finding(check=FAMILY, outcome=outcome, text=text, at=self._since),
            *(event.finding for event in judged_together(self._events)),
        )

    def forget(self, names: tuple[str, ...], before: float) -> None:
        """End the events up to `before` (Unix s) that a reset or restart of `names` (a GPU, a service) cures."""
        self.catch_up()
        seen = zip(self._events, judged_together(self._events), strict=True)
        cured = [event for event, told in seen if event.at <= before and _is_cured(told, names)]
        self._events = tuple(event for event in self._events if event not in cured)
        for event in cured:
            log.warning("kernel event is over check=%s text=%r why='it was repaired'", event.check, event.verdict.text)
        self._save()

    async def run(self, changed: Callable[[], None], look_again: Callable[[], None]) -> None:
        """Follow the log until cancelled; call `changed` after each new finding, `look_again` when lines were lost.

        A log that cannot be read is tried again, and its finding is unknown until then.
        """
        self._look_again = look_again
        while True:
            try:
                await self._follow(changed)
            except PortError as error:
                self.is_read = True
                if self._set_trouble(str(error)):
                    changed()
            await asyncio.sleep(_RETRY_S)

    def catch_up(self) -> None:
        """Read the lines that are already there, so that a report that is due now includes them."""
        with contextlib.suppress(PortError):  # `run` gets the same error and reports it
            for _ in range(_CATCH_UP_BATCHES):
                if self._source is None or (batch := self._source.read()) is None:
                    return
                self._judge_batch(batch)

    async def _follow(self, changed: Callable[[], None]) -> None:
        source = self._opens(self._path, self._clock, self._position, self._inode)
        self._source = source
        try:
            while True:
                began = time.thread_time()
                while (batch := source.read()) is not None:
                    if self._judge_batch(batch):
                        changed()
                    await asyncio.sleep(_REST * (time.thread_time() - began))
                    began = time.thread_time()
                self.is_read = True
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._calm_s):
                        await source.wait()
                if self._set_trouble(self._lost_lines()):
                    changed()
        finally:
            self._source = None
            source.close()

    def _judge_batch(self, batch: Batch) -> bool:
        """Judge and keep a batch; have every check look again if lines were lost. Return whether a finding is new."""
        self._position, self._inode = batch.position, batch.inode
        if batch.lost:
            self._lost_at = time.monotonic()
            self._looks.wish()
        before = self._events
        for line in batch.lines:
            self._judge_line(line)
        is_news = _findings_of(self._events) != _findings_of(before)
        for event in self._events if is_news else ():
            if event not in before:
                log.warning("kernel check=%s text=%r", event.check, event.verdict.text)
        if is_news or abs(self._clock.now() - self._saved_at) > _SAVE_EVERY_S:
            self._save()
        return self._set_trouble(self._lost_lines()) or is_news

    def _lost_lines(self) -> str:
        is_calm = time.monotonic() >= self._lost_at + self._calm_s
        return "" if is_calm else "lines were lost: the kernel wrote faster than we read"

    def _judge_line(self, line: KernelLine) -> None:
        sign = judge(line.text)
        if sign is None or lookup_dotted(sign.check, self._limits.modes) == "off":
            return
        sign = with_limits(sign, self._limits)
        self._events = with_line(self._events, sign, line.at, now=self._clock.now())

    def _set_trouble(self, trouble: str) -> bool:
        """Keep and log why the log cannot be followed (empty if it is); return whether that changed."""
        if trouble == self._trouble:
            return False
        self._trouble, self._since = trouble, self._clock.now()
        log.log(logging.WARNING if trouble else logging.INFO, "kernel log: %s", trouble or "followed")
        return True

    def _restore(self) -> None:
        """Read the saved state if it is of this incarnation; ignore the state of another boot or machine."""
        state = read_json(self._state)
        if not isinstance(state, dict) or state.get("whose") != self._whose:
            return
        try:
            self._events = tuple(_event_of(record) for record in state["events"])
            self._position, self._inode = int(state["position"]), int(state["inode"])
        except (KeyError, TypeError, ValueError, PortError) as error:
            log.warning("kernel state dropped why=%r", str(error))

    def _save(self) -> None:
        self._saved_at = self._clock.now()
        events = [_record_of(event) for event in self._events]
        state = {"whose": self._whose, "position": self._position, "inode": self._inode, "events": events}
        try:
            write_json(self._state, state)
        except PortError as error:
            log.warning("kernel state not saved why=%r", str(error))


def _is_cured(event: KernelEvent, names: tuple[str, ...]) -> bool:
    about = (event.subject, event.verdict.hardware)
    is_light = event.verdict.advice in (Advice.RESET_GPU, Advice.RESTART_SERVICE)
    return is_light and any(same_gpu(one, name) for one in about for name in names)


def _findings_of(events: tuple[KernelEvent, ...]) -> frozenset[Finding]:
    """Return the findings of the events, which change less often than the events' counts."""
    return frozenset(event.finding for event in events)


def _record_of(event: KernelEvent) -> dict[str, Any]:
    return {"finding": finding_record(event.finding), "subject": event.subject, "times": list(event.times)}


def _event_of(record: Any) -> KernelEvent:
    finding = finding_of(record["finding"])
    verdict = Judgement(
        outcome=finding.outcome,
        severity=finding.severity,
        advice=finding.advice,
        text=finding.text,
        scope=finding.scope,
        hardware=finding.hardware,
    )
    times = tuple(float(time) for time in record["times"])
    return KernelEvent(check=finding.check, subject=str(record["subject"]), verdict=verdict, at=finding.at, times=times)
