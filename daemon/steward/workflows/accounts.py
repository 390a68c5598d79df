"""Slurm's accounting beside the cycle: looked at every few seconds and after each change, where quotas are only."""

from collections.abc import Callable
from dataclasses import replace

from steward.model.accounting import Accounting
from steward.ports import Clock
from steward.workflows.look import Look
from steward.workflows.pool import Workers

_EVERY_S = 5.0


class Accounts:
    """`ring` is called when it has changed: a bell on every look would never let the cycle rest."""

    def __init__(
        self, read: Callable[[], Accounting], *, workers: Workers, clock: Clock, ring: Callable[[], None]
    ) -> None:
        self._clock, self._ring = clock, ring
        self._look: Look[Accounting] = Look("Slurm's accounting", read, workers, clock, self._came)
        self._told: Accounting | None = None

    def seen(self, *, wanted: bool, changed: float) -> Accounting | None:
        """The newest picture, with `trouble` where a later look failed; None where nobody wants one, or it was never
        read. What was read before `changed` (Unix s) is read again."""
        if not wanted:
            return None
        if self._look.fresh(max(self._clock.now() - _EVERY_S, changed)) is None:
            self._look.start()
        last = self._look.last
        if last is None:
            return Accounting(trouble=self._look.failed) if self._look.failed else None
        return replace(last.value, trouble=self._look.failed) if self._look.failed else last.value

    def _came(self) -> None:
        last = self._look.last
        news = None if last is None else replace(last.value, at=0.0, trouble=self._look.failed or last.value.trouble)
        if news is not None and news != self._told:
            self._told = news
            self._ring()
