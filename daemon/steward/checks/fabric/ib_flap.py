"""Ports that go down and come back: each time a job's traffic stops."""

from steward.checks.check import Check, Facts, Verdict, passed
from steward.checks.fabric import links
from steward.checks.fabric.ib import ACTIVE, Port, ports, probes
from steward.checks.fabric.ib_state import judge_ports
from steward.checks.fabric.strikes import Strikes
from steward.checks.modes import by_id
from steward.checks.past import Notes, Past
from steward.checks.thresholds import Threshold
from steward.model.health import Severity
from steward.model.probe import Raw

DOWNS = Threshold(
    name="ib.flap.downs_per_hour", default=3, unit="downs/h", text="More of one port are a trip.", low=1, high=30
)
TRIPS = Threshold(
    name="ib.flap.trips_per_day",
    default=3,
    unit="trips/24 h",
    text="As many lock the port until a boot.",
    low=1,
    high=30,
)
_STRIKES = Strikes(downs=DOWNS, trips=TRIPS)


def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    up = {port.name: port.state == ACTIVE for port in ports(raws[0]) if port.state is not None}
    seen = links.follow(up, past)
    fresh = {name: int(links.fell(name, seen, past.notes)) for name in seen}
    return {**seen, **_STRIKES.note(fresh, facts, past)}


def _judge(found: tuple[Port, ...], facts: Facts, past: Past) -> Verdict:
    return _STRIKES.judge(past, Severity.DEGRADED) or passed(f"{len(found)} ports, none bounces")


CHECK = Check(
    id="ib.flap",
    probes=probes,
    judge=judge_ports(_judge),
    note=note,
    mode=by_id("ib.flap", "drain"),
    title="InfiniBand or RoCE port goes up and down",
    source="sysfs",
    thresholds=(DOWNS, TRIPS),
)
