"""Events of this boot from the kernel log: they stay until the node is another incarnation, and explain each other."""

from dataclasses import dataclass, replace

from steward.checks.check import GAP_S, Repeat, Verdict, failed, passed
from steward.checks.kernel_log import Sign
from steward.checks.xid import LINK_LOST
from steward.model.health import Finding, Severity

MAX_EVENTS = 32
QUIET_S = 60.0
"""The same line again, which acts on nothing, is not told more often: a flood of lines is not a flood of reports."""
OLD_S = 86400.0
"""A line that is older when it is read first (the agent is new on a node that has been up for long) tells of the past:
what is still broken, the other checks see."""
BURST_S = 180.0
"""Events of one cause come within this time."""
_XID = "kernel_log.xid"
_DRIVER = f"{_XID}154"
_OFF_BUS = f"{_XID}79"
_LINK_LOST = f"kernel_log.sxid{LINK_LOST}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One kind of event about one thing. `at` is the line that was told last, `times` those that count (Unix s,
    newest last)."""

    check: str
    subject: str
    verdict: Verdict
    at: float
    times: tuple[float, ...] = ()

    @property
    def finding(self) -> Finding:
        return self.verdict.finding(self.check, self.at, event=True, subject=self.subject)


def remember(events: tuple[Kept, ...], sign: Sign, at: float, *, now: float | None = None) -> tuple[Kept, ...]:
    """The events after one more line, of the time `at`, read at `now`; the same kind about the same thing is one event,
    at its worst."""
    events = tuple(one for one in events if (one.check, one.subject) != (sign.clears, sign.subject))
    old = next((one for one in events if (one.check, one.subject) == (sign.check, sign.subject)), None)
    others = tuple(one for one in events if one is not old)
    times = _counted(old.times if old else (), sign, at)
    verdict = _repeated(sign.verdict, sign.repeat, times)
    if now is not None and now - at > OLD_S and verdict.is_bad:
        verdict = passed(f"long before this agent looked: {verdict.text}")
    if old is not None and not _is_told(old, verdict, at):
        return _bounded((*others, replace(old, times=times)))
    if old is not None and _rank(old.verdict) > _rank(verdict):
        verdict = replace(old.verdict, text=verdict.text)
    return _bounded((*others, Kept(check=sign.check, subject=sign.subject, verdict=verdict, at=at, times=times)))


def _counted(times: tuple[float, ...], sign: Sign, at: float) -> tuple[float, ...]:
    """The times that count for the repetition, after this one."""
    repeat = sign.repeat
    if repeat is None:
        return ()
    if times and repeat.gap_s and abs(at - times[-1]) < repeat.gap_s:
        return times
    more = (*times, *[at] * min(sign.weight, repeat.times))
    return tuple(time for time in more if at - time <= repeat.within_s)[-repeat.times :]


def _repeated(verdict: Verdict, repeat: Repeat | None, times: tuple[float, ...]) -> Verdict:
    if repeat is None or len(times) < repeat.times:
        return verdict
    text = f"{len(times)} times in {repeat.within_s:g} s: {verdict.text}"
    return failed(text, repeat.severity, repeat.advice, scope=verdict.scope, hardware=verdict.hardware)


def _is_told(old: Kept, verdict: Verdict, at: float) -> bool:
    """Whether the line is news: worse than what is known, or a while later."""
    quiet_s = GAP_S if verdict.is_bad else QUIET_S
    return (
        _rank(verdict) > _rank(old.verdict) or verdict.advice is not old.verdict.advice or abs(at - old.at) >= quiet_s
    )


def _rank(verdict: Verdict) -> tuple[int, bool]:
    return verdict.severity.rank, verdict.is_bad


def _bounded(events: tuple[Kept, ...]) -> tuple[Kept, ...]:
    """The newest `MAX_EVENTS`, those that matter most kept longest."""
    if len(events) <= MAX_EVENTS:
        return events
    least = min(events, key=lambda one: (one.verdict.is_bad, one.verdict.severity.rank, one.at))
    return tuple(one for one in events if one is not least)


def related(events: tuple[Kept, ...]) -> tuple[Kept, ...]:
    """The events, seen together: the driver's own word (Xid 154) goes before the table's for the same GPU, and a link
    that an NVSwitch lost because a GPU of this node fell off the bus is that GPU's."""
    words = [one for one in events if one.check == _DRIVER and one.verdict.is_bad]
    gone = [one for one in events if one.check == _OFF_BUS and one.verdict.is_bad]
    return tuple(_collateral(_by_driver(one, words), gone) for one in events)


def _by_driver(event: Kept, words: list[Kept]) -> Kept:
    if not event.check.startswith(_XID) or event.check == _DRIVER or not event.verdict.is_bad:
        return event
    word = next((one for one in words if _card(one) == _card(event) and _together(one, event)), None)
    if word is None or event.verdict.severity is Severity.SUSPECT or len(event.times) > 1:
        return event  # what only asks for a look stays so; what came again is more than this word speaks of
    verdict = replace(event.verdict, severity=word.verdict.severity, advice=word.verdict.advice)
    return replace(event, verdict=verdict)


def _collateral(event: Kept, gone: list[Kept]) -> Kept:
    if event.check != _LINK_LOST or not event.verdict.is_bad or not any(_together(event, one) for one in gone):
        return event
    verdict = passed(f"because a GPU fell off the bus (Xid 79): {event.verdict.text}")
    return replace(event, verdict=verdict)


def _card(event: Kept) -> str:
    """The GPU that an event is about; NVLink's name the link as well."""
    return event.subject.split(" ")[0]


def _together(one: Kept, other: Kept) -> bool:
    return abs(one.at - other.at) <= BURST_S
