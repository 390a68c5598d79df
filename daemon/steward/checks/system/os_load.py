"""Processes that wait for a CPU, against the CPUs that are there."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.system.cpu_list import ONLINE, count
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadFiles

ID = "os.load"
_LOAD = "/proc/loadavg"
_AVERAGES = re.compile(r"^[0-9.]{1,12} [0-9.]{1,12} ([0-9]{1,9}\.[0-9]{2}) ")
PER_CPU = Threshold(
    name="os.load.per_cpu",
    default=2.0,
    unit="per CPU",
    text="A higher load of 15 minutes for each CPU is told.",
    high=1e6,
)


def probes(facts: Facts) -> tuple[ReadFiles, ...]:
    return (ReadFiles(paths=(_LOAD, ONLINE)),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Jobs make load: told, and no reason to act."""
    found, cpus = _AVERAGES.match(raws[0].files.get(_LOAD) or ""), count(raws[0].files.get(ONLINE) or "")
    if found is None or not cpus:
        return unknown(f"{_LOAD} or {ONLINE} makes no sense")
    text = f"load {found[1]} on {cpus} CPUs in 15 min"
    return failed(text, Severity.INFO, Advice.NONE) if float(found[1]) > facts.limit(PER_CPU) * cpus else passed(text)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=300.0,
    is_quick=False,
    title="more load than CPUs",
    source="procfs",
    cost_ms=0.1,
    thresholds=(PER_CPU,),
)
