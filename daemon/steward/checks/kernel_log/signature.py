"""A row of the kernel-log table, and the short ways to write one."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from steward.checks.check import Verdict, failed, passed
from steward.checks.repeat import Repeat
from steward.model.health import Advice, Scope, Severity

BDF = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
DISK = r"(?!loop|sr\d|fd\d|zram|ram\d|nbd)[\w!-]{2,32}"
"""A disk of the node; what a user may bring along (images, floppies) is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """The meaning of one line. `check` is the finding's id; `subject` is the device or mount it is about.

    `weight`: how many events the line itself counts. `clears`: the check whose event about the same subject it ends.
    """

    check: str
    subject: str
    verdict: Verdict
    repeat: Repeat | None = None
    weight: int = 1
    clears: str = ""


Read = Callable[["re.Match[str]", str], Verdict]
"""(match, the line for people) -> verdict"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """`subject` and `weight` name groups of the pattern. Where the subject, the finding's name or its repetition depend
    on more of the match, `about`, `label` and `repeat_of` make them."""

    name: str
    pattern: "re.Pattern[str]"
    read: Read
    subject: str = ""
    repeat: Repeat | None = None
    about: Callable[["re.Match[str]"], str] | None = None
    label: Callable[["re.Match[str]"], str] | None = None
    repeat_of: Callable[["re.Match[str]"], Repeat | None] | None = None
    weight: str = ""
    clears: str = ""


def says(severity: Severity, advice: Advice, scope: Scope) -> Read:
    """The same of every line; INFO is reported and is no failure."""

    def read(match: "re.Match[str]", line: str) -> Verdict:
        return passed(line) if severity is Severity.INFO else failed(line, severity, advice, scope=scope)

    return read


def row(
    name: str,
    pattern: str,
    severity: Severity,
    advice: Advice = Advice.NONE,
    *,
    subject: str = "dev",
    scope: Scope = Scope.NODE,
    repeat: Repeat | None = None,
    weight: str = "",
    clears: str = "",
) -> Signature:
    """A signature that says the same of every line it matches."""
    return Signature(
        name=name,
        pattern=re.compile(pattern),
        read=says(severity, advice, scope),
        subject=subject,
        repeat=repeat,
        weight=weight,
        clears=clears,
    )


def told(name: str, pattern: str, *, subject: str = "dev", clears: str = "") -> Signature:
    """A line that is reported and never acts."""
    return row(name, pattern, Severity.INFO, subject=subject, clears=clears)
