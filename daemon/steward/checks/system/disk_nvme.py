"""NVMe drives: does the controller live, and what does the drive say of itself (where nvme-cli is installed)?"""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadTree, RunOnEach

ID = "disk.nvme"
_DEAD = frozenset({"dead", "deleting", "deleting (no IO)"})
_HOT = 0x02
_BROKEN = {0x01: "spare below its threshold", 0x04: "unreliable", 0x08: "read-only", 0x10: "backup of its cache failed"}
"""Bits of `critical_warning` that do not go away."""


def probes(facts: Facts) -> tuple[Probe, ...]:
    smart = RunOnEach(
        patterns=("/dev/nvme[0-9]", "/dev/nvme[0-9][0-9]"), argv=("nvme", "smart-log", "--output-format=json")
    )
    return ReadTree(patterns=("/sys/class/nvme/nvme*/state",)), smart


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    states = {PurePosixPath(path).parent.name: (text or "").strip() for path, text in raws[0].files.items()}
    warnings = {PurePosixPath(path).name: _warning(text or "") for path, text in raws[1].files.items()}
    if not states and not warnings:
        return skipped("no NVMe drive on this node")
    broken = {name: f"controller is {state}" for name, state in states.items() if state in _DEAD} | _broken(warnings)
    if broken:
        told = ", ".join(f"{name}: {what}" for name, what in sorted(broken.items()))
        return failed(told, Severity.DEGRADED, Advice.REPLACE, hardware=min(broken))
    hot = sorted(name for name, warning in warnings.items() if warning & _HOT)
    if hot:
        return failed(f"too hot: {', '.join(hot)}", Severity.INFO, Advice.NONE, hardware=hot[0])
    return passed(f"{len(states) or len(warnings)} drives live")


def _broken(warnings: Mapping[str, int]) -> dict[str, str]:
    told = {
        name: ", ".join(what for bit, what in _BROKEN.items() if warning & bit) for name, warning in warnings.items()
    }
    return {name: what for name, what in told.items() if what}


def _warning(text: str) -> int:
    """`critical_warning` of nvme-cli's JSON, which newer ones wrap in an object; 0 where there is none."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return 0
    value = answer.get("critical_warning") if isinstance(answer, dict) else None
    value = value.get("value") if isinstance(value, dict) else value
    return value if isinstance(value, int) else 0


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "drain"),
    every_s=3600.0,
    timeout_s=60.0,
    is_quick=False,
    title="an NVMe drive is dead or says that it fails",
    source="sysfs",
    cost_ms=3.0,
)
