"""Checks of InfiniBand, RoCE and EFA ports: down (ib.state, ib.phys, ib.drop), flapping (ib.flap), slow (ib.rate)."""

from collections.abc import Callable

from steward.checks.check import Check, Facts, Judge, Judgement, Notes, Past, failed, passed, skipped, unknown
from steward.checks.fabric import links
from steward.checks.fabric.ib import ACTIVE, LINK_UP, Port, first_names, ports, probes
from steward.checks.fabric.links import Strikes
from steward.checks.limits import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

_BAD_FOR_S = 60.0
"""How long a port must be down: a restart of a subnet manager or a switch is no fault of the node."""
MIN_ACTIVE = Threshold(
    name="ib.state.min_active",
    default=0,
    unit="ports",
    text="Ports that must be active; 0: those that were active once in this boot.",
    high=1024,
)
DROP_S = Threshold(
    name="ib.drop.down_s", default=240, unit="s", text="A port that is down this long has failed.", low=10
)


def _is_active(port: Port) -> bool:
    return port.state == ACTIVE


def _is_linked(port: Port) -> bool:
    return port.phys == LINK_UP


def note_of(is_up: Callable[[Port], bool]) -> Callable[[tuple[Raw, ...], Facts, Past], Notes]:
    """Return the `note` function that notes which ports are up, and since when."""

    def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
        return links.notes_after_look(
            {port.name: is_up(port) for port in ports(raws[0]) if port.state is not None}, past
        )

    return note


def judge_ports(judge: Callable[[tuple[Port, ...], Facts, Past], Judgement]) -> Judge:
    """Return a judge that calls `judge` if the node has ports and their states can be read."""

    def judge_raws(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
        found = ports(raws[0])
        if not found:
            return skipped("no InfiniBand, RoCE or EFA port on this node")
        silent = [port.name for port in found if port.state is None]
        if silent:
            return unknown(f"no state in sysfs: {first_names(silent)}")
        return judge(found, facts, past)

    return judge_raws


def _state(found: tuple[Port, ...], facts: Facts, past: Past) -> Judgement:
    active = [port for port in found if _is_active(port)]
    lost = [port for port in found if not _is_active(port) and links.down_for(port.name, past) is not None]
    wanted = int(facts.limit(MIN_ACTIVE))
    if lost:
        text = "; ".join(f"{port.name}: {port.state_words}" for port in lost[:8])
        return failed(f"not active any more: {text}", Severity.DEGRADED, Advice.REBOOT, hardware=lost[0].name)
    if len(active) < wanted:
        text = first_names(port.name for port in found if not _is_active(port))
        return failed(
            f"{len(active)} ports active, {wanted} expected; not active: {text or 'none of those here'}",
            Severity.DEGRADED,
            Advice.REBOOT,
        )
    never = len(found) - len(active)
    return passed(f"{len(active)} ports active" + (f", {never} never were" if never else ""))


def _phys(found: tuple[Port, ...], facts: Facts, past: Past) -> Judgement:
    lost = [port for port in found if not _is_linked(port) and links.down_for(port.name, past) is not None]
    if not lost:
        return passed(f"{sum(map(_is_linked, found))} links up")
    text = "; ".join(f"{port.name}: {port.state_words}" for port in lost[:8])
    return failed(f"link lost: {text}", Severity.DEGRADED, Advice.REBOOT, hardware=lost[0].name)


def _drop(found: tuple[Port, ...], facts: Facts, past: Past) -> Judgement:
    since = {port.name: links.down_for(port.name, past) for port in found}
    long = {name: age for name, age in since.items() if age is not None and age >= facts.limit(DROP_S)}
    if not long:
        return passed("no port has been down for long")
    first = min(long)
    text = f"down for {max(long.values()):.0f} s: {first_names(long)}"
    return failed(text, Severity.DEGRADED, Advice.REPLACE, hardware=first)


STATE = Check(
    id="ib.state",
    probes=probes,
    judge=judge_ports(_state),
    note=note_of(_is_active),
    default_mode="drain",
    confirm_s=5.0,
    bad_for_s=_BAD_FOR_S,
    title="InfiniBand or RoCE port not active any more",
    source="sysfs",
    settings=(MIN_ACTIVE,),
)
PHYS = Check(
    id="ib.phys",
    probes=probes,
    judge=judge_ports(_phys),
    note=note_of(_is_linked),
    default_mode="drain",
    confirm_s=5.0,
    bad_for_s=_BAD_FOR_S,
    title="InfiniBand or RoCE link lost",
    source="sysfs",
)
DROP = Check(
    id="ib.drop",
    probes=probes,
    judge=judge_ports(_drop),
    note=note_of(_is_active),
    default_mode="drain",
    confirm_s=5.0,
    title="InfiniBand or RoCE port down for minutes",
    source="sysfs",
    settings=(DROP_S,),
)

DOWNS = Threshold(
    name="ib.flap.downs_per_hour", default=3, unit="downs/h", text="More downs of one port are a trip.", low=1, high=30
)
TRIPS = Threshold(
    name="ib.flap.trips_per_day",
    default=3,
    unit="trips/24 h",
    text="The port is bad while so many trips are in the last 24 h.",
    low=1,
    high=30,
)
_STRIKES = Strikes(downs=DOWNS, trips=TRIPS)


def _flap_note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    up = {port.name: port.state == ACTIVE for port in ports(raws[0]) if port.state is not None}
    seen = links.notes_after_look(up, past)
    fresh = {name: int(links.went_down(name, seen, past.notes)) for name in seen}
    return {**seen, **_STRIKES.note(fresh, facts, past)}


def _judge_flap(found: tuple[Port, ...], facts: Facts, past: Past) -> Judgement:
    return _STRIKES.judge(facts, past, Severity.DEGRADED) or passed(f"{len(found)} ports, none bounces")


FLAP = Check(
    id="ib.flap",
    probes=probes,
    judge=judge_ports(_judge_flap),
    note=_flap_note,
    default_mode="drain",
    title="InfiniBand or RoCE port goes up and down",
    source="sysfs",
    settings=(DOWNS, TRIPS),
)
"""The check for ports that go down and come back: each time, a job's traffic stops."""

MIN_GBPS = Threshold(
    name="ib.rate.min_gbps",
    default=0,
    unit="Gbit/s",
    text="The least rate of every active InfiniBand port; 0: its best rate in this boot.",
    high=100_000,
)


def _rate_note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    """Note the best rate of each active port in this boot."""
    rates = {port.name: port.rate for port in ports(raws[0]) if port.state == ACTIVE and port.rate is not None}
    best = {name: max(rate, *past.notes.get(name, (0.0,))) for name, rate in rates.items()}
    return {**past.notes, **{name: (rate,) for name, rate in best.items()}}


def _judge_rate(found: tuple[Port, ...], facts: Facts, past: Past) -> Judgement:
    active = [port for port in found if port.state == ACTIVE and port.rate is not None]
    slow = {port.name: text for port in active if (text := _slower(port, facts, past))}
    if slow:
        return failed("; ".join(list(slow.values())[:8]), Severity.DEGRADED, Advice.REBOOT, hardware=min(slow))
    rates = sorted({f"{port.rate:g}" for port in active}, key=float)
    return passed(f"{len(active)} active ports at {', '.join(rates) or 'no'} Gbit/s")


def _slower(port: Port, facts: Facts, past: Past) -> str:
    rate = port.rate or 0.0
    best = max(past.notes.get(port.name, (0.0,)))
    wanted = facts.limit(MIN_GBPS) if port.layer == "InfiniBand" else 0.0
    if rate < wanted:
        return f"{port.name} at {rate:g} Gbit/s, {wanted:g} expected"
    return f"{port.name} at {rate:g} Gbit/s, it had {best:g}" if rate < best else ""


RATE = Check(
    id="ib.rate",
    probes=probes,
    judge=judge_ports(_judge_rate),
    note=_rate_note,
    default_mode="drain",
    confirm_s=5.0,
    bad_for_s=60.0,
    title="InfiniBand or RoCE port slower than it was",
    source="sysfs",
    settings=(MIN_GBPS,),
)
"""The check for ports slower than before or than set: a link that trained with fewer lanes slows every collective."""

CHECKS: tuple[Check, ...] = (
    STATE,
    PHYS,
    DROP,
    FLAP,
    RATE,
)
