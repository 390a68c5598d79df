"""The progress of this node's opted-in jobs, reported to the head on a change."""

import asyncio
import contextlib
import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from steward.adapters.node.job_look import ProgressLook, ReportedProgress, Stamp
from steward.adapters.offload import PerUser, Threads
from steward.adapters.together import run_together
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import MAX_JOBS, progress_frame
from steward.agent.link import Outbox
from steward.agent.opted import OptedBook
from steward.model.ask import OptedIn
from steward.model.fair import fair_share
from steward.model.ids import JobId, NodeName
from steward.model.job_report import Progress
from steward.model.text import cause_and_file
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

EVERY_S = {"told": 0.5, "here": 15.0, "checkpoint": 15.0}
"""The interval of each look (s); a report that a job writes just before its node dies is lost."""
STEPS_EVERY_S = 2.0
"""The shortest interval of reports that only hold new steps; a new checkpoint is reported at once."""
ASLEEP_EVERY_S = 60.0
"""The interval of the search for processes of known jobs while none has a process here."""
YOUNG_S = 60.0
"""How long jobs are looked at after the last claim, even if they have no process here (yet)."""
_TIMEOUT_S = 10.0
_EARLIER_S = 1.0
"""The tolerance for file times, which are coarse."""
PACE_HALF_LIFE_S = 4 * 3600.0
FEWEST_PAUSES = 5


class StepPace:
    """A job's longest recent pause between two reported steps; a pause of this length is normal.

    A longer pause counts at once and decays slowly, so that rare long pauses (a checkpoint, an evaluation) still count
    when the next one comes.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._longest = 0.0
        self._count = 0

    @property
    def longest_s(self) -> float | None:
        """Return the longest recent pause (s); None after fewer than `FEWEST_PAUSES` pauses."""
        return self._longest if self._count >= FEWEST_PAUSES else None

    def step(self, at: float) -> None:
        """Count a step at `at` (Unix s)."""
        if self._last is not None and at > self._last:
            pause = at - self._last
            self._longest = max(pause, self._longest * 0.5 ** (pause / PACE_HALF_LIFE_S))
            self._count += 1
        self._last = at


class Eyes(Protocol):
    """Looks at the jobs of this node, called in a thread because each may block for a while."""

    def told(self, opted: OptedIn, before: Stamp | None) -> ProgressLook:
        """Read the job's report in its folder. Never raises."""

    def has_room(self) -> bool:
        """Return whether there is space for the reports of jobs. Never raises."""

    def newest(self, path: str, uid: int) -> float | None:
        """Return when a file at `path` changed last (Unix s of this node). Raises PortError."""

    def here(self, users: Mapping[JobId, int]) -> frozenset[JobId]:
        """Return which jobs of these users have processes here."""


@dataclass(kw_only=True)
class _Watched:
    """One run of a job on this node."""

    opted: OptedIn
    is_new: bool
    """Whether the job began after this watch, so that the first step seen here is its first step."""
    stamp: Stamp | None = None
    pace: StepPace = field(default_factory=StepPace)
    found: Progress


class JobWatch:
    """The watch of the opted-in jobs that have reported progress, or that have processes on this node."""

    def __init__(
        self,
        *,
        node: NodeName,
        opted: OptedBook,
        eyes: Eyes,
        head: Outbox,
        clock: Clock,
        threads: Callable[[], Threads],
    ) -> None:
        self._node, self._opted, self._eyes, self._head, self._clock = node, opted, eyes, head, clock
        self._threads = {name: threads() for name in ("told",)}
        self._of_user, self._users_memory = PerUser(threads), PerUser(threads)
        self._began = clock.now()
        self._watched: dict[JobId, _Watched] = {}
        self._here: frozenset[JobId] = frozenset()
        self._has_room = True
        self._sent: tuple[Progress, ...] = ()
        self._sent_at = -math.inf
        self._claimed_at = time.monotonic()
        self._bells = {name: asyncio.Event() for name in EVERY_S}
        opted.call_at_words(self._on_claim)

    def _on_claim(self) -> None:
        self._claimed_at = time.monotonic()
        self._wake()

    def _wake(self) -> None:
        for bell in self._bells.values():
            bell.set()

    @property
    def is_awake(self) -> bool:
        """Return whether a watched job has processes here, or was claimed a moment ago."""
        return any(job in self._here or self._is_young() for job in self._watched)

    def _is_young(self) -> bool:
        return time.monotonic() < self._claimed_at + YOUNG_S

    def frames(self) -> tuple[Frame, ...]:
        """Return the current progress for a newly connected head, even if empty: the head may know jobs that ended."""
        return (self._frame(self._now_known()),)

    async def run(self) -> None:
        """Look until cancelled; a look that hangs delays no other. While no job is here, wait for the next claim."""
        # a job that is over stays in the book for a while; each step of a job repeats the claim
        await run_together(*(self._keep_looking(name) for name in EVERY_S))

    async def turn(self) -> None:
        """Take every look once; without an opted-in job, look at nothing."""
        for name in EVERY_S:
            await self._look(name)

    async def _keep_looking(self, name: str) -> None:
        while True:
            self._bells[name].clear()
            was_awake = self.is_awake
            await self._look(name)
            if not self.is_awake:
                await self._sleep(name)
            elif was_awake:
                await asyncio.sleep(EVERY_S[name])
            else:
                self._wake()

    async def _sleep(self, name: str) -> None:
        # a process that starts outside of a step (by ssh) makes no claim
        looks_on = self._watched and name == "here"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ASLEEP_EVERY_S if looks_on else None):
                await self._bells[name].wait()

    async def _look(self, name: str) -> None:
        self._follow_book()
        if self._watched:
            await self._run_look(name)
        self._report_news()

    def _follow_book(self) -> None:
        book = {one.job: one for one in self._opted.claims_that_count() if one.mode.on}
        self._watched = {job: one for job, one in self._watched.items() if book.get(job) == one.opted}
        for job, opted in book.items():
            if job not in self._watched:
                empty = Progress(job=job, restart=opted.restart, node=self._node)
                self._watched[job] = _Watched(opted=opted, is_new=opted.at >= self._began, found=empty)

    async def _run_look(self, name: str) -> None:
        match name:
            case "checkpoint":
                await self._look_at_checkpoints()
            case "here":
                await self._look_for_processes()
            case _:
                await self._call(self._threads[name], self._read_reports, name)

    async def _look_at_checkpoints(self) -> None:
        """Look at the checkpoints, each user's in a separate pool, because files of a user may hang."""
        of_user: defaultdict[int, list[_Watched]] = defaultdict(list)
        for one in self._watched.values():
            if one.opted.mode.checkpoint and one.opted.job in self._here:
                of_user[one.opted.uid].append(one)
        await asyncio.gather(
            *(
                self._call(self._of_user.of(uid), partial(self._read_checkpoints, jobs), f"checkpoint of {uid}")
                for uid, jobs in of_user.items()
            )
        )

    async def _look_for_processes(self) -> None:
        """Look which jobs have processes here, each user's in a separate pool, because reading them may hang."""
        of_user: defaultdict[int, dict[JobId, int]] = defaultdict(dict)
        for job, one in self._watched.items():
            of_user[one.opted.uid][job] = one.opted.uid
        found: list[frozenset[JobId]] = []

        def look(users: Mapping[JobId, int]) -> None:
            found.append(self._eyes.here(users))

        calls = (
            self._call(self._users_memory.of(uid), partial(look, users), f"processes of {uid}")
            for uid, users in of_user.items()
        )
        await asyncio.gather(*calls)
        if found:
            self._here = frozenset().union(*found)

    async def _call(self, threads: Threads, look: Callable[[], None], name: str) -> None:
        try:
            await threads.call(look, name=f"jobs: {name}", timeout_s=_TIMEOUT_S)
        except (PortError, OSError) as error:
            log.info("jobs not looked at what=%s why=%r", name, cause_and_file(error))

    # In a thread

    def _read_reports(self) -> None:
        before, self._has_room = self._has_room, self._eyes.has_room()
        if not self._has_room:
            self._forget_steps(is_new=before)
            return
        for one in list(self._watched.values()):
            seen = self._eyes.told(one.opted, one.stamp)
            one.stamp = seen.stamp
            if seen.told is not None and seen.told.changed >= one.opted.at - _EARLIER_S:
                _take_report(one, seen.told, self._clock.now())

    def _forget_steps(self, *, is_new: bool) -> None:
        """Forget the steps that jobs reported: a job that cannot write must not seem to stand still."""
        if is_new:
            log.warning("job folders are full: how far jobs are is not known until there is room below agent.job_dir")
        for one in list(self._watched.values()):
            one.found = replace(one.found, step=None, stepped=None)

    def _read_checkpoints(self, jobs: Sequence[_Watched]) -> None:
        for one in jobs:
            path = one.opted.mode.checkpoint
            try:
                newest = self._eyes.newest(path, one.opted.uid)
            except PortError as error:
                log.info("checkpoints not looked at job=%d path=%s why=%r", one.opted.job, path, str(error))
                continue
            if newest is not None and newest >= one.opted.at:
                checkpoint = one.found.checkpoint or path
                one.found = replace(one.found, checkpoint=checkpoint, checkpointed=min(newest, self._clock.now()))

    # Back in the loop

    def _report_news(self) -> None:
        known = self._now_known()
        is_news = known != self._sent
        if is_news and (_milestones(known) != _milestones(self._sent) or self._is_report_due()):
            self._head.post(self._frame(known))

    def _is_report_due(self) -> bool:
        return not 0.0 <= self._clock.now() - self._sent_at < STEPS_EVERY_S  # the clock may be set back

    def _frame(self, known: tuple[Progress, ...]) -> Frame:
        self._sent, self._sent_at = known, self._clock.now()
        return progress_frame(known, self._sent_at)

    def _now_known(self) -> tuple[Progress, ...]:
        told = {job: one for job, one in sorted(self._watched.items()) if job in self._here or _has_reported(one.found)}
        kept = fair_share({job: one.opted.uid for job, one in told.items()}, MAX_JOBS)
        return tuple(told[job].found for job in sorted(kept))


def _has_reported(found: Progress) -> bool:
    return found.step is not None or found.checkpointed is not None


def _take_report(one: _Watched, told: ReportedProgress, now: float) -> None:
    """Update the watched job by its report; a smaller step is progress, too: the job went on from its checkpoint."""
    at, found = min(told.changed, now), one.found
    if told.step is not None and told.step != found.step:
        one.pace.step(at)
        is_first = found.step is None and found.first_step is None
        first = at if is_first and one.is_new else found.first_step
        found = replace(
            found,
            step=told.step,
            stepped=at,
            pace_s=one.pace.longest_s,
            first_step=first,
            first=_first_number(one, told, told.step),
        )
    if told.checkpoint and (told.checkpoint, told.checkpoint_step) != (found.checkpoint, found.checkpoint_step):
        found = replace(found, checkpoint=told.checkpoint, checkpoint_step=told.checkpoint_step, checkpointed=at)
    one.found = found


def _first_number(one: _Watched, told: ReportedProgress, step: int) -> int | None:
    """Return the number of the run's first step, as reported by the job, else as first seen here; None: not known."""
    if told.first is not None:
        return told.first
    # else the first step seen of a new run, or after a run went back to a checkpoint
    before = one.found.step
    if before is None:
        return step if one.is_new and one.found.first is None else one.found.first
    return step if step < before else one.found.first


def _milestones(known: tuple[Progress, ...]) -> Mapping[JobId, Progress]:
    """Return the progress without the values that every step changes."""
    return {one.job: replace(one, step=None if one.step is None else 0, stepped=None, pace_s=None) for one in known}
