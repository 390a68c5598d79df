"""How long the machine has been up: what has just been booted is told, so that nobody wonders."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "os.uptime"
_UPTIME = "/proc/uptime"
_SECONDS = re.compile(r"^([0-9]{1,12}(?:\.[0-9]{1,3})?) ")
MIN_S = Threshold(name="os.uptime.min_s", default=600.0, unit="s", text="A shorter time since boot is told.", high=1e9)


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_UPTIME,)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    found = _SECONDS.match(raws[0].files.get(_UPTIME) or "")
    if found is None:
        return unknown(f"{_UPTIME} makes no sense")
    up = float(found[1])
    if up < facts.limit(MIN_S):
        return failed(f"booted {up / 60:.0f} min ago", Severity.INFO, Advice.NONE)
    return passed(f"up for {up / 86400:.1f} days")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=300.0,
    is_quick=False,
    title="booted a short time ago",
    source="procfs",
    cost_ms=0.1,
    thresholds=(MIN_S,),
)
