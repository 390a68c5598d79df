"""The node's lifecycle scripts on the head's order, once per token and boot, with reports and their log for the head.

The runner is a process of its own (`steward.lifecycle`) that survives the agent; its state is read from the disk.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from steward.adapters.node.setup_dir import Here, SetupDir, SetupJob, last_run, prune
from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.order_messages import CHUNK, LogChunk, SetUpParts, setup_frame, setup_log_frame
from steward.agent.link import HeadConnection
from steward.model.agent_action import SetUpNode
from steward.model.setup import SetupReport, SetupState
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

T = TypeVar("T")

POLL_S = 0.5
LOG_EVERY_S = 2.0
"""The interval of log chunks while scripts run: every chunk costs the head a munge seal."""
_LOOK_TIMEOUT_S = 90.0
_CHUNKS_AT_ONCE = 8
_SENT_AGAIN = 8 * CHUNK
"""Bytes of the log that are sent again on a new connection: the old connection may have lost them."""
CUT_OFF = "interrupted: the runner was killed or the machine stopped"


class RunnerStart(Protocol):
    """The start and the cleanup of runners."""

    def start(self, setup: SetupDir) -> None:
        """Start the runner, and block until it has begun. Raises PortError."""

    def sweep(self, setup: SetupDir) -> None:
        """End the processes that an interrupted runner has left running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One look at a setup: its runner's last report, and more of its output, from `sent` on."""

    sent: int
    report: SetupReport | None
    chunks: tuple[LogChunk, ...]

    @property
    def is_over(self) -> bool:
        """Return whether the setup has ended."""
        return _is_over(self.report)


class Setups:
    """The setups of this node, one at a time; an order during a setup waits for its end, and the latest order wins."""

    def __init__(
        self, root: Path, *, here: Here, head: HeadConnection, start: RunnerStart, threads: Threads, clock: Clock
    ) -> None:
        self._root, self._here, self._head, self._start = root, here, head, start
        self._threads, self._clock = threads, clock
        self._parts = SetUpParts()
        self._next: SetUpNode | None = None
        self._current: SetupDir | None = None
        self._report: SetupReport | None = None
        self._sent = 0
        """Characters of the current log that were sent."""
        self._log_due = 0.0
        self._is_reported = True
        """Whether the current setup is over and the head has all of its log, or there is none."""
        self._bell = asyncio.Event()

    def frames(self) -> tuple[Frame, ...]:
        """Return the last report for a new connection, and arrange for the end of the log to be sent again."""
        self._sent = max(0, self._sent - _SENT_AGAIN)
        self._is_reported = self._current is None
        self._bell.set()
        return () if self._report is None else (setup_frame(self._report),)

    def hear(self, frame: Frame) -> None:
        """Take a part of the head's order; a complete order replaces one that waits. Raises Malformed."""
        order = self._parts.take(frame, self._here.node)
        if order is None:
            return
        self._next = order
        self._bell.set()

    async def run(self) -> None:
        """Carry out orders until cancelled; first resume watching the last setup of this boot."""
        await self._blocking(self._recall)
        for frame in self.frames():
            self._head.post(frame)
        while True:
            self._bell.clear()
            await self._turn()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if self._is_reported else POLL_S):
                    await self._bell.wait()

    async def _turn(self) -> None:
        """Read the current setup's report and log; if the setup is over, start the next one."""
        if self._current is not None and not self._is_reported:
            self._send_news(await self._blocking(self._look_at(self._current)))
        if self._next is not None and self._report is not None and self._next.token == self._report.token:
            self._next = None
            self._head.post(setup_frame(self._report))
        if self._next is not None and (self._report is None or _is_over(self._report)):
            order, self._next = self._next, None
            log.info("setup begins token=%s source=%r", order.token, order.lifecycle.source)
            self._current, self._sent, self._is_reported = SetupDir(self._root, order.token), 0, False
            self._report_if_new(
                SetupReport(token=order.token, state=SetupState.RUNNING, step="begin", at=self._clock.now())
            )
            self._report_if_new(await self._blocking(lambda: self._begin(order)) or self._failed(order))

    def _send_news(self, seen: _Seen | None) -> None:
        if seen is None:
            return
        if seen.report is not None:
            self._report_if_new(seen.report)
        if seen.sent != self._sent:  # a new connection was opened meanwhile: its log begins further back
            return
        for chunk in seen.chunks if self._head.away_since is None else ():
            self._head.post(setup_log_frame(chunk))
            self._sent = chunk.offset + len(chunk.text)
        self._is_reported = not seen.chunks and seen.is_over

    def _report_if_new(self, report: SetupReport) -> None:
        if report == self._report:
            return
        self._report = report
        log.info("setup token=%s state=%s step=%r why=%r", report.token, report.state.value, report.step, report.why)
        self._head.post(setup_frame(report))

    # In the setup thread: a disk that hangs must not delay the heartbeats

    def _recall(self) -> None:
        """Read the last setup of this boot, which an earlier agent process may have begun."""
        self._current = last_run(self._root, self._here.incarnation)
        if self._current is not None:
            self._report = self._current.report()

    def _begin(self, order: SetUpNode) -> SetupReport:
        """Start the setup, unless one of this token is there already; return its first report."""
        setup = SetupDir(self._root, order.token)
        known = setup.job()
        if known is None or known.here.incarnation != self._here.incarnation:
            setup.forget()
            prune(self._root)
            setup.create(SetupJob(order=order, here=self._here))
            try:
                self._start.start(setup)
            except PortError as error:
                setup.finish_if_cut_off(f"the runner could not be started: {error}", self._clock.now())
        return setup.report() or self._failed(order)

    def _look_at(self, setup: SetupDir) -> Callable[[], _Seen]:
        """Return a look at the setup, to be called in the setup thread."""
        sent, now = self._sent, asyncio.get_running_loop().time()
        wants_log = now >= self._log_due
        if wants_log:
            self._log_due = now + LOG_EVERY_S

        def look() -> _Seen:
            report = setup.report()
            if not _is_over(report):
                settled = setup.finish_if_cut_off(CUT_OFF, self._clock.now())
                if settled is not None and settled.why == CUT_OFF:
                    self._start.sweep(setup)
                report = settled or report
            pieces = _pieces(setup, sent) if wants_log or _is_over(report) else ()
            return _Seen(sent=sent, report=report, chunks=tuple(pieces))

        return look

    def _failed(self, order: SetUpNode) -> SetupReport:
        why = "the setup could not be started: see the log of the node's agent"
        return SetupReport(token=order.token, state=SetupState.FAILED, step="begin", why=why, at=self._clock.now())

    async def _blocking(self, what: Callable[[], T]) -> T | None:
        """Call `what` in the setup thread and return its result; log a failure and return None."""
        try:
            return await self._threads.call(what, name="setup", timeout_s=_LOOK_TIMEOUT_S)
        except (PortError, OSError) as error:
            log.warning("setup: %s", error)
            return None


def _is_over(report: SetupReport | None) -> bool:
    return report is not None and report.state is not SetupState.RUNNING


def _pieces(setup: SetupDir, sent: int) -> Iterator[LogChunk]:
    """Yield the next chunks of the setup's output, `_CHUNKS_AT_ONCE` at most."""
    with contextlib.suppress(FileNotFoundError), setup.output.open("rb") as file:
        file.seek(sent)
        for _ in range(_CHUNKS_AT_ONCE):
            offset, text = file.tell(), file.read(CHUNK).decode("ascii", "replace")
            if not text:
                return
            yield LogChunk(token=setup.token, offset=offset, text=text)
