"""Kernel-log lines that tell of broken hardware: a table of signatures, and a pure judge of one line.

A new signature is one row of `SIGNATURES` and one line in the tests' corpus. Rows are tried in order, the first match
counts. Patterns begin at the line's start: what a user gets printed in the middle of a kernel line matches nothing.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from steward.checks.check import Verdict, failed, passed
from steward.checks.xid import judge_nvlink5, judge_recovery, judge_xid
from steward.model.health import Advice, Severity
from steward.model.text import printable

_SHOWN = 200
_FATAL, _DEGRADED, _SUSPECT, _INFO = Severity.FATAL, Severity.DEGRADED, Severity.SUSPECT, Severity.INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The `times`-th line of this kind about the same thing within `within_s` seconds says more than the first."""

    times: int
    within_s: float
    severity: Severity
    advice: Advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """What one line says. `check` is the finding's id; `subject` is the device or mount it is about."""

    check: str
    subject: str
    verdict: Verdict
    repeat: Repeat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    name: str
    pattern: "re.Pattern[str]"
    read: Callable[["re.Match[str]", str], Verdict]
    """(match, the line for people) -> verdict"""
    subject: str = ""
    """Name of the group that holds it."""
    repeat: Repeat | None = None


def judge(line: str) -> Sign | None:
    """What a line of the kernel's own says of the node; None for the many that say nothing."""
    for signature in SIGNATURES:
        match = signature.pattern.match(line)
        if match is not None:
            return _sign(signature, match, line)
    return None


def _sign(signature: Signature, match: "re.Match[str]", line: str) -> Sign:
    groups = match.groupdict()
    name = f"xid{groups['xid']}" if signature.name == "xid" else signature.name
    return Sign(
        check=f"kernel_log.{name}"[:40],
        subject=printable(groups.get(signature.subject) or "", 64),
        verdict=signature.read(match, printable(line, _SHOWN)),
        repeat=signature.repeat,
    )


def _row(
    name: str,
    pattern: str,
    severity: Severity,
    advice: Advice,
    *,
    subject: str = "dev",
    repeat: Repeat | None = None,
) -> Signature:
    """A signature that says the same of every line it matches; INFO is reported and is no failure."""

    def read(match: "re.Match[str]", line: str) -> Verdict:
        return passed(line) if severity is _INFO else failed(line, severity, advice)

    return Signature(name=name, pattern=re.compile(pattern), read=read, subject=subject, repeat=repeat)


def _gpu(name: str, pattern: str, read: Callable[["re.Match[str]", str], Verdict]) -> Signature:
    return Signature(name=name, pattern=re.compile(pattern), read=read, subject="bdf")


SIGNATURES: tuple[Signature, ...] = (
    _gpu(
        "xid154",
        r"NVRM: Xid \(PCI:(?P<bdf>[^)]*)\): 154,.*\bto\b[^(]*\((?P<act>[A-Za-z0-9 ]+)\)",
        lambda match, line: judge_recovery(match["act"], line),
    ),
    _gpu(
        "xid",
        r"NVRM: Xid \(PCI:(?P<bdf>[0-9a-fA-F:.]+)\): (?P<xid>14[4-9]|150),.*?\b(?P<word>Fatal|Nonfatal)\s+XC[01]\b",
        lambda match, line: judge_nvlink5(int(match["xid"]), match["word"], line),
    ),
    _gpu(
        "xid",
        r"NVRM: Xid \((?:PCI:)?(?P<bdf>[0-9a-fA-F:.]+)\): (?P<xid>\d{1,4})\b",
        lambda match, line: judge_xid(int(match["xid"]), line),
    ),
    _gpu(
        "xid79",
        r"NVRM: (?:.*?(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F.]+))?.*fallen off the bus",
        lambda match, line: judge_xid(79, line),
    ),
    _row(
        "gpu_init",
        r"NVRM: .*(?:RmInitAdapter failed|rm_init_adapter failed)",
        _FATAL,
        Advice.REBOOT,
        subject="",
    ),
    _row(
        "mce",
        r"mce: \[Hardware Error\]: (?:CPU \d+: )?Machine Check(?: Exception)?"
        r"|(?:\{\d+\})?\[Hardware Error\]: event severity: (?:fatal|recoverable)",
        _FATAL,
        Advice.REPLACE,
        subject="",
    ),
    _row(
        "mce_corrected",
        r"(?:\{\d+\})?\[Hardware Error\]: event severity: corrected"
        r"|mce: \[Hardware Error\]: Machine check events logged",
        _INFO,
        Advice.NONE,
        subject="",
    ),
    _row("edac_ue", r"EDAC (?P<dev>\S+?):? .*?\bUE\b", _FATAL, Advice.REPLACE),
    _row("mem_poison", r"Memory failure: 0x[0-9a-f]+: ", _DEGRADED, Advice.REPLACE, subject=""),
    _row(
        "remount_ro",
        r"(?:EXT4-fs|BTRFS)[^:]*: .*(?:[Rr]emounting filesystem read-only|forced readonly)"
        r"|(?:EXT4-fs|BTRFS) .*(?:[Rr]emounting filesystem read-only|forced readonly)",
        _DEGRADED,
        Advice.REBOOT,
        subject="",
    ),
    _row(
        "xfs_shutdown",
        r"XFS \((?P<dev>[\w-]+)\): .*"
        r"(?:[Ss]hutting down filesystem|Filesystem has been shut down|metadata I/O error)",
        _DEGRADED,
        Advice.REBOOT,
    ),
    _row(
        "nvme_dead",
        r"nvme (?P<dev>nvme\d+): "
        r"(?:Disabling device after reset failure|Removing after probe failure|controller is down; will reset)",
        _DEGRADED,
        Advice.REPLACE,
    ),
    _row(
        "nvme_timeout",
        r"nvme (?P<dev>nvme\d+): I/O .*timeout, (?:aborting|reset controller)",
        _SUSPECT,
        Advice.NONE,
        repeat=Repeat(times=2, within_s=3600.0, severity=_DEGRADED, advice=Advice.REPLACE),
    ),
    _row("nvme_no_path", r"block (?P<dev>nvme\w+): no available path - failing I/O", _DEGRADED, Advice.REBOOT),
)
