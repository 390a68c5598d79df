"""EFA registers memory that it pins: what slurmd lets its jobs lock must be enough for it."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.fabric.ib import EFA_DRIVER
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.checks.thresholds import Threshold
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadTree, RunProgram

ID = "efa.memlock"
_DEVICES = "/sys/class/infiniband/*/device/uevent"
_SHOW = ("systemctl", "show", "--property=LoadState,LimitMEMLOCK", "slurmd.service")
_LIMIT = re.compile(r"^LimitMEMLOCK=(infinity|[0-9]{1,20})$", re.MULTILINE)
MIN_GIB = Threshold(
    name="efa.memlock.min_gib", default=16.0, unit="GiB", text="Less that jobs may lock is told.", high=1e6
)


def probes(facts: Facts) -> tuple[ReadTree | RunProgram, ...]:
    return (ReadTree(patterns=(_DEVICES,)), RunProgram(argv=_SHOW, may_be_absent=True))


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    devices, unit = raws
    if not any(f"DRIVER={EFA_DRIVER}\n" in f"{text}\n" for text in devices.files.values()):
        return skipped("no EFA device on this node")
    if unit.returncode is None or "LoadState=loaded" not in unit.output:
        return skipped("slurmd.service is not there")
    found = _LIMIT.search(unit.output)
    if found is None:
        return unknown("systemctl does not tell LimitMEMLOCK")
    if found[1] == "infinity" or int(found[1]) >= facts.limit(MIN_GIB) * 2**30:
        return passed(f"jobs may lock memory: {found[1]}")
    text = f"slurmd's LimitMEMLOCK is {int(found[1]) // 2**20} MiB: set it to infinity for EFA"
    return failed(text, Severity.INFO, Advice.NONE)


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=3600.0,
    is_quick=False,
    title="jobs may not lock enough memory for EFA",
    source="command",
    cost_ms=3.0,
    thresholds=(MIN_GIB,),
)
