"""Processor, memory, PCIe, and the kernel itself."""

import re

from steward.checks.check import Verdict, failed, passed
from steward.checks.kernel_log.signature import BDF, Signature, row, told
from steward.checks.repeat import Repeat
from steward.model.health import Advice, Severity

_FATAL, _DEGRADED, _SUSPECT, _INFO = Severity.FATAL, Severity.DEGRADED, Severity.SUSPECT, Severity.INFO
_UNCORRECTED = 1 << 61
"""Of a machine check bank's status: the hardware could not correct the error."""
_STUCK = Repeat(times=3, within_s=600.0, severity=_DEGRADED, advice=Advice.REBOOT)
_AER = Repeat(times=3, within_s=3600.0, severity=_DEGRADED, advice=Advice.REBOOT)
_DIMM = Repeat(times=101, within_s=86400.0, severity=_SUSPECT, advice=Advice.NONE, gap_s=0.0)


def _mce(match: "re.Match[str]", line: str) -> Verdict:
    """Without "Exception" the line may as well be of a corrected error: the bank's status says which."""
    status = int(match["status"] or "0", 16)
    if match["exception"] or status & _UNCORRECTED:
        return failed(line, _FATAL, Advice.REPLACE)
    return passed(f"corrected: {line}")


SIGNATURES: tuple[Signature, ...] = (
    Signature(
        name="mce",
        pattern=re.compile(
            r"mce: \[Hardware Error\]: (?:CPU \d{1,5}: )?Machine Check(?P<exception> Exception)?"
            r"(?:: [0-9a-fA-F]{1,16} Bank \d{1,3}: (?P<status>[0-9a-fA-F]{1,16}))?"
        ),
        read=_mce,
    ),
    row("mce", r"(?:\{\d{1,9}\})?\[Hardware Error\]: event severity: fatal", _FATAL, Advice.REPLACE, subject=""),
    row("mce", r"(?:\{\d{1,9}\})?\[Hardware Error\]: event severity: recoverable", _DEGRADED, Advice.REPLACE,
        subject=""),
    told("mce_corrected", r"(?:\{\d{1,9}\})?\[Hardware Error\]: event severity: corrected"
         r"|mce: \[Hardware Error\]: Machine check events logged", subject=""),
    row("edac_ue", r"EDAC (?P<dev>MC\d{1,4}): (?:[1-9]\d{0,9} )?UE .{0,600}?\bpage[: ]0x[0-9a-f]", _FATAL,
        Advice.REPLACE),
    row("edac_ue", r"EDAC (?P<dev>DEVICE\d{1,4}): UE: .{1,160}? instance: ", _FATAL, Advice.REPLACE),
    row("edac_ce", r"EDAC MC\d{1,4}: (?P<n>[1-9]\d{0,5}) CE (?:.{0,80}? )?on (?P<dev>[\w#:.-]{1,64}) ", _INFO,
        repeat=_DIMM, weight="n"),
    row("mem_poison", r"Memory failure: 0x[0-9a-f]{1,16}: ", _DEGRADED, Advice.REPLACE, subject=""),
    row("pcie_aer_fatal", rf"(?:[\w-]{{1,24}} (?P<dev>{BDF}): )?(?:AER: )?(?:(?:Multiple )?Uncorrect(?:ed|able)"
        r" \(Fatal\)|PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\))", _DEGRADED, Advice.REBOOT),
    row("pcie_aer_nonfatal", rf"(?:[\w-]{{1,24}} (?P<dev>{BDF}): )?(?:AER: )?PCIe Bus Error: "
        r"severity=Uncorrect(?:ed|able) \(Non-Fatal\)", _INFO, repeat=_AER),
    told("pcie_aer_corrected", rf"(?:[\w-]{{1,24}} (?P<dev>{BDF}): )?(?:AER: )?PCIe Bus Error: severity=Corrected"),
    row("pcie_width", rf"(?:mlx5_core|nvidia) (?P<dev>{BDF}): [\d.]{{1,12}} Gb/s available PCIe bandwidth, limited by",
        _SUSPECT),
    told("pcie_width_disk", rf"nvme (?P<dev>{BDF}): [\d.]{{1,12}} Gb/s available PCIe bandwidth, limited by"),
    told("pcie_slot_power", rf"(?:[\w-]{{1,24}} (?P<dev>{BDF}): )?(?:Detected )?insufficient power on the PCIe slot "
         r"\(\d{1,5}W\)"),
    row("soft_lockup", r"(?:NMI )?(?:watchdog: )?BUG: soft lockup - CPU#\d{1,5} stuck for \d{1,9}s!", _INFO, subject="",
        repeat=_STUCK),
    row("hard_lockup", r"(?:NMI )?[Ww]atchdog: (?:Watchdog detected )?hard LOCKUP on cpu \d{1,5}"
        r"|Watchdog detected hard LOCKUP", _DEGRADED, Advice.REBOOT, subject=""),
    row("rcu_stall", r"(?:rcu: )?(?:INFO: )?rcu_\w{1,16} (?:detected stalls on CPUs|self-detected stall)", _INFO,
        subject="", repeat=_STUCK),
    told("task_hung", r"INFO: task .{1,16}?:\d{1,10} blocked for more than \d{1,9} seconds", subject=""),
    row("panic", r"Kernel panic - not syncing", _FATAL, Advice.REBOOT, subject=""),
    row("oops", r"BUG: (?:unable to handle|kernel NULL pointer)", _DEGRADED, Advice.REBOOT, subject=""),
    # Of x86, arm64 and POWER. "Oops: 0000 [#1]" alone may be the name of a process.
    row("oops", r"(?:Oops: |general protection fault[,:] )(?:[^\[]{1,120} )?[0-9a-f]{4} \[#\d{1,6}\] {1,2}"
        r"(?:PREEMPT\S{0,16} )?SMP\b", _DEGRADED, Advice.REBOOT, subject=""),
    row("oops", r"Internal error: [^\[]{1,80}: [0-9a-f]{8,16} \[#\d", _DEGRADED, Advice.REBOOT, subject=""),
    row("oops", r"Oops: Kernel access of bad area, sig: \d{1,2} \[#\d", _DEGRADED, Advice.REBOOT, subject=""),
)  # fmt: skip
