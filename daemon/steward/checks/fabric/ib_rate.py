"""A port slower than it was, or than the site says: a link that trained with fewer lanes holds up every collective."""

from steward.checks.check import Check, Facts, Verdict, failed, passed
from steward.checks.fabric.ib import ACTIVE, Port, ports, probes
from steward.checks.fabric.ib_state import judge_ports
from steward.checks.modes import by_id
from steward.checks.past import Notes, Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw

MIN_GBPS = Threshold(
    name="ib.rate.min_gbps",
    default=0,
    unit="Gbit/s",
    text="What every active InfiniBand port must have; 0: what it had best in this boot.",
    high=100_000,
)


def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    """Port -> its best rate."""
    rates = {port.name: port.rate for port in ports(raws[0]) if port.state == ACTIVE and port.rate is not None}
    best = {name: max(rate, *past.notes.get(name, (0.0,))) for name, rate in rates.items()}
    return {**past.notes, **{name: (rate,) for name, rate in best.items()}}


def _judge(found: tuple[Port, ...], facts: Facts, past: Past) -> Verdict:
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


CHECK = Check(
    id="ib.rate",
    probes=probes,
    judge=judge_ports(_judge),
    note=note,
    mode=by_id("ib.rate", "drain"),
    confirm_s=5.0,
    bad_for_s=60.0,
    title="InfiniBand or RoCE port slower than it was",
    source="sysfs",
    thresholds=(MIN_GBPS,),
)
