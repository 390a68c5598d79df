"""DCGM's own word about its GPUs, where its service runs."""

import json
from pathlib import Path

import pytest

from steward.checks import dcgm
from steward.checks.check import Judgement
from steward.model.health import Advice, Outcome, Severity
from steward.model.mend import RESTARTABLE
from steward.model.probe import Raw
from tests.builders.looks import Looks

RECORDINGS = Path(__file__).parents[2] / "recordings" / "checks" / "dcgm"


def judged(output: str, returncode: int | None = 0) -> Judgement:
    return Looks(dcgm.DCGM).at(0, Raw(returncode=returncode, output=output))


def recorded(name: str) -> str:
    return (RECORDINGS / name).read_text()


def a_failure(system: str, health: str = "Failure") -> str:
    text = recorded("failure.json")
    assert '"Memory system"' in text
    body = json.loads(text.replace("Memory system", system))
    incident = body["body"]["GPU"]["children"]["0"]["children"]["Errors"]["children"]
    incident[system]["value"] = health
    return json.dumps(body)


def test_a_healthy_word_passes() -> None:
    assert judged(recorded("healthy.json")).outcome is Outcome.PASSED


@pytest.mark.parametrize("name", ["no-service.txt", "no-watches.txt"])
def test_a_service_that_is_not_there_or_does_not_watch_is_skipped(name: str) -> None:
    assert judged(recorded(name), 255).outcome is Outcome.SKIPPED


def test_a_node_without_dcgm_is_skipped() -> None:
    assert judged("", None).outcome is Outcome.SKIPPED


def test_a_program_that_is_not_found_is_skipped() -> None:
    assert judged("timeout: failed to run command 'dcgmi': No such file or directory", 127).outcome is Outcome.SKIPPED


@pytest.mark.parametrize("code", [124, 137])
def test_a_service_that_hangs_is_restarted_before_the_node_is_blamed(code: int) -> None:
    verdict = judged("", code)
    assert (verdict.outcome, verdict.advice) == (Outcome.FAILED, Advice.RESTART_SERVICE)
    assert verdict.hardware in RESTARTABLE


@pytest.mark.parametrize(
    ("system", "severity", "advice"),
    [
        ("Memory system", Severity.DEGRADED, Advice.RESET_GPU),
        ("NVLINK system", Severity.DEGRADED, Advice.RESET_GPU),
        ("Driver", Severity.DEGRADED, Advice.REBOOT),
        ("PCIe system", Severity.SUSPECT, Advice.REBOOT),
        ("Thermal system", Severity.SUSPECT, Advice.NONE),
    ],
)
def test_a_failure_weighs_what_its_system_weighs(system: str, severity: Severity, advice: Advice) -> None:
    verdict = judged(a_failure(system))
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, severity, advice)
    assert verdict.text.startswith(f"GPU 0 {system}: Failure")
    assert verdict.hardware == "GPU 0"


def test_a_warning_is_only_told() -> None:
    verdict = judged(a_failure("Memory system", "Warning"))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, Severity.INFO)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "{",
        "[]",
        '{"body": []}',
        '{"body": {"Overall Health": {"value": "Failure"}}}',
        '{"body": {"Overall Health": {"value": "Internal error"}}}',
        '{"body": {"Overall Health": "Healthy"}}',
        "Error: Unable to check health watches. Return: Internal DCGM error",
        "[" * 100_000,
    ],
)
def test_whatever_else_dcgm_says_is_unknown(output: str) -> None:
    assert judged(output, 1).outcome is Outcome.UNKNOWN


def test_an_internal_error_of_a_system_is_unknown() -> None:
    assert judged(a_failure("Memory system", "Internal error")).outcome is Outcome.UNKNOWN
