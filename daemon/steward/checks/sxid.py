"""NVSwitch's SXid codes (HGX and DGX up to Hopper; reference: health research 2.3, after NVIDIA's own guide).

A code that is in no list is reported and never acts; so is one of a port that the driver itself calls non-fatal.
"""

from steward.checks.check import Verdict, failed, passed
from steward.model.health import Advice, Severity

NOISE = frozenset(
    (
        *(11012, *range(11021, 11024), 12021, 12023, 15008, 15011, 19049, 19055, 19057, 19059, 19062, 19065, 19068),
        *(19071, *range(24001, 24004), 20001, 20009, 22013, 20012, 10001, 10002, 10004, 10005),
    )
)
"""Corrected errors, link noise, privilege and thermal notes: reported."""

PORT = frozenset(
    (
        *(11001, 11009, 11013, *range(11018, 11021), 12001, 12002, 12022, *range(12024, 12028), *range(12030, 12033)),
        *(14017, 15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058, 19060, 19061, 19063),
        *(19064, 19066, 19067, 19069, 19070, 20034, 22012, *range(24004, 24008)),
    )
)
"""One port is dead: the GPU behind it sees Xid 74, the other jobs go on."""

FABRIC = frozenset((12020, 22003, 22011, *range(23001, 23018)))
"""The whole baseboard is dead."""

STALLED = {
    11004: "the fabric's partitions are wrong, traffic stalls",
    12028: "privileged egress error, traffic stalls",
    10003: "unhandled interrupt",
}
HEARTBEAT = 19084
LINK_LOST = 20034


def judge_sxid(code: int, is_fatal: bool, line: str) -> Verdict:
    """What SXid `code` says of the node; `is_fatal` is the driver's word in the line."""
    if code == HEARTBEAT:
        return _bad(code, "no heartbeat: every GPU and switch must be reset", line, Severity.FATAL)
    if code in STALLED:
        return _bad(code, STALLED[code], line, Severity.DEGRADED)
    if is_fatal and code in FABRIC:
        return _bad(code, "the NVSwitch fabric failed", line, Severity.FATAL)
    if is_fatal and code in PORT:
        return _bad(code, "a port of the NVSwitch failed", line, Severity.DEGRADED)
    return passed(f"SXid {code} (reported only): {line}")


def _bad(code: int, meaning: str, line: str, severity: Severity) -> Verdict:
    return failed(f"SXid {code} ({meaning}): {line}", severity, Advice.REBOOT)
