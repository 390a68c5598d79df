"""Ports that were up in this boot and are not any more: logically (ib.state), physically (ib.phys), long (ib.drop)."""

from collections.abc import Callable

from steward.checks.check import Check, Facts, Judge, Verdict, failed, passed, skipped, unknown
from steward.checks.fabric import links
from steward.checks.fabric.ib import ACTIVE, LINK_UP, Port, named, ports, probes
from steward.checks.modes import by_id
from steward.checks.past import Notes, Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

_BAD_FOR_S = 60.0
"""A subnet manager or a switch that restarts is no fault of the node."""

MIN_ACTIVE = Threshold(
    name="ib.state.min_active",
    default=0,
    unit="ports",
    text="Ports that must be active; 0: those that were active once in this boot.",
    high=1024,
)
DROP_S = Threshold(
    name="ib.drop.down_s", default=240, unit="s", text="A port that is down as long is no passing trouble.", low=10
)


def _is_active(port: Port) -> bool:
    return port.state == ACTIVE


def _is_linked(port: Port) -> bool:
    return port.phys == LINK_UP


def note_of(is_up: Callable[[Port], bool]) -> Callable[[tuple[Raw, ...], Facts, Past], Notes]:
    """Note which ports are up, and since when."""

    def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
        return links.follow({port.name: is_up(port) for port in ports(raws[0]) if port.state is not None}, past)

    return note


def judge_ports(judge: Callable[[tuple[Port, ...], Facts, Past], Verdict]) -> Judge:
    """`judge`, where there is a port at all and it says something."""

    def told(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
        found = ports(raws[0])
        if not found:
            return skipped("no InfiniBand, RoCE or EFA port on this node")
        silent = [port.name for port in found if port.state is None]
        if silent:
            return unknown(f"no state in sysfs: {named(silent)}")
        return judge(found, facts, past)

    return told


def _state(found: tuple[Port, ...], facts: Facts, past: Past) -> Verdict:
    active = [port for port in found if _is_active(port)]
    lost = [port for port in found if not _is_active(port) and links.down_for(port.name, past) is not None]
    wanted = int(facts.limit(MIN_ACTIVE))
    if lost:
        text = "; ".join(f"{port.name}: {port.told}" for port in lost[:8])
        return failed(f"not active any more: {text}", Severity.DEGRADED, Advice.REBOOT, hardware=lost[0].name)
    if len(active) < wanted:
        text = named(port.name for port in found if not _is_active(port))
        return failed(
            f"{len(active)} ports active, {wanted} expected; not active: {text or 'none of those here'}",
            Severity.DEGRADED,
            Advice.REBOOT,
        )
    never = len(found) - len(active)
    return passed(f"{len(active)} ports active" + (f", {never} never were" if never else ""))


def _phys(found: tuple[Port, ...], facts: Facts, past: Past) -> Verdict:
    lost = [port for port in found if not _is_linked(port) and links.down_for(port.name, past) is not None]
    if not lost:
        return passed(f"{sum(map(_is_linked, found))} links up")
    text = "; ".join(f"{port.name}: {port.told}" for port in lost[:8])
    return failed(f"link lost: {text}", Severity.DEGRADED, Advice.REBOOT, hardware=lost[0].name)


def _drop(found: tuple[Port, ...], facts: Facts, past: Past) -> Verdict:
    since = {port.name: links.down_for(port.name, past) for port in found}
    long = {name: age for name, age in since.items() if age is not None and age >= facts.limit(DROP_S)}
    if not long:
        return passed("no port has been down for long")
    first = min(long)
    text = f"down for {max(long.values()):.0f} s: {named(long)}"
    return failed(text, Severity.DEGRADED, Advice.REPLACE, hardware=first)


STATE = Check(
    id="ib.state",
    probes=probes,
    judge=judge_ports(_state),
    note=note_of(_is_active),
    mode=by_id("ib.state", "drain"),
    confirm_s=5.0,
    bad_for_s=_BAD_FOR_S,
    title="InfiniBand or RoCE port not active any more",
    source="sysfs",
    thresholds=(MIN_ACTIVE,),
)
PHYS = Check(
    id="ib.phys",
    probes=probes,
    judge=judge_ports(_phys),
    note=note_of(_is_linked),
    mode=by_id("ib.phys", "drain"),
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
    mode=by_id("ib.drop", "drain"),
    confirm_s=5.0,
    title="InfiniBand or RoCE port down for minutes",
    source="sysfs",
    thresholds=(DROP_S,),
)
