"""Services that systemd has given up on."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.modes import by_id
from steward.checks.past import Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, RunProgram

ID = "svc.units"
_NO_SYSTEMD = "not been booted with systemd"
_UNIT = re.compile(r"^Id=(?P<id>[\w@.:\\-]{1,255})$", re.MULTILINE)
_SHOWN = 200


def probes(facts: Facts) -> tuple[RunProgram, ...]:
    """All in one call; of a unit that is not installed systemd says just that."""
    argv = ("systemctl", "show", "--property=Id,LoadState,ActiveState", "--", *facts.limits.services.units)
    return (RunProgram(argv=argv, timeout_s=8.0, max_bytes=65536, may_be_absent=True),)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    """Stopped or switched off is what an admin did; `failed` is what nobody wanted."""
    (raw,) = raws
    if not facts.limits.services.units:
        return skipped("checks.services.units is empty")
    if raw.returncode is None or _NO_SYSTEMD in raw.output:
        return skipped("no systemd on this node")
    blocks = [block for block in raw.output.split("\n\n") if _UNIT.search(block)]
    if raw.returncode != 0 or not blocks:
        return unknown(f"systemctl show: rc={raw.returncode} {raw.output[:_SHOWN]}")
    there = [block for block in blocks if "LoadState=loaded" in block.split("\n")]
    down = [found["id"] for block in there if _has_failed(block) and (found := _UNIT.search(block))]
    if down:
        return failed(f"failed: {', '.join(down)}", Severity.DEGRADED, Advice.RESTART_SERVICE, hardware=down[0])
    return passed(f"none of {len(there)} services has failed")


def _has_failed(block: str) -> bool:
    return "ActiveState=failed" in block.split("\n")


CHECK = Check(
    id=ID,
    probes=probes,
    judge=judge,
    mode=by_id(ID, "report"),
    every_s=300.0,
    confirm_s=10.0,
    bad_for_s=60.0,  # systemd may be about to start it again
    is_quick=False,
    title="a service has failed",
    source="systemd",
    cost_ms=6.0,
)
