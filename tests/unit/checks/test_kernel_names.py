"""Whatever a user calls his process, no line that the kernel prints of it takes a node out of service."""

import re
from collections.abc import Iterator

import pytest

from steward.checks.kernel_log import MAX_LINE, judge
from steward.checks.kernel_log.signatures import Sign
from steward.model.health import Severity
from tests.builders.kernel_corpus import BAD, REPORTED, SHARED, XID
from tests.builders.kernel_names import FIRST, STRANGE, WITHIN, task_shown

LONGEST = 15
"""Bytes of a name (TASK_COMM_LEN without its end)."""
ACTING = (Severity.FATAL, Severity.DEGRADED)
SQUEEZED = ("EDAC A: UE", "EDAC MC0: 1 UE", "Oops: [#1", "Oops: 0000 [#1]", "unrecoverable", "keepalive")
"""Shorter than any true line says it."""
PANIC = "Kernel panic - not syncing"


def fragments(line: str) -> Iterator[str]:
    """Of up to 15 characters: from each word's start and of each 15 in a row, to each word's end and the longest."""
    starts = {match.start() for match in re.finditer(r"\S+|\w+", line)}
    ends = {match.end() for match in re.finditer(r"\S+|\w+| ", line)}
    for at in range(len(line)):
        whole = line[at : at + LONGEST]
        yield whole
        if at in starts:
            yield from (line[at:end] for end in ends if at < end < at + LONGEST)


def filled(name: str) -> str:
    """The name made as long as it can be with bytes that /dev/kmsg shows as four characters each."""
    return name + r"\x01" * (LONGEST - len(name))


TRUE = [line for line, *_ in BAD] + [line for line, _ in SHARED] + REPORTED
NAMES = sorted({*SQUEEZED, *(name for line in TRUE for name in fragments(line))})
BYTES = sorted({filled(name) for name in (*SQUEEZED, *(line[:at] for line in TRUE for at in range(1, LONGEST)))})


def acts(sign: Sign | None) -> bool:
    """Whether it takes the node out, now or when it comes again."""
    if sign is None:
        return False
    again = sign.repeat is not None and sign.repeat.severity in ACTING
    return again or (sign.verdict.is_bad and sign.verdict.severity in ACTING)


def grave(line: str) -> tuple[str, Severity] | None:
    """What of the line acts."""
    sign = judge(line)
    return (sign.check, sign.verdict.severity) if sign is not None and acts(sign) else None


def called(text: str, name: str) -> str:
    return text.replace("{}", name)


@pytest.mark.parametrize("text", [*FIRST, *WITHIN], ids=lambda text: text[:50])
def test_no_name_changes_what_a_line_says_of_the_node(text: str) -> None:
    innocent = grave(called(text, "python"))
    assert [name for name in (*NAMES, *BYTES) if grave(called(text, name)) != innocent] == []


def test_no_name_makes_an_old_kernels_list_of_tasks_say_something() -> None:
    assert [name for name in NAMES if grave(task_shown(name))] == []


@pytest.mark.parametrize("text", STRANGE)
def test_no_name_alone_is_a_signature_whatever_a_kernel_says_of_it(text: str) -> None:
    assert [name for name in NAMES if grave(called(text, name))] == []


@pytest.mark.parametrize("text", FIRST, ids=lambda text: text[:50])
@pytest.mark.parametrize("name", ["XFS (sda): ", "XFS (sda): xxxx", filled("XFS (sda): ")])
def test_a_line_that_begins_with_a_name_is_known_whatever_file_it_tells_of(name: str, text: str) -> None:
    assert judge(called(text, name) + " Shutting down filesystem") is None


@pytest.mark.parametrize("filler", ["", "x" * 200, r"\x01" * 200])
def test_a_file_that_is_called_like_a_panic_is_none(filler: str) -> None:
    line = f"{PANIC}{filler}: {filled('sh')}: potentially unexpected fatal signal 11."
    assert judge(line[:MAX_LINE]) is None


def test_a_strange_name_does_not_hide_the_error_of_a_link() -> None:
    line = XID + f"145, pid=4, name={filled('')}, RLW_SRC_TRACK Fatal XC0 i1 Link 00 (0x01 0x02)"
    assert acts(judge(line))
