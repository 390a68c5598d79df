"""What kernel-log lines say of their node. The corpus has a line and a look-alike for each signature."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.checks.kernel_log import FAMILY, MAX_LINE, SIGNATURES, THRESHOLDS, judge, with_limits
from steward.checks.kernel_log.signatures import Sign
from steward.checks.limits import Limits
from steward.checks.xid import APPLICATION, FABRIC, HARDWARE, NOISE, PORT, STALLED
from steward.model.health import Advice, Outcome, Scope, Severity
from tests.builders.kernel_corpus import BAD, FORGED, REPORTED, SHARED, SILENT, XID

STARTS = sorted({line[:at] for line, *_ in BAD for at in (12, 40)} | {line[:40] for line in REPORTED})


def said(line: str) -> Sign:
    sign = judge(line)
    assert sign is not None
    return sign


@pytest.mark.parametrize(("line", "name", "severity", "advice"), BAD, ids=[line[:60] for line, *_ in BAD])
def test_a_line_about_broken_hardware_is_a_failure(line: str, name: str, severity: Severity, advice: Advice) -> None:
    sign = said(line)
    assert sign.check == f"kernel_log.{name}"
    assert (sign.verdict.outcome, sign.verdict.severity, sign.verdict.advice) == (Outcome.FAILED, severity, advice)
    assert line.strip()[:40] in sign.verdict.text
    assert sign.verdict.scope is Scope.NODE


@pytest.mark.parametrize(("line", "name"), SHARED)
def test_a_line_about_what_nodes_share_is_the_clusters_trouble(line: str, name: str) -> None:
    verdict = said(line).verdict
    assert said(line).check == f"kernel_log.{name}"
    assert (verdict.outcome, verdict.severity, verdict.scope) == (Outcome.FAILED, Severity.SUSPECT, Scope.CLUSTER)


@pytest.mark.parametrize("line", REPORTED)
def test_a_jobs_own_fault_and_unknown_codes_are_reported_and_never_act(line: str) -> None:
    verdict = said(line).verdict
    assert (verdict.outcome, verdict.severity) == (Outcome.PASSED, Severity.INFO)


@pytest.mark.parametrize("line", SILENT)
def test_look_alikes_say_nothing(line: str) -> None:
    assert judge(line) is None


@pytest.mark.parametrize("line", FORGED)
def test_a_name_that_a_user_gave_his_process_or_file_never_acts(line: str) -> None:
    sign = judge(line)
    assert sign is None or not sign.verdict.is_bad


def test_every_signature_has_a_line_in_the_corpus() -> None:
    lines = [line for line, *_ in BAD] + [line for line, _ in SHARED] + REPORTED
    unseen = [s.pattern.pattern for s in SIGNATURES if not any(s.pattern.match(line) for line in lines)]
    assert unseen == []


def test_no_code_is_in_two_lists() -> None:
    assert set(HARDWARE) & APPLICATION == set()
    switch = [NOISE, PORT, FABRIC, frozenset(STALLED)]
    assert sum(map(len, switch)) == len(frozenset().union(*switch))


def test_the_job_whose_memory_ran_out_is_named() -> None:
    line = next(line for line in REPORTED if line.startswith("oom-kill"))
    assert said(line).verdict.text.startswith("job 5 ran over its memory limit")


def test_a_site_may_say_how_often_is_too_often() -> None:
    sign = with_limits(
        said("nvme nvme1: I/O 12 QID 3 timeout, aborting"), Limits(values={"kernel_log.nvme_timeout.times": 7.0})
    )
    assert sign.repeat is not None
    assert sign.repeat.times == 7
    assert "kernel_log.nvme_timeout.times" in {one.name for one in THRESHOLDS}


def test_hostile_bytes_in_a_line_are_made_printable_and_short() -> None:
    text = said(XID + "79, name=\x1b[31mrm -rf\x00\u202e" + "x" * 900).verdict.text
    assert text.isprintable()
    assert text.isascii()
    assert len(text) < 300


@given(st.sampled_from(["", *STARTS]), st.text(max_size=300))
def test_no_text_makes_it_crash(start: str, rest: str) -> None:
    sign = judge(start + rest)
    assert sign is None or (len(sign.check) <= 40 and sign.check.startswith(FAMILY) and len(sign.subject) <= 64)


@pytest.mark.parametrize("filler", ["a", " ", "to (", "x: ", "0", "Fatal ", "0000:05:00.0: ", "/job_1", "UE ", "I/O "])
def test_a_long_hostile_line_costs_no_more_than_a_few_milliseconds(filler: str) -> None:
    """A pattern that tried every way to divide the line would need seconds."""
    lines = [(start + filler * MAX_LINE)[: MAX_LINE - 1] for start in STARTS]
    began = time.thread_time()
    for line in lines:
        judge(line)
    assert (time.thread_time() - began) / len(lines) < 0.004


def test_a_line_that_may_have_been_cut_says_nothing() -> None:
    line = XID + "79, GPU has fallen off the bus." + " " * MAX_LINE
    assert judge(line[: MAX_LINE - 1]) is not None
    assert judge(line[:MAX_LINE]) is None
    assert judge("EDAC MC0: " + "x" * 10_000_000) is None


def test_the_page_names_every_signature_and_every_code_that_acts() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "checks.md").read_text()
    section = page[page.index("## Kernel log") : page.index("## Site checks and NHC")]
    names = {one.name for one in SIGNATURES} - {"xid", "sxid"}
    assert sorted(name for name in names if f"`{name}`" not in section) == []
    table = section[section.index("| Codes |") :]
    assert sorted(code for code in HARDWARE if not re.search(rf"\b{code}\b", table)) == []
    jobs = section[section.index("Most Xids") : section.index("| Codes |")]
    spans = [(int(a), int(b or a)) for a, b in re.findall(r"(\d+)(?:-(\d+))?", jobs.partition("never drain")[0])]
    assert {code for first, last in spans for code in range(first, last + 1)} >= APPLICATION
