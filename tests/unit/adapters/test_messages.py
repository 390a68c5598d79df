"""What agent and head tell each other."""

import pytest

from steward.adapters.wire.frames import Malformed, pack
from steward.adapters.wire.job_messages import ask_frame, ask_of
from steward.adapters.wire.messages import MAX_FINDINGS, answer_frame, answer_of, report_frame, report_of
from steward.model.ask import Answer, Ask, AskKind
from steward.model.health import Finding, Outcome, Report, Severity
from steward.model.ids import AskId, JobId, NodeName
from steward.model.resume_mode import ResumeMode

ASK = Ask(
    id=AskId("n1-b-1"),
    kind=AskKind.STEP,
    job=JobId(7),
    step="0",
    node=NodeName("n1"),
    uid=1000,
    mode=ResumeMode.parse("any:2"),
    attempt=1,
    restart=0,
    status=139,
    at=12.5,
)


def test_an_ask_is_the_same_on_the_other_side_but_for_the_node_which_the_connection_tells() -> None:
    assert ask_of(ask_frame(ASK), NodeName("n1")) == ASK


def test_an_answer_is_the_same_on_the_other_side() -> None:
    names = frozenset({NodeName("n2"), NodeName("n3")})
    assert answer_of(answer_frame(AskId("a"), Answer.RETRY, names)) == (AskId("a"), Answer.RETRY, names)


@pytest.mark.parametrize(
    "wrong",
    [
        {"uid": -1},
        {"uid": True},
        {"job": 0},
        {"status": 65536},
        {"mode": "2"},
        {"kind": "x"},
        {"id": "a\nb"},
        {"at": "1"},
    ],
)
def test_a_field_out_of_its_range_is_malformed(wrong: dict[str, object]) -> None:
    with pytest.raises(Malformed):
        ask_of({**ask_frame(ASK), **wrong}, NodeName("n1"))


def test_quiet_results_are_only_named() -> None:
    passed = Finding(check="disk", outcome=Outcome.PASSED, text="all of it is free")
    skipped = Finding(check="gpu", outcome=Outcome.SKIPPED, text="no GPU")
    event = Finding(check="kernel_log.xid31", outcome=Outcome.PASSED, text="Xid 31", event=True)
    told = report_of(report_frame([passed, skipped, event], "r1", hardware=["GPU-1"], versions={"site.a": "0af1"}))
    assert (set(told.passed), set(told.skipped), told.findings) == ({"disk"}, {"gpu"}, (event,))
    assert (told.hardware, told.versions, told.checked) == (("GPU-1",), {"site.a": "0af1"}, "r1")


def test_a_report_says_since_when_each_check_passes() -> None:
    found = [Finding(check=check, outcome=Outcome.PASSED, at=at) for check, at in (("b", 7.9), ("a", 5.0), ("c", 5.0))]
    frame = report_frame(found, None)
    assert report_of(frame).passed_since == (5, 7, 5), "by name"
    assert report_of({**frame, "passed_since": []}).passed_since == (), "an agent that does not tell"
    for wrong in ([1], [-1, 1, 1], ["1", 1, 1]):
        with pytest.raises(Malformed, match="passed_since"):
            report_of({**frame, "passed_since": wrong})


def test_nodes_that_say_the_same_share_what_is_kept_of_it() -> None:
    def said(*checks: str) -> Report:
        findings = [Finding(check=check, outcome=Outcome.PASSED) for check in checks]
        return report_of(report_frame(findings, None, versions={"site.a": "0af1"}))

    one, same, other = said("disk", "clock"), said("clock", "disk"), said("disk")
    assert one.passed is same.passed
    assert one.versions is same.versions
    assert other.passed == {"disk"}


def test_of_too_many_findings_the_worst_are_told_and_they_fit_a_frame() -> None:
    text = "\\" * 1000
    fine = [Finding(check=f"a{n:02}", outcome=Outcome.UNKNOWN, text=text) for n in range(60)]
    bad = Finding(check="z", outcome=Outcome.FAILED, severity=Severity.DEGRADED, text=text)
    fatal = Finding(check="zz", outcome=Outcome.FAILED, severity=Severity.FATAL, text=text)
    frame = report_frame([*fine, bad, fatal], None)
    told = report_of(frame)
    assert [finding.check for finding in told.findings[:3]] == ["zz", "z", "a00"]
    assert len(told.findings) == MAX_FINDINGS
    assert told.checked is None
    assert pack(frame)
