"""The meaning of NVIDIA's Xid and SXid codes for the node (reference: health research 2.1, after NVIDIA's own sheet).

Most Xids are a job's own fault and never act. A code that is in no list is reported and never acts either.
"""

from dataclasses import dataclass

from steward.checks.check import Judgement, Repeat, failed, passed
from steward.model.health import Advice, Severity

_FATAL, _DEGRADED, _SUSPECT = Severity.FATAL, Severity.DEGRADED, Severity.SUSPECT
_RESET, _REBOOT, _REPLACE = Advice.RESET_GPU, Advice.REBOOT, Advice.REPLACE

HARDWARE: dict[int, tuple[Severity, Advice, str]] = {
    46: (_FATAL, _RESET, "GPU stopped processing"),
    48: (_FATAL, _RESET, "uncorrectable double-bit ECC error"),
    54: (_DEGRADED, _REPLACE, "auxiliary power not connected"),
    62: (_FATAL, _RESET, "internal micro-controller halted"),
    63: (_SUSPECT, _RESET, "row remapping recorded, done at the next reset"),
    64: (_DEGRADED, _RESET, "row remapping could not be recorded"),
    74: (_DEGRADED, _RESET, "NVLink error"),
    79: (_FATAL, _REBOOT, "GPU has fallen off the bus"),
    94: (_DEGRADED, _RESET, "contained ECC error"),
    95: (_FATAL, _RESET, "uncontained ECC error"),
    109: (_FATAL, _RESET, "context switch timeout"),
    110: (_FATAL, _RESET, "security fault"),
    119: (_FATAL, _RESET, "GSP firmware does not answer"),
    120: (_FATAL, _RESET, "GSP firmware error"),
    136: (_DEGRADED, _RESET, "NVLink training failed"),
    140: (_FATAL, _RESET, "unrecovered ECC error"),
    143: (_FATAL, _RESET, "GPU initialisation failed"),
    151: (_DEGRADED, _REBOOT, "key rotation failed"),
    155: (_DEGRADED, _RESET, "NVLink software-defined error"),
    156: (_SUSPECT, _RESET, "resource retirement recorded, done at the next reset"),
    157: (_SUSPECT, Advice.NONE, "resource retirement failed"),
    158: (_FATAL, _RESET, "fatal GPU timeout"),
    159: (_SUSPECT, Advice.NONE, "chip-to-chip link error"),
    166: (_DEGRADED, _REBOOT, "confidential-mode NVLink fault"),
    167: (_FATAL, _REBOOT, "fatal PCIe timeout"),
    168: (_DEGRADED, _REBOOT, "reduced memory capacity"),
    169: (_DEGRADED, _REBOOT, "SEC2 controller halted"),
    171: (_SUSPECT, _RESET, "uncorrectable ECC error was in DRAM"),
    172: (_SUSPECT, _RESET, "uncorrectable ECC error was in SRAM"),
    173: (_FATAL, _REBOOT, "chip-to-chip link failed"),
}

APPLICATION = frozenset(
    (
        *(8, 11, 13, 25, 31, 32, 43, 45, 60, 68, 69, 80, 82, 83, 84, 86, 88, 89, 137, 139, 141, 170),
        *range(39, 42),
        *range(70, 73),
        *range(75, 78),
        85,
        *range(96, 106),
        *range(126, 136),
    )
)
"""Xids that are the job's own fault, or a mere symptom of another error."""

RECOVERY: dict[str, tuple[Severity, Advice]] = {
    "node reboot required": (_FATAL, _REBOOT),
    "system reboot required": (_FATAL, _REBOOT),
    "gpu reset required": (_FATAL, _RESET),
    "bus reset required": (_FATAL, _RESET),
    "drain and reset": (_DEGRADED, _RESET),
    "drain p2p": (_SUSPECT, _RESET),
}
"""The recovery actions that the driver itself asks for in Xid 154. Others (of a newer driver) are reported."""

_SOFTWARE_ONLY = 0x80000000
_DAY_S = 86400.0
_BURST_S = 180.0
"""Equal Xids closer than this to the last one are the same event."""
_STICKY_S = 10800.0
"""The same for a dead link, which repeats its Xid for hours."""


def _if_repeated(severity: Severity, advice: Advice, gap_s: float = _BURST_S) -> Repeat:
    return Repeat(times=2, within_s=_DAY_S, severity=severity, advice=advice, gap_s=gap_s)


NVLINK_AGAIN = _if_repeated(_DEGRADED, _REPLACE)
_CHANNEL = (*range(39, 42), *range(70, 73), *range(75, 78), 80, 85, *range(126, 136))
_REPEATS = {
    **dict.fromkeys((13, 31), _if_repeated(_SUSPECT, Advice.NONE)),
    **dict.fromkeys(_CHANNEL, _if_repeated(_SUSPECT, _RESET)),
    64: _if_repeated(_DEGRADED, _REPLACE),
    74: _if_repeated(_DEGRADED, _REPLACE, _STICKY_S),
    110: _if_repeated(_FATAL, _REPLACE),
}


def judge_xid(code: int, line: str) -> Judgement:
    """Judge the Xid `code`."""
    if code in HARDWARE:
        severity, advice, meaning = HARDWARE[code]
        return failed(f"Xid {code} ({meaning}): {line}", severity, advice)
    told = "a job's own fault" if code in APPLICATION else "reported only"
    return passed(f"Xid {code} ({told}): {line}")


def judge_recovery(action: str, line: str) -> Judgement:
    """Judge Xid 154; `action` is the new recovery action in the driver's words."""
    if action.lower() not in RECOVERY:
        return passed(f"Xid 154 (recovery action: {action}): {line}")
    severity, advice = RECOVERY[action.lower()]
    return failed(f"Xid 154 (the driver asks: {action}): {line}", severity, advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvlink5:
    """An NVLink error of Blackwell and newer, as the driver prints it. `info` and `status` are its first two words."""

    code: int
    unit: str
    is_fatal: bool
    link: str
    info: int
    status: int

    @property
    def sub_code(self) -> int:
        return self.info >> 20 & 0x3F

    @property
    def is_software_only(self) -> bool:
        return self.unit.startswith(("TREX", "TLW", "RLW")) and self.status == _SOFTWARE_ONLY

    @property
    def counts(self) -> bool:
        """Whether the error means that a link is broken."""
        told_elsewhere = self.unit.startswith(("RLW_REMAP", "NETIR_BER"))
        return self.is_fatal and not self.is_software_only and not told_elsewhere


def judge_nvlink5(error: Nvlink5, line: str) -> Judgement:
    """Judge one of the Xids 144 to 150."""
    what = f"Xid {error.code} (NVLink {error.link}, sub-code {error.sub_code}"
    if error.unit.startswith("NETIR_BER"):
        return passed(f"{what}, bit errors: check cables and optics): {line}")
    if error.unit.startswith("RLW_REMAP"):
        return passed(f"{what}, the driver's Xid 154 says what to do): {line}")
    if error.is_software_only:
        return passed(f"{what}, software only): {line}")
    if not error.is_fatal:
        return passed(f"{what}, not fatal): {line}")
    either = ", either end of the link may be at fault" if error.unit.startswith("NETIR_LINK") else ""
    return failed(f"{what}, fatal{either}): {line}", _DEGRADED, _RESET)


def xid_repeat(code: int) -> Repeat | None:
    """Return the rule for an Xid that the same GPU reports again within a day; None if there is none."""
    return _REPEATS.get(code)


# NVSwitch's SXid codes (HGX and DGX up to Hopper; reference: health research 2.3, after NVIDIA's own guide).
#
# A code that is in no list is reported and never acts; nor does a port's code that the driver itself calls non-fatal.

NOISE = frozenset(
    (
        *(11012, *range(11021, 11024), 12021, 12023, 15008, 15011, 19049, 19055, 19057, 19059, 19062, 19065, 19068),
        *(19071, *range(24001, 24004), 20001, 20009, 22013, 20012, 10001, 10002, 10004, 10005),
    )
)
"""SXids that are only reported: corrected errors, link noise, privilege and thermal notes."""

PORT = frozenset(
    (
        *(11001, 11009, 11013, *range(11018, 11021), 12001, 12002, 12022, *range(12024, 12028), *range(12030, 12033)),
        *(14017, 15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058, 19060, 19061, 19063),
        *(19064, 19066, 19067, 19069, 19070, 20034, 22012, *range(24004, 24008)),
    )
)
"""SXids of one dead port: the GPU behind it reports Xid 74, other jobs go on."""

FABRIC = frozenset((12020, 22003, 22011, *range(23001, 23018)))
"""SXids that mean that the whole baseboard is dead."""

STALLED = {
    11004: "the fabric's partitions are wrong, traffic stalls",
    12028: "privileged egress error, traffic stalls",
    10003: "unhandled interrupt",
}
HEARTBEAT = 19084
LINK_LOST = 20034


def judge_sxid(code: int, is_fatal: bool, line: str) -> Judgement:
    """Judge the SXid `code`; `is_fatal` is the driver's word in the line."""
    if code == HEARTBEAT:
        return _bad(code, "no heartbeat: every GPU and switch must be reset", line, Severity.FATAL)
    if code in STALLED:
        return _bad(code, STALLED[code], line, Severity.DEGRADED)
    if is_fatal and code in FABRIC:
        return _bad(code, "the NVSwitch fabric failed", line, Severity.FATAL)
    if is_fatal and code in PORT:
        return _bad(code, "a port of the NVSwitch failed", line, Severity.DEGRADED)
    return passed(f"SXid {code} (reported only): {line}")


def _bad(code: int, meaning: str, line: str, severity: Severity) -> Judgement:
    return failed(f"SXid {code} ({meaning}): {line}", severity, Advice.REBOOT)
