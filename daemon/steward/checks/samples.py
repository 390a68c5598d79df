"""The standing of a check over several looks: bad after some bad looks, good again after a good while.

A look that failed counts neither way.
"""

from dataclasses import dataclass, replace

from steward.checks.check import Check, Judgement
from steward.model.agent_tables import HealthPolicy
from steward.model.health import Finding, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRule:
    """The rule by which looks change the standing of a check.

    Bad: `bad_samples` of the last `last_samples` looks were bad, over at least `bad_for_s` seconds. Good again: no look
    was bad for `clear_after_s` seconds.
    """

    bad_samples: int
    last_samples: int
    clear_after_s: float
    bad_for_s: float = 0.0

    @staticmethod
    def of(health: HealthPolicy, check: Check) -> "SampleRule":
        """Return the site's rule for one check."""
        return SampleRule(
            bad_samples=health.bad_samples,
            last_samples=health.last_samples,
            clear_after_s=0.0 if check.clears_at_once else health.clear_after_s,
            bad_for_s=check.bad_for_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStanding:
    """The standing of one check. `told` is the verdict to report; None before the first look.

    `is_unsure` means that there were bad looks, but not enough yet: look again soon.
    """

    told: Judgement | None = None
    since: float = 0.0
    is_bad: bool = False
    is_unsure: bool = False
    recent: tuple[bool, ...] = ()
    """Whether each of the last looks was bad, newest last."""
    bad_since: float | None = None
    good_since: float | None = None
    passed_at: float = 0.0
    """The time of the last look that passed; 0: none did."""

    def finding(self, check: str) -> Finding | None:
        if self.told is None:
            return None
        found = self.told.finding(check, self.since)
        if found.is_quiet:
            return found
        return replace(found, passed_at=self.passed_at, good_since=(self.good_since or 0.0) if self.is_bad else 0.0)


def after_look(old: CheckStanding, look: Judgement, now: float, rule: SampleRule) -> CheckStanding:
    """Return the standing after one more look."""
    match look.outcome:
        case Outcome.FAILED:
            return _after_bad(old, look, now, rule)
        case Outcome.PASSED:
            return _after_good(old, look, now, rule)
        case Outcome.UNKNOWN:
            return old if old.is_bad or old.is_unsure else _reporting(old, look, now)
        case Outcome.SKIPPED:
            return _reporting(CheckStanding(told=old.told, since=old.since, passed_at=old.passed_at), look, now)


def _after_bad(old: CheckStanding, look: Judgement, now: float, rule: SampleRule) -> CheckStanding:
    since = now if old.bad_since is None else old.bad_since
    seen = replace(old, recent=(*old.recent, True)[-rule.last_samples :], bad_since=since, good_since=None)
    enough = sum(seen.recent) >= rule.bad_samples and now - since >= rule.bad_for_s
    if old.is_bad or enough:
        return replace(seen, told=look, since=since, is_bad=True, is_unsure=False)
    text = f"{sum(seen.recent)} bad of {len(seen.recent)} looks, not enough yet: {look.text}"
    doubt = replace(look, outcome=Outcome.UNKNOWN, text=text)
    return replace(seen, told=doubt, since=since, is_unsure=True)


def _after_good(old: CheckStanding, look: Judgement, now: float, rule: SampleRule) -> CheckStanding:
    recent = (*old.recent, False)[-rule.last_samples :]
    good_since = now if old.good_since is None else old.good_since
    if old.is_bad and now - good_since < rule.clear_after_s:
        return replace(old, recent=recent, good_since=good_since, passed_at=now)
    bad_since = old.bad_since if any(recent) and not old.is_bad else None
    seen = replace(
        old,
        recent=recent,
        bad_since=bad_since,
        good_since=good_since,
        passed_at=now,
        is_bad=False,
        is_unsure=False,
    )
    return _reporting(seen, look, now)


def _reporting(old: CheckStanding, look: Judgement, now: float) -> CheckStanding:
    """Return the standing that reports this look; `since` stays while the outcome is the same."""
    same = old.told is not None and old.told.outcome is look.outcome
    return replace(old, told=look, since=old.since if same else now)
