"""Kernel-log lines that report broken hardware: a table of signatures by family, and a pure judge of one line.

A new signature is one row of a family's table and one line in the tests' corpus. Rows are tried in order, the first
match counts. Patterns begin at the line's start, and every gap in them is bounded: no line is slow to judge, whatever
its text. Text that a user can get into a kernel line (the name of a process or file) matches no row that acts: each
such row needs more than the 15 characters of a process's name.
"""

import re
from dataclasses import replace

from steward.checks.kernel_log import signatures
from steward.checks.kernel_log.signatures import Sign, Signature
from steward.checks.limits import Limits, Threshold
from steward.model.text import printable

__all__ = ["FAMILY", "SIGNATURES", "THRESHOLDS", "Sign", "Signature", "judge", "with_limits"]

FAMILY = "kernel_log"
MAX_LINE = 1000
_SHOWN = 200
_ID_LENGTH = 40

SIGNATURES: tuple[Signature, ...] = (
    *signatures.GPU,
    *signatures.CPU,
    *signatures.STORAGE,
    *signatures.NET,
    *signatures.SYSTEM,
    *signatures.PROGRAMS,
)
_KERNELS = SIGNATURES[: -len(signatures.PROGRAMS)]


def _thresholds() -> tuple[Threshold, ...]:
    rates = {f"{FAMILY}.{one.name}.times": one.repeat for one in SIGNATURES if one.repeat is not None}
    return tuple(
        Threshold(
            name=name,
            default=float(repeat.times),
            unit="events",
            text=f"This many within {repeat.within_s:g} s are a failure.",
            low=1.0,
            high=10000.0,
        )
        for name, repeat in rates.items()
    )


THRESHOLDS = _thresholds()


def judge(line: str) -> Sign | None:
    """Judge one of the kernel's own lines; return None for a line that says nothing about the node."""
    if len(line) >= MAX_LINE:
        return None  # lines about hardware are shorter, and the part cut off may name a user's process or file
    for signature in signatures.PROGRAMS if signatures.PROGRAM_SAID.match(line) else _KERNELS:
        match = signature.pattern.match(line)
        if match is not None:
            return _sign(signature, match, line)
    return None


def with_limits(sign: Sign, limits: Limits) -> Sign:
    """Return the sign with the site's number of repetitions, if the site sets one."""
    times = limits.values.get(f"{sign.check}.times")
    if sign.repeat is None or times is None:
        return sign
    return replace(sign, repeat=replace(sign.repeat, times=max(1, int(times))))


def _sign(signature: Signature, match: "re.Match[str]", line: str) -> Sign:
    groups = match.groupdict()
    name = signature.label(match) if signature.label else signature.name
    subject = signature.about(match) if signature.about else groups.get(signature.subject) or ""
    return Sign(
        check=f"{FAMILY}.{name}"[:_ID_LENGTH],
        subject=printable(subject, 64),
        verdict=signature.read(match, printable(line, _SHOWN)),
        repeat=signature.repeat_of(match) if signature.repeat_of else signature.repeat,
        weight=int(groups.get(signature.weight) or 1),
        clears=f"{FAMILY}.{signature.clears}" if signature.clears else "",
    )
