"""A configuration of LBNL Node Health Check, run as it is: what nhc finds is a finding; it marks no node itself."""

import re

from steward.checks.check import Check, Facts, Verdict, failed, passed, unknown
from steward.checks.limits import Limits
from steward.checks.past import Past
from steward.checks.site import MAX_OUTPUT, site_id, site_mode
from steward.model.health import Advice, Severity
from steward.model.probe import Probe, Raw, ReadFiles, RunProgram

NAME = "nhc"
_EVERY_S = 60.0
_SPARE_S = 2.0
"""nhc's own watchdog ends it so much before we do: then it says which check hung."""
_FAILED = re.compile(r"Health check failed: *(?P<why>[^\n]*)")
_BROKEN = frozenset((129, 130, 142, 143))
"""Ended by a signal or by its watchdog: nothing is said of the node."""


def nhc_check(limits: Limits) -> Check:
    """The check that runs nhc with the file of `checks.site.nhc`."""
    conf, timeout_s = limits.site.nhc, limits.site.timeout_s
    probes = (ReadFiles(paths=(conf,)), _program(conf, timeout_s))

    def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
        is_there = raws[0].files.get(conf) is not None
        return _judged(raws[1]) if is_there else unknown(f"{conf}: no such file (checks.site.nhc)")

    def look(facts: Facts) -> tuple[Probe, ...]:
        return probes

    return Check(
        id=site_id(NAME),
        probes=look,
        judge=judge,
        mode=site_mode(NAME),
        every_s=limits.site.every_s.get(NAME, _EVERY_S),
        timeout_s=timeout_s + 2,
        is_quick=False,
        title=f"LBNL Node Health Check with {conf}",
        source="command",
        cost_ms=500.0,
    )


def _program(conf: str, timeout_s: float) -> RunProgram:
    """Another name than nhc's keeps the host's /etc/default/nhc from switching the marking of nodes on again; what
    would mark one is nothing, whatever the configuration says."""
    quiet = ("MARK_OFFLINE=0", "DETACHED_MODE=0", "OFFLINE_NODE=:", "ONLINE_NODE=:", "LOGFILE=-")
    limit_s = max(1, int(timeout_s - _SPARE_S))
    return RunProgram(
        argv=(NAME, "-n", "nhc-steward", "-c", conf, "-t", str(limit_s), *quiet),
        timeout_s=timeout_s,
        max_bytes=MAX_OUTPUT,
    )


def _judged(raw: Raw) -> Verdict:
    found = _FAILED.findall(raw.output)
    if raw.returncode == 0:
        return passed("nhc found nothing")
    if raw.returncode in _BROKEN or not found:
        return unknown(f"nhc ended with status {raw.returncode}: {found[-1] if found else raw.output.strip()[:200]}")
    return failed(f"nhc: {found[0].strip()}", Severity.DEGRADED, Advice.NONE)
