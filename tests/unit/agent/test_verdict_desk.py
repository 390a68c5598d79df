"""What an agent tells Slurm's hooks of its node."""

from typing import Any

import pytest

from steward.adapters.wire.shimline import parse_request
from steward.adapters.wire.verdict_line import VerdictLine, bad_line
from steward.agent.reception import VerdictDesk
from steward.checks.known import limits_of, mode_of
from steward.checks.limits import Limits
from steward.model.health import Finding, Outcome, Scope, Severity

FINE = Finding(check="disk", outcome=Outcome.PASSED)
DISK = Finding(check="disk", outcome=Outcome.FAILED, severity=Severity.DEGRADED, text="/tmp is full")


def bad(check: str = "kernel_log.xid79", severity: Severity = Severity.FATAL, **more: Any) -> Finding:
    return Finding(check=check, outcome=Outcome.FAILED, severity=severity, text="Xid 79", **more)


def told(*findings: Finding, limits: Limits | None = None, known: bool = True) -> bytes:
    return VerdictDesk(findings=lambda: findings, known=lambda: known, mode=mode_of(limits or Limits())).serve(peer=0)


def test_the_question_is_one_word() -> None:
    assert parse_request(b"steward/1 verdict\n") == VerdictLine()


def test_a_node_without_a_failure_is_fine() -> None:
    assert told(FINE, Finding(check="clock", outcome=Outcome.UNKNOWN)) == b"steward/1 fine\n"


def test_a_node_of_which_nothing_is_known_yet_is_unknown() -> None:
    assert told() == told(Finding(check="disk", outcome=Outcome.UNKNOWN)) == b"steward/1 unknown\n"


def test_a_node_of_which_one_check_has_told_and_others_not_yet_is_unknown_but_a_failure_is_told_at_once() -> None:
    assert told(FINE, known=False) == b"steward/1 unknown\n"
    assert told(FINE, bad(), known=False).startswith(b"steward/1 bad ")


def test_the_worst_failure_is_told() -> None:
    assert told(FINE, DISK, bad()) == b"steward/1 bad severity=fatal check=kernel_log.xid79 text=Xid%2079\n"
    assert told(DISK) == b"steward/1 bad severity=degraded check=disk text=/tmp%20is%20full\n"


@pytest.mark.parametrize(
    ("finding", "limits"),
    [
        (bad(scope=Scope.CLUSTER), Limits()),
        (bad(), limits_of({"kernel_log.mode": "report"})),
        (bad(), limits_of({"kernel_log.xid79.mode": "report"})),
        (bad("site.scratch"), Limits()),
        (bad("site.scratch"), limits_of({"site.mode": "drain", "site.scratch.mode": "report"})),
    ],
    ids=["shared", "table", "entry", "site", "file"],
)
def test_what_the_head_would_not_act_on_is_told_to_nobody(finding: Finding, limits: Limits) -> None:
    assert told(FINE, finding, limits=limits) == b"steward/1 fine\n"


def test_hostile_text_stays_one_word_of_one_line() -> None:
    line = bad_line(Severity.FATAL, "site.x", "a b\n100%\x1b[31m ü" + "x" * 5000)
    assert line.startswith(b"steward/1 bad severity=fatal check=site.x text=a%20b?100%25?[31m%20?xxx")
    assert len(line) < 1000
    assert line.count(b" ") == 4
