"""The checks of this node: their schedule, their current findings, and the reports to the head."""

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol

from steward.adapters.offload import Threads
from steward.adapters.together import run_together
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.messages import report_frame
from steward.agent.catalogue import SiteChecks
from steward.agent.track import Track, loop_now
from steward.checks.check import Check
from steward.model.health import Finding, Outcome
from steward.model.text import cause_and_file
from steward.ports import PortError

log = logging.getLogger(__name__)

FIRST_REPORT_S = 10.0
LIST_S = 5.0
"""The timeout of a listing of the site's checks, whose files may lie on a file system that hangs."""
TRAVEL_S = 0.2
"""Seconds of a check-now's budget that are kept for the report's way to the head."""
MAX_BUDGET_S = 60.0
GATHER_S = 0.05
"""The wait for more results after the first: checks of one interval end within milliseconds, and share one report.

Events of the kernel log do not wait.
"""


class EventWatch(Protocol):
    """A source of event findings."""

    def findings(self) -> tuple[Finding, ...]:
        """Return the current findings."""

    @property
    def is_read(self) -> bool:
        """Return whether the events before the start were read, or cannot be."""

    def catch_up(self) -> None:
        """Read the events that are already there."""

    async def run(self, changed: Callable[[], None], look_again: Callable[[], None]) -> None:
        """Watch until cancelled; call `changed` on a new finding, `look_again` when events may have been missed."""


class Senses:
    """The checks of this node: the `built_in` ones, and the site's own, which `site` lists in a thread.

    While a listing hangs, the site checks of the last list go on. `track` makes the runner of one check. `next_list`
    returns the time of the next listing after a given time (loop's clock). `hardware` returns the identities of the
    node's hardware.
    """

    def __init__(
        self,
        *,
        built_in: Iterable[Check],
        site: Callable[[], SiteChecks],
        track: Callable[[Check], Track],
        watches: Iterable[EventWatch],
        post: Callable[[Frame], None],
        next_list: Callable[[float], float],
        hardware: Callable[[], tuple[str, ...]] = tuple,
        list_s: float = LIST_S,
    ) -> None:
        self._built_in = tuple(built_in)
        self._list_site = site
        self._track = track
        self._watches = tuple(watches)
        self._post = post
        self._next_list, self._list_s = next_list, list_s
        self._hardware = hardware
        self._tracks = {check.id: track(check) for check in self._built_in}
        self._site = SiteChecks()
        self._trouble = ""
        """Why the last listing of the site's checks failed; empty if it did not."""
        self._listed = asyncio.Event()
        self._listing = Threads(1)
        self._refresh_due = self._started = self._anew = loop_now()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._bell = asyncio.Event()
        self._reported: object = None

    def findings(self) -> tuple[Finding, ...]:
        """Return the current findings."""
        states = tuple(track.finding for track in self._tracks.values())
        return (*states, *self._of_site(), *(one for watch in self._watches for one in watch.findings()))

    @property
    def is_known(self) -> bool:
        """Return whether every check has a sure result since the start or the last repair.

        A check that hangs delays this by `FIRST_REPORT_S` at most.
        """
        if loop_now() - self._anew > FIRST_REPORT_S:
            return True
        return self._all_sure() and all(watch.is_read for watch in self._watches)

    def frames(self) -> tuple[Frame, ...]:
        """Return the report for a new connection; empty before the first report is ready."""
        return (self._report(self.findings(), None),) if self._is_ready() else ()

    def check_now(self, request: str, budget_s: float) -> None:
        """Look with every quick check and post the report that answers `request` within the budget."""
        budget = min(max(budget_s, 2 * TRAVEL_S), MAX_BUDGET_S) - TRAVEL_S
        self._start(f"now {request}", self._check_now(request, budget))

    async def start_anew(self, within_s: float) -> None:
        """Forget the results of all checks after a repair; have the bad ones look again until sure, in `within_s`."""
        deadline = loop_now() + within_s
        self._anew = loop_now()
        bad = [track for track in self._tracks.values() if track.standing.is_bad or track.standing.is_unsure]
        for track in self._tracks.values():
            track.start_anew()
        self._bell.set()
        looks = [asyncio.ensure_future(track.look_until_sure(deadline)) for track in bad]
        if looks:
            _, late = await asyncio.wait(looks, timeout=within_s)
            for look in late:
                look.cancel()

    async def run(self) -> None:
        """Run the checks and watches until cancelled."""
        try:
            await run_together(
                self._schedule(), *(one.run(self._report_news, self._look_again) for one in self._watches)
            )
        finally:
            for task in self._tasks.values():
                task.cancel()

    async def _schedule(self) -> None:
        while True:
            self._bell.clear()
            now = loop_now()
            self._refresh()
            due = [track for name, track in self._tracks.items() if track.due <= now and name not in self._tasks]
            for track in sorted(due, key=lambda track: track.check.cost_ms):  # quick checks do not wait for programs
                self._start(track.check.id, track.look())
            self._report_news()
            waiting = [track.due for name, track in self._tracks.items() if name not in self._tasks]
            await self._pause(min([*waiting, self._refresh_due]) - now)

    async def _pause(self, seconds: float) -> None:
        """Wait for `seconds`. If the bell rings, wait only until every look has ended, `GATHER_S` at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.01)) as limit:
                await self._bell.wait()
                limit.reschedule(min(limit.when() or math.inf, loop_now() + GATHER_S))
                while self._tasks:
                    self._bell.clear()
                    await self._bell.wait()

    def _refresh(self) -> None:
        """Start a listing of the site's checks if one is due, without waiting for it."""
        if loop_now() >= self._refresh_due:
            self._refresh_due = math.inf
            self._start("list of site checks", self._list())

    async def _list(self) -> None:
        """List the site's checks: add the new ones, and drop those whose files are gone."""
        trouble = ""
        try:
            self._set_site_checks(await self._listing.call(self._list_site, name="their files", timeout_s=self._list_s))
        except (PortError, OSError) as error:
            trouble = cause_and_file(error)
        finally:
            self._refresh_due = self._next_list(loop_now())
            self._listed.set()
        self._set_trouble(trouble)

    def _set_site_checks(self, site: SiteChecks) -> None:
        self._site = site
        checks = (*self._built_in, *site.checks)
        self._tracks = {check.id: self._tracks.get(check.id) or self._track(check) for check in checks}

    def _set_trouble(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            log.warning("site checks not listed why=%r", trouble)
        self._trouble = trouble

    def _of_site(self) -> tuple[Finding, ...]:
        """Return the findings about the site's check files and their listing."""
        if not self._trouble:
            return self._site.refused
        text = f"they cannot be listed ({self._trouble}): the {len(self._site.checks)} of the last list go on"
        return (Finding(check="site", outcome=Outcome.UNKNOWN, text=text),)

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._ended(name))

    def _ended(self, name: str) -> None:
        del self._tasks[name]
        self._bell.set()

    def _look_again(self) -> None:
        for track in self._tracks.values():
            track.look_soon()
        self._bell.set()

    async def _check_now(self, request: str, budget_s: float) -> None:
        deadline = loop_now() + budget_s
        self._refresh()
        known = dict(self._tracks)
        works = (self._look_until_sure(known, deadline), self._look_at_first_list(known, deadline))
        _, late = await asyncio.wait([asyncio.ensure_future(work) for work in works], timeout=budget_s)
        for look in late:
            look.cancel()
        for watch in self._watches:
            watch.catch_up()
        findings = self.findings()
        self._reported = self._essence(findings)
        self._post(self._report(findings, request))

    async def _look_until_sure(self, tracks: Mapping[str, Track], deadline: float) -> None:
        wanted = [one for one in tracks.values() if one.check.is_quick or one.standing.told is None]
        await asyncio.gather(*(track.look_until_sure(deadline) for track in wanted))

    async def _look_at_first_list(self, known: Mapping[str, Track], deadline: float) -> None:
        """Wait for the first listing of the site's checks, and look with those that `known` lacks."""
        await self._listed.wait()
        await self._look_until_sure({name: one for name, one in self._tracks.items() if name not in known}, deadline)

    def _report_news(self) -> None:
        """Post a report if there is news since the last one."""
        findings = self.findings()
        essence = self._essence(findings)
        if essence != self._reported and self._is_ready():
            self._reported = essence
            self._post(self._report(findings, None))

    def _report(self, findings: tuple[Finding, ...], checked: str | None) -> Frame:
        return report_frame(findings, checked, hardware=self._hardware(), versions=self._site.versions)

    def _essence(self, findings: tuple[Finding, ...]) -> object:
        """Return the part of a report whose change is news."""
        return _essence(findings), self._hardware(), frozenset(self._site.versions.items())

    def _is_ready(self) -> bool:
        """Return whether to report: the first report waits until every check is sure, but not if one is bad."""
        if self._reported is not None or loop_now() - self._started > FIRST_REPORT_S:
            return True
        if any(one.is_bad for one in self.findings()):
            return True
        return self._all_sure()

    def _all_sure(self) -> bool:
        tracks = self._tracks.values()
        return self._listed.is_set() and bool(tracks) and all(track.is_sure for track in tracks)


def _essence(findings: Iterable[Finding]) -> object:
    """Return the part of the findings whose change is news: not the text of a state, which changes with every look."""
    # `at` is news: it distinguishes a check with an unknown result from a check that has not looked yet
    return [
        (one.check, one.outcome, one.severity, one.advice, one.at, one.good_since, one.text if one.event else None)
        for one in findings
    ]
