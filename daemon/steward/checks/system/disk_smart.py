"""What disks behind SATA and SAS say of themselves, where smartctl is installed."""

import json
from pathlib import PurePosixPath

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, RunOnEach

ID = "disk.smart"


def probes(facts: Facts) -> tuple[RunOnEach, ...]:
    """A disk that sleeps is not woken."""
    argv = ("smartctl", "--health", "--nocheck=standby", "--json=c")
    return (RunOnEach(patterns=("/dev/sd[a-z]", "/dev/sd[a-z][a-z]"), argv=argv, max_paths=64),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    health = {PurePosixPath(path).name: _passes(text or "") for path, text in raws[0].files.items()}
    told = {name: passes for name, passes in health.items() if passes is not None}
    if not told:
        return skipped(raws[0].output or "no disk here tells its health")
    failing = sorted(name for name, passes in told.items() if not passes)
    if failing:
        text = f"the disk says that it fails: {', '.join(failing)}"
        return failed(text, Severity.DEGRADED, Advice.REPLACE, hardware=failing[0])
    return passed(f"{len(told)} disks say that they are well")


def _passes(text: str) -> bool | None:
    """None where the disk does not say: it is virtual, asleep, or behind a controller that hides it."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    status = answer.get("smart_status") if isinstance(answer, dict) else None
    word = status.get("passed") if isinstance(status, dict) else None
    return word if isinstance(word, bool) else None


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "drain"),
    every_s=6 * 3600.0,
    timeout_s=120.0,
    is_quick=False,
    title="a disk says that it fails (SMART)",
    source="command",
    cost_ms=5.0,
)
