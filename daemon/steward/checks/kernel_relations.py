"""Kernel-log events that explain each other: which is the cause, and whose word counts."""

from dataclasses import replace

from steward.checks.check import passed
from steward.checks.kernel_events import Kept
from steward.checks.xid import LINK_LOST
from steward.model.health import Severity

BURST_S = 180.0
"""Events of one cause come within this time."""
_XID = "kernel_log.xid"
_DRIVER = f"{_XID}154"
_OFF_BUS = f"{_XID}79"
_LINK_LOST = f"kernel_log.sxid{LINK_LOST}"


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
