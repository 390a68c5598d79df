"""NVIDIA's Xid codes: what each says about the node (reference: health research 2.1, after NVIDIA's own sheet).

Most Xids are a job's own fault and never act. A code that is in no list is reported and never acts either.
"""

from steward.checks.check import Verdict, failed, passed
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
"""The job's own fault, or a mere symptom of another error."""

RECOVERY: dict[str, tuple[Severity, Advice]] = {
    "Node Reboot Required": (_FATAL, _REBOOT),
    "GPU Reset Required": (_FATAL, _RESET),
    "Drain and Reset": (_DEGRADED, _RESET),
    "Drain P2P": (_SUSPECT, _RESET),
}
"""Xid 154: the driver says itself what must be done."""


def judge_xid(code: int, line: str) -> Verdict:
    """What Xid `code` says of the node."""
    if code in HARDWARE:
        severity, advice, meaning = HARDWARE[code]
        return failed(f"Xid {code} ({meaning}): {line}", severity, advice)
    told = "a job's own fault" if code in APPLICATION else "reported only"
    return passed(f"Xid {code} ({told}): {line}")


def judge_recovery(action: str, line: str) -> Verdict:
    """Xid 154: `action` is the new recovery action in the driver's words."""
    if action not in RECOVERY:
        return passed(f"Xid 154 (recovery action: {action}): {line}")
    severity, advice = RECOVERY[action]
    return failed(f"Xid 154 (the driver asks: {action}): {line}", severity, advice)


def judge_nvlink5(code: int, word: str, line: str) -> Verdict:
    """Xids 144 to 150 say in the line whether they are fatal."""
    if word == "Fatal":
        return failed(f"Xid {code} (NVLink, fatal): {line}", _DEGRADED, _RESET)
    return passed(f"Xid {code} (NVLink, not fatal): {line}")
