"""One state check as it runs on this node: its looks, one at a time, its standing, and its notes.

Notes (strikes, ports that were up once) outlive the agent and end with the boot.
"""

import asyncio
import logging
import math
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steward.adapters.files import read_json, write_json
from steward.adapters.node.probe import KEEP_S
from steward.adapters.offload import Threads
from steward.checks.check import NO_NOTES, Check, Facts, Judgement, Notes, Past, Reading, unknown
from steward.checks.samples import CheckStanding, SampleRule, after_look
from steward.model.agent_tables import HealthPolicy
from steward.model.health import Finding, Incarnation, Outcome
from steward.model.ids import NodeName
from steward.model.probe import Raw
from steward.ports import Clock, PortError, ProbePort

log = logging.getLogger(__name__)

SAVE_EVERY_S = 10.0
MAX_NAMES = 512
MAX_TIMES = 64
"""The most names in one check's notes, and the most numbers of one name, of which the newest stay."""


class CheckMemory:
    """The notes of checks, in the file `path`, which is written at most every 10 s and only on a change.

    Removal of the file makes the checks forget their notes, strikes included, at their next look.
    """

    def __init__(self, path: Path, *, incarnation: Incarnation, clock: Clock) -> None:
        self._path = path
        self._whose = [incarnation.instance, incarnation.boot]
        self._clock = clock
        self._saved_at: float | None = None
        self._is_dirty = False
        self._notes = self._restored()
        self._was_there = self._path.exists()

    def of(self, check: str) -> Notes:
        """Return the check's notes of this boot of this machine."""
        if self._was_there and not self._path.exists():
            log.warning("checks forget path=%s why=%r", self._path, "the file was removed")
            self._notes, self._was_there, self._is_dirty = {}, False, False
        return self._notes.get(check, NO_NOTES)

    def keep(self, check: str, notes: Notes) -> None:
        """Replace the check's notes. Never raises: a failed write is tried again at the next look."""
        bounded = {name: tuple(times[-MAX_TIMES:]) for name, times in list(notes.items())[:MAX_NAMES]}
        if bounded != self._notes.get(check, NO_NOTES):
            self._notes[check] = bounded
            self._is_dirty = True
        if self._is_dirty and self._may_save():
            self._save()

    def _may_save(self) -> bool:
        return self._saved_at is None or abs(self._clock.now() - self._saved_at) >= SAVE_EVERY_S

    def _save(self) -> None:
        self._saved_at = self._clock.now()
        try:
            write_json(self._path, {"whose": self._whose, "notes": self._notes})
            self._is_dirty, self._was_there = False, True
        except PortError as error:
            log.warning("notes of checks not saved why=%r", str(error))

    def _restored(self) -> dict[str, Notes]:
        state = read_json(self._path)
        if not isinstance(state, dict) or state.get("whose") != self._whose:
            return {}
        try:
            return {str(check): _notes_of(record) for check, record in state["notes"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("notes of checks dropped why=%r", str(error))
            return {}


def _notes_of(record: Mapping[str, Any]) -> Notes:
    return {str(name): tuple(float(time) for time in times) for name, times in record.items()}


MAX_READINGS = 256
AFTER_UNKNOWN_S = 60.0
"""The longest interval after an unknown result: a rare check whose look failed (Slurm was away) looks again sooner."""
_EARLY_S = 0.01
"""The tolerance for timers, which may end a moment early."""


def loop_now() -> float:
    """Return the time of the loop's clock: a step of the wall clock must not delay the checks."""
    return asyncio.get_running_loop().time()


class Rounds:
    """The schedule of this node's looks: checks of one period look together, and longer periods at some of those times.

    So the node's jobs are disturbed once for all checks. Each node has its own phase, so that nodes do not load shared
    servers at the same time.
    """

    def __init__(self, node: NodeName, base_s: float) -> None:
        """Take `base_s`, the period of most checks."""
        self._phase = zlib.crc32(node.encode()) / 2**32
        self._base_s = base_s

    def after(self, now: float, every_s: float) -> float:
        """Return the next time for a period, at least half of it after `now` (both on the loop's clock)."""
        late_s = (int(self._phase * every_s / self._base_s) + self._phase) * self._base_s
        left = every_s - (now + late_s) % every_s
        return now + (left if left >= every_s / 2 else left + every_s)


class Track:
    """One check on this node; `due` is the time of its next look, on the loop's clock.

    Callers may ask for looks at the same time, but each observation counts once: the same answer of a probe (answers
    are shared for a moment) is judged once, and bad looks within `Check.confirm_s` count as one.
    """

    def __init__(
        self,
        check: Check,
        *,
        facts: Facts,
        probes: ProbePort,
        clock: Clock,
        health: HealthPolicy,
        interval_s: float,
        memory: CheckMemory,
    ) -> None:
        self.check = check
        self.due = loop_now()
        self.standing = CheckStanding()
        self._facts = facts
        self._probes = probes
        self._clock = clock
        self._rule = SampleRule.of(health, check)
        self._memory = memory
        self._every_s = check.every_s or interval_s
        self._rounds = Rounds(facts.node, interval_s)
        self._readings: tuple[Reading, ...] = ()
        self._no_result = Finding(check=check.id, outcome=Outcome.UNKNOWN, text="no result yet")
        self._found, self._found_in = self._no_result, self.standing
        self._thread = Threads(1)  # a look that hangs keeps the thread: no second look starts beside it
        self._raws: tuple[Raw, ...] = ()
        """The raw results that were judged last."""
        self._looked = self._anew = self._wanted = -math.inf
        """The times of the last look that counted (its start), of the last `start_anew` and of the last `look_soon`."""
        self._fresh_from = self._confirms_from = -math.inf
        """The times from which probes give new answers, and from which a bad look counts as another one."""

    @property
    def finding(self) -> Finding:
        """Return the current finding; unknown before the first result."""
        # made once a look, because the findings of all checks are compared whenever a look has ended
        if self._found_in is not self.standing:
            self._found_in = self.standing
            self._found = self.standing.finding(self.check.id) or self._no_result
        return self._found

    @property
    def is_sure(self) -> bool:
        """Return whether the check has a result, and no bad look waits to be confirmed."""
        return self.standing.told is not None and not self.standing.is_unsure

    def start_anew(self) -> None:
        """Forget the standing and the look that is under way, and look soon."""
        self.standing = CheckStanding(passed_at=self.standing.passed_at)
        self._anew = loop_now()
        self.look_soon()

    def look_soon(self) -> None:
        """Have the check look soon, even if a look is under way, which may have missed a change."""
        self._wanted = loop_now()
        self.due = min(self.due, self._wanted)

    async def look(self) -> None:
        """Look once, and update the standing if the look saw something new.

        Never raises: the result of a check that crashes is unknown.
        """
        began = loop_now()
        verdict = await self._verdict(began)
        if verdict is None or began < self._anew:
            self.due = max(self.due, self._fresh_from)
        else:
            self._update_standing(verdict, began)

    async def look_until_sure(self, deadline: float) -> None:
        """Look until the standing is sure and newer than this call, or `deadline` (loop's clock) leaves no time."""
        asked = loop_now()
        await self.look()
        while (again := self._when_again(asked)) is not None and again < deadline:
            await asyncio.sleep(again - loop_now())
            await self.look()

    def _when_again(self, asked: float) -> float | None:
        """Return when to look again for a caller who asked at `asked`; None when the standing answers the caller."""
        if self._looked < asked:
            return max(self._fresh_from, loop_now())
        return self.due if self.standing.is_unsure else None

    def _update_standing(self, verdict: Judgement, began: float) -> None:
        before, now = self.standing, loop_now()
        if verdict.is_bad and began < self._confirms_from - _EARLY_S:
            before = _without_last_bad(before)
        if verdict.is_bad and before is self.standing:
            self._confirms_from = now + self.check.confirm_s
        self.standing = after_look(before, verdict, self._clock.now(), self._rule)
        self._looked = began
        self.due = now if began < self._wanted else self._next_look(verdict, now)

    def _next_look(self, verdict: Judgement, now: float) -> float:
        """Return when to look next: in the node's rounds, so that equal probes are shared."""
        if self.standing.is_unsure:
            return self._confirms_from if self._confirms_from > now else now + self.check.confirm_s
        every_s = min(self._every_s, AFTER_UNKNOWN_S) if verdict.outcome is Outcome.UNKNOWN else self._every_s
        return self._rounds.after(now, every_s)

    async def _verdict(self, began: float) -> Judgement | None:
        """Look and return the verdict; None if the look saw nothing new."""
        try:
            raws = await self._thread.call(self._look, name=self.check.id, timeout_s=self.check.timeout_s)
            if began < self._fresh_from and any(new is old for new, old in zip(raws, self._raws, strict=False)):
                return None
            self._raws, self._fresh_from = raws, loop_now() + KEEP_S
            return self.check.verdict(raws, self._facts, self._past(raws))
        except PortError as error:
            return unknown(str(error))
        except Exception as error:
            log.exception("check crashed check=%s", self.check.id)
            return unknown(f"the check crashed: {type(error).__name__}: {error}")

    def _past(self, raws: tuple[Raw, ...]) -> Past:
        now = self._clock.now()
        if self.check.readings is not None and not any(raw.error for raw in raws):
            kept = [r for r in self._readings if r.at >= now - self.check.keep_s][-(MAX_READINGS - 1) :]
            self._readings = (*kept, Reading(at=now, values=self.check.readings(raws)))
        return self._with_notes(Past(was_bad=self.standing.is_bad, now=now, readings=self._readings), raws)

    def _with_notes(self, past: Past, raws: tuple[Raw, ...]) -> Past:
        if self.check.note is None or any(raw.error for raw in raws):
            return past
        before = replace(past, notes=self._memory.of(self.check.id))
        notes = self.check.note(raws, self._facts, before)
        self._memory.keep(self.check.id, notes)
        return replace(past, notes=notes)

    def _look(self) -> tuple[Raw, ...]:
        return tuple(self._probes.look(probe) for probe in self.check.probes(self._facts))


def _without_last_bad(old: CheckStanding) -> CheckStanding:
    """Return the standing without its last bad look, for which the new bad look counts; unchanged if it has none."""
    if True not in old.recent:
        return old
    last = len(old.recent) - 1 - old.recent[::-1].index(True)
    return replace(old, recent=old.recent[:last] + old.recent[last + 1 :])
