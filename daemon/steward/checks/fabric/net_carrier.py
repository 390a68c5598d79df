"""Interfaces whose carrier comes and goes, by the kernel's own count: also what happens between two looks."""

from steward.checks.check import Check, Facts, Verdict, passed, skipped, unknown
from steward.checks.fabric.net import interfaces, probes
from steward.checks.fabric.strikes import Strikes
from steward.checks.modes import by_id
from steward.checks.past import Notes, Past
from steward.checks.thresholds import Threshold
from steward.model.health import Severity
from steward.model.probe import Raw

DOWNS = Threshold(
    name="net.carrier.downs_per_hour",
    default=3,
    unit="downs/h",
    text="More of one interface are a trip.",
    low=1,
    high=30,
)
TRIPS = Threshold(
    name="net.carrier.trips_per_day", default=3, unit="trips/24 h", text="As many lock it until a boot.", low=1, high=30
)
_STRIKES = Strikes(downs=DOWNS, trips=TRIPS)
_COUNT = " count"


def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    """The first look of a boot says what was before us; a count that fell began anew."""
    counts = {one.name: one.downs for one in interfaces(raws[0], facts) if one.downs is not None}
    before = {name: past.notes.get(name + _COUNT, (downs,))[0] for name, downs in counts.items()}
    fresh = {name: max(0, downs - int(before[name])) for name, downs in counts.items()}
    kept = {name: values for name, values in past.notes.items() if name.endswith(_COUNT)}
    now = {name + _COUNT: (float(downs),) for name, downs in counts.items()}
    return {**kept, **now, **_STRIKES.note(fresh, facts, past)}


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    found = interfaces(raws[0], facts)
    if not found:
        return skipped("no physical Ethernet interface on this node")
    if all(one.downs is None for one in found):
        return unknown(f"no carrier_changes in sysfs: {found[0].name}")
    return _STRIKES.judge(past, Severity.SUSPECT) or passed(f"{len(found)} interfaces, none bounces")


CHECK = Check(
    id="net.carrier",
    probes=probes,
    judge=judge,
    note=note,
    mode=by_id("net.carrier", "report"),
    title="Ethernet interface loses its carrier again and again",
    source="sysfs",
    thresholds=(DOWNS, TRIPS),
)
