"""Looks of one check over time, as the agent's Track takes them: readings and notes are kept between them."""

import dataclasses
from collections.abc import Mapping

from steward.checks.check import NO_NOTES, Check, Facts, Judgement, Notes, Past, Reading
from steward.checks.known import limits_of
from steward.model.ids import NodeName
from steward.model.probe import Raw


class Looks:
    """`limit` is what the site says of the check."""

    def __init__(self, check: Check, *, limit: Mapping[str, object] | None = None) -> None:
        self.facts = Facts(node=NodeName("n1"), limits=limits_of(limit or {}))
        self.check = check
        self.readings: tuple[Reading, ...] = ()
        self.notes: Notes = NO_NOTES

    def at(self, now: float, raw: Raw) -> Judgement:
        """The verdict of a look at `now` that brought `raw`."""
        if self.check.readings is not None:
            kept = [one for one in self.readings if one.at >= now - self.check.keep_s]
            self.readings = (*kept, Reading(at=now, values=self.check.readings((raw,))))
        past = Past(now=now, readings=self.readings, notes=self.notes)
        if self.check.note is not None:
            self.notes = self.check.note((raw,), self.facts, past)
        return self.check.verdict((raw,), self.facts, dataclasses.replace(past, notes=self.notes))

    def over(self, start: float, step_s: float, *raws: Raw) -> Judgement:
        """The last verdict of several looks, the first at `start`."""
        for number, raw in enumerate(raws):
            verdict = self.at(start + number * step_s, raw)
        return verdict
