"""The events that the kernel log reported in this boot: kept until the next boot, and judged together."""

from dataclasses import dataclass, replace

from steward.checks.check import GAP_S, Judgement, Repeat, failed, passed
from steward.checks.kernel_log import Sign
from steward.checks.xid import LINK_LOST
from steward.model.health import Finding, Severity

MAX_EVENTS = 32
QUIET_S = 60.0
"""The shortest interval between reports of a harmless line that repeats."""
OLD_S = 86400.0
"""The age from which a line that is first read does not count (a new agent on a node with a long uptime). Other checks
find faults that still exist."""
BURST_S = 180.0
"""The most seconds between two events with one cause."""
_XID = "kernel_log.xid"
_DRIVER = f"{_XID}154"
_OFF_BUS = f"{_XID}79"
_LINK_LOST = f"kernel_log.sxid{LINK_LOST}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """One kind of kernel-log event about one subject.

    `at` is the time of the line that was reported last, `times` those of the lines that count for a repetition (Unix s,
    newest last).
    """

    check: str
    subject: str
    verdict: Judgement
    at: float
    times: tuple[float, ...] = ()

    @property
    def finding(self) -> Finding:
        return self.verdict.finding(self.check, self.at, event=True, subject=self.subject)


def with_line(
    events: tuple[KernelEvent, ...], sign: Sign, at: float, *, now: float | None = None
) -> tuple[KernelEvent, ...]:
    """Return the events after one more line, logged at `at` and read at `now`.

    Lines of one kind about one subject are one event, with the worst verdict among them.
    """
    events = tuple(one for one in events if (one.check, one.subject) != (sign.clears, sign.subject))
    old = next((one for one in events if (one.check, one.subject) == (sign.check, sign.subject)), None)
    others = tuple(one for one in events if one is not old)
    times = _counted(old.times if old else (), sign, at)
    verdict = _repeated(sign.verdict, sign.repeat, times)
    if now is not None and now - at > OLD_S and verdict.is_bad:
        verdict = passed(f"old line, logged long before this agent started: {verdict.text}")
    if old is not None and not _is_report_due(old, verdict, at):
        return _bounded((*others, replace(old, times=times)))
    if old is not None and _rank(old.verdict) > _rank(verdict):
        verdict = replace(old.verdict, text=verdict.text)
    return _bounded((*others, KernelEvent(check=sign.check, subject=sign.subject, verdict=verdict, at=at, times=times)))


def _counted(times: tuple[float, ...], sign: Sign, at: float) -> tuple[float, ...]:
    """Return the times that count for the repetition, after a line at `at`."""
    repeat = sign.repeat
    if repeat is None:
        return ()
    if times and repeat.gap_s and abs(at - times[-1]) < repeat.gap_s:
        return times
    more = (*times, *[at] * min(sign.weight, repeat.times))
    return tuple(time for time in more if at - time <= repeat.within_s)[-repeat.times :]


def _repeated(verdict: Judgement, repeat: Repeat | None, times: tuple[float, ...]) -> Judgement:
    if repeat is None or len(times) < repeat.times:
        return verdict
    text = f"{len(times)} times in {repeat.within_s:g} s: {verdict.text}"
    return failed(text, repeat.severity, repeat.advice, scope=verdict.scope, hardware=verdict.hardware)


def _is_report_due(old: KernelEvent, verdict: Judgement, at: float) -> bool:
    """Return whether to report the line: it is worse than the known event, or comes a while later."""
    quiet_s = GAP_S if verdict.is_bad else QUIET_S
    return (
        _rank(verdict) > _rank(old.verdict) or verdict.advice is not old.verdict.advice or abs(at - old.at) >= quiet_s
    )


def _rank(verdict: Judgement) -> tuple[int, bool]:
    return verdict.severity.rank, verdict.is_bad


def _bounded(events: tuple[KernelEvent, ...]) -> tuple[KernelEvent, ...]:
    """Return at most `MAX_EVENTS` events; the mildest and oldest event goes first."""
    if len(events) <= MAX_EVENTS:
        return events
    least = min(events, key=lambda one: (one.verdict.is_bad, one.verdict.severity.rank, one.at))
    return tuple(one for one in events if one is not least)


def judged_together(events: tuple[KernelEvent, ...]) -> tuple[KernelEvent, ...]:
    """Return the events after each has been judged in the light of the others.

    The driver's own advice (Xid 154) replaces that of the table for the same GPU. A link that an NVSwitch lost because
    a GPU of this node fell off the bus counts as no fault.
    """
    words = [one for one in events if one.check == _DRIVER and one.verdict.is_bad]
    gone = [one for one in events if one.check == _OFF_BUS and one.verdict.is_bad]
    return tuple(_excuse_lost_link(_with_drivers_advice(one, words), gone) for one in events)


def _with_drivers_advice(event: KernelEvent, words: list[KernelEvent]) -> KernelEvent:
    if not event.check.startswith(_XID) or event.check == _DRIVER or not event.verdict.is_bad:
        return event
    word = next((one for one in words if _gpu_of(one) == _gpu_of(event) and _is_one_burst(one, event)), None)
    if word is None or event.verdict.severity is Severity.SUSPECT or len(event.times) > 1:
        return event  # a suspicion stays one; a repeated event is worse than the one that the driver judged
    verdict = replace(event.verdict, severity=word.verdict.severity, advice=word.verdict.advice)
    return replace(event, verdict=verdict)


def _excuse_lost_link(event: KernelEvent, gone: list[KernelEvent]) -> KernelEvent:
    if event.check != _LINK_LOST or not event.verdict.is_bad or not any(_is_one_burst(event, one) for one in gone):
        return event
    verdict = passed(f"because a GPU fell off the bus (Xid 79): {event.verdict.text}")
    return replace(event, verdict=verdict)


def _gpu_of(event: KernelEvent) -> str:
    """Return the GPU that an event is about."""
    return event.subject.split(" ")[0]  # the subject of an NVLink event names the link as well


def _is_one_burst(one: KernelEvent, other: KernelEvent) -> bool:
    return abs(one.at - other.at) <= BURST_S
