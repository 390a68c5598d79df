"""What the kernel log has told of this boot: events stay until the node is another incarnation."""

from dataclasses import dataclass, replace

from steward.checks.check import Verdict, failed
from steward.checks.kernel_log import Repeat, Sign
from steward.model.health import Finding, Severity

MAX_EVENTS = 32
_ORDER = (Severity.INFO, Severity.SUSPECT, Severity.DEGRADED, Severity.FATAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One kind of event about one thing. `times` are when it came lately, newest last (Unix s)."""

    check: str
    subject: str
    verdict: Verdict
    times: tuple[float, ...]

    @property
    def finding(self) -> Finding:
        """`at` is the newest line's time."""
        verdict = self.verdict
        return Finding(
            check=self.check,
            outcome=verdict.outcome,
            severity=verdict.severity,
            advice=verdict.advice,
            text=verdict.text,
            at=self.times[-1],
            event=True,
            scope=verdict.scope,
            hardware=verdict.hardware or self.subject,
        )


def remember(events: tuple[Kept, ...], sign: Sign, at: float) -> tuple[Kept, ...]:
    """The events after one more line; the same kind about the same thing is one event, at its worst."""
    old = next((one for one in events if (one.check, one.subject) == (sign.check, sign.subject)), None)
    others = tuple(one for one in events if one is not old)
    times = _lately((*old.times, at) if old else (at,), sign.repeat)
    verdict = _repeated(sign.verdict, sign.repeat, times)
    if old and _ORDER.index(old.verdict.severity) > _ORDER.index(verdict.severity):
        verdict = replace(old.verdict, text=verdict.text)
    return _bounded((*others, Kept(check=sign.check, subject=sign.subject, verdict=verdict, times=times)))


def _lately(times: tuple[float, ...], repeat: Repeat | None) -> tuple[float, ...]:
    if repeat is None:
        return times[-1:]
    return tuple(time for time in times if times[-1] - time <= repeat.within_s)[-repeat.times :]


def _repeated(verdict: Verdict, repeat: Repeat | None, times: tuple[float, ...]) -> Verdict:
    if repeat is None or len(times) < repeat.times:
        return verdict
    return failed(f"{len(times)} times in {repeat.within_s:g} s: {verdict.text}", repeat.severity, repeat.advice)


def _bounded(events: tuple[Kept, ...]) -> tuple[Kept, ...]:
    """The newest `MAX_EVENTS`, those that matter most kept longest."""
    if len(events) <= MAX_EVENTS:
        return events
    least = min(events, key=lambda one: (one.verdict.is_bad, _ORDER.index(one.verdict.severity), one.times[-1]))
    return tuple(one for one in events if one is not least)
