"""What ft_launcher is told: a node is bad only where the agent says that it must leave service."""

import json

import pytest

from steward.adapters.wire.verdict_line import FINE, UNKNOWN, Fine, Unknown, Verdict, bad_line, verdict_of
from steward.model.health import Severity
from steward.nvhcd.server import response_to


def bad(severity: Severity, text: str = "Xid 79 (GPU lost), 100%") -> Verdict:
    return verdict_of(bad_line(severity, "kernel_log.xid79", text))


@pytest.mark.parametrize("severity", [Severity.DEGRADED, Severity.FATAL])
def test_a_node_that_must_leave_service_is_unhealthy_and_check_and_text_are_told(severity: Severity) -> None:
    response = response_to(bad(severity))
    assert (response.success, response.exit_code) == (False, 1)
    assert json.loads(response.output) == {
        "fail_count": 1,
        "failed_checks": ["kernel_log.xid79"],
        "severity": severity.value,
        "text": "Xid 79 (GPU lost), 100%",
    }


HEALTHY = [
    (Fine(), "fine"),
    (Unknown(why="no agent"), "unknown: no agent"),
    (bad(Severity.SUSPECT, "one error"), "suspect: kernel_log.xid79: one error"),
    (bad(Severity.INFO, "a note"), "info: kernel_log.xid79: a note"),
]


@pytest.mark.parametrize(("verdict", "text"), HEALTHY)
def test_what_is_fine_unknown_or_only_suspected_is_healthy_and_the_reason_is_told(verdict: Verdict, text: str) -> None:
    response = response_to(verdict)
    assert (response.success, response.exit_code) == (True, 0)
    assert json.loads(response.output) == {"fail_count": 0, "failed_checks": [], "text": text}


def test_the_agents_answers_are_understood() -> None:
    assert verdict_of(FINE) == Fine()
    assert verdict_of(UNKNOWN) == Unknown(why="the agent knows nothing yet")


NONSENSE = [
    b"",
    b"steward/1 fine",
    b"steward/2 fine\n",
    b"steward/1 wait\n",
    b"steward/1 bad\n",
    b"steward/1 bad severity=awful check=a text=b\n",
    b"steward/1 bad severity=fatal check=\xff text=b\n",
    b"steward/1 bad severity=fatal check=a text=b\nsteward/1 fine\n",
]


@pytest.mark.parametrize("line", NONSENSE)
def test_an_answer_that_makes_no_sense_is_never_bad(line: bytes) -> None:
    assert verdict_of(line) == Unknown(why="the agent's answer is malformed")
