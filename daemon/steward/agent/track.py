"""One state check as it runs on this node: its looks, one at a time, and its standing."""

import asyncio
import logging
import zlib
from dataclasses import replace

from steward.adapters.offload import Threads
from steward.agent.check_memory import CheckMemory
from steward.checks.check import Check, Facts, Verdict, unknown
from steward.checks.past import Past, Reading
from steward.checks.samples import Rule, Standing, settle
from steward.model.health import Finding, Outcome
from steward.model.probe import Raw
from steward.ports import Clock, PortError, ProbePort

log = logging.getLogger(__name__)

MAX_READINGS = 256
AFTER_UNKNOWN_S = 60.0
"""A rare check whose look failed (Slurm was away) is not left without an answer until its next turn."""


class Track:
    """`due` is when it looks next, on the loop's clock: a step of the wall clock must not hold up the checks."""

    def __init__(
        self,
        check: Check,
        *,
        facts: Facts,
        probes: ProbePort,
        clock: Clock,
        rule: Rule,
        interval_s: float,
        memory: CheckMemory,
    ) -> None:
        self.check = check
        self.due = asyncio.get_running_loop().time()
        self.standing = Standing()
        self._facts = facts
        self._probes = probes
        self._clock = clock
        self._rule = rule
        self._memory = memory
        self._every_s = check.every_s or interval_s
        self._phase = zlib.crc32(facts.node.encode()) / 2**32
        self._readings: tuple[Reading, ...] = ()
        self._no_result = Finding(check=check.id, outcome=Outcome.UNKNOWN, text="no result yet")
        self._found, self._found_in = self._no_result, self.standing
        self._thread = Threads(1)  # a look that hangs keeps its place: no second one is started beside it

    @property
    def finding(self) -> Finding:
        """What stands; unknown before the first result. Made once a look: all are compared whenever one has ended."""
        if self._found_in is not self.standing:
            self._found_in = self.standing
            self._found = self.standing.finding(self.check.id) or self._no_result
        return self._found

    @property
    def is_sure(self) -> bool:
        return self.standing.told is not None and not self.standing.is_unsure

    def start_anew(self) -> None:
        """Forget what stands, and look soon."""
        self.standing = Standing()
        self.due = asyncio.get_running_loop().time()

    async def look(self) -> None:
        """One look and what follows from it. Never raises: a check that crashes says unknown."""
        verdict = await self._verdict()
        self.standing = settle(self.standing, verdict, self._clock.now(), self._rule)
        self.due = self._next(verdict, asyncio.get_running_loop().time())

    def _next(self, verdict: Verdict, now: float) -> float:
        """Checks of one rhythm look at the same times, so that equal probes are one look; each node at its own."""
        if self.standing.is_unsure:
            return now + self.check.confirm_s
        every_s = min(self._every_s, AFTER_UNKNOWN_S) if verdict.outcome is Outcome.UNKNOWN else self._every_s
        left = every_s - (now + self._phase * every_s) % every_s
        return now + (left if left >= every_s / 2 else left + every_s)

    async def look_until_sure(self, deadline: float) -> None:
        """Look, and look again while a bad look is not confirmed and there is time until `deadline` (loop's)."""
        await self.look()
        while self.standing.is_unsure and asyncio.get_running_loop().time() + self.check.confirm_s < deadline:
            await asyncio.sleep(self.check.confirm_s)
            await self.look()

    async def _verdict(self) -> Verdict:
        try:
            raws = await self._thread.call(self._look, name=self.check.id, timeout_s=self.check.timeout_s)
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
        return self._noted(Past(was_bad=self.standing.is_bad, now=now, readings=self._readings), raws)

    def _noted(self, past: Past, raws: tuple[Raw, ...]) -> Past:
        if self.check.note is None or any(raw.error for raw in raws):
            return past
        before = replace(past, notes=self._memory.of(self.check.id))
        notes = self.check.note(raws, self._facts, before)
        self._memory.keep(self.check.id, notes)
        return replace(past, notes=notes)

    def _look(self) -> tuple[Raw, ...]:
        return tuple(self._probes.look(probe) for probe in self.check.probes(self._facts))
