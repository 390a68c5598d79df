"""The text contract of a site's own checks."""

import pytest

from steward.checks.check import Facts, Judgement, Past
from steward.checks.known import limits_of
from steward.checks.limits import Limits
from steward.checks.site import is_name, site_check
from steward.model.health import Advice, Outcome, Severity
from steward.model.ids import NodeName
from steward.model.probe import Raw, RunProgram

FACTS = Facts(node=NodeName("n1"), limits=Limits())
CHECK = site_check("/etc/steward/checks.d/scratch", "scratch", Limits())


def judged(output: str, returncode: int = 0) -> Judgement:
    return CHECK.verdict((Raw(returncode=returncode, output=output),), FACTS, Past())


@pytest.mark.parametrize(
    ("word", "advice"), [("none", Advice.NONE), ("reboot", Advice.REBOOT), ("replace", Advice.REPLACE)]
)
def test_a_failed_result_drains_and_names_the_remedy(word: str, advice: Advice) -> None:
    verdict = judged(f"noise\nHEALTH_CHECK_RESULT:n1:Failed:{word}:scratch: it is gone\n")
    expected = Judgement(outcome=Outcome.FAILED, severity=Severity.DEGRADED, advice=advice, text="scratch: it is gone")
    assert verdict == expected


@pytest.mark.parametrize(
    ("why", "is_told"),
    [
        ("/tmp has only 1% free", True),
        ("DISK CRITICAL - free space: /dev/shm 0 MB (0%)", True),
        ("check_fs_iused:  /var/tmp inodes used 99%", True),
        ("/tmp is read-only", False),
        ("/tmpfs has only 1% free", False),
        ("/data/tmp has only 1% free", False),
        ("GPU 3 lost at 95 % of the test, see /tmp/log", False),
    ],
)
def test_a_full_folder_that_users_can_fill_is_told_and_takes_no_node_out(why: str, is_told: bool) -> None:
    for verdict in (judged(why, returncode=2), judged(f"HEALTH_CHECK_RESULT:n1:Failed:replace:{why}")):
        assert verdict.outcome is Outcome.FAILED
        assert why in verdict.text
        assert (verdict.severity is Severity.INFO) is is_told
        assert not is_told or verdict.advice is Advice.NONE


@pytest.mark.parametrize(("word", "outcome"), [("Passed", Outcome.PASSED), ("Skipped", Outcome.SKIPPED)])
def test_a_result_line_counts_whatever_the_exit_status(word: str, outcome: Outcome) -> None:
    assert judged(f"HEALTH_CHECK_RESULT:n1:{word}:none:fine", returncode=2).outcome is outcome


def test_the_last_result_line_counts() -> None:
    lines = "HEALTH_CHECK_RESULT:n1:Failed:none:a\nHEALTH_CHECK_RESULT:n1:Passed:none:b"
    assert judged(lines).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("status", "outcome", "severity"),
    [
        (0, Outcome.PASSED, Severity.INFO),
        (1, Outcome.FAILED, Severity.SUSPECT),
        (2, Outcome.FAILED, Severity.DEGRADED),
        (3, Outcome.UNKNOWN, Severity.INFO),
        (127, Outcome.UNKNOWN, Severity.INFO),
        (-9, Outcome.UNKNOWN, Severity.INFO),
    ],
)
def test_without_a_result_line_the_exit_status_is_a_nagios_plugins(
    status: int, outcome: Outcome, severity: Severity
) -> None:
    verdict = judged("DISK is low | perf=1\nmore", returncode=status)
    assert (verdict.outcome, verdict.severity) == (outcome, severity)
    assert "DISK is low" in verdict.text


@pytest.mark.parametrize("line", ["HEALTH_CHECK_RESULT:n1:Broken:none:x", "HEALTH_CHECK_RESULT:n1:Failed:explode:x"])
def test_a_line_with_a_word_that_is_not_in_the_contract_is_no_result(line: str) -> None:
    assert judged(line, returncode=0).outcome is Outcome.PASSED


def test_a_check_that_ran_out_of_time_says_unknown() -> None:
    assert CHECK.verdict((Raw(error="no end within 10 s"),), FACTS, Past()).outcome is Outcome.UNKNOWN


def test_the_file_itself_is_run_with_the_frameworks_variables_and_no_shell() -> None:
    site = limits_of({"site": {"timeout_s": 3, "scratch": {"params": "--min 5", "every_s": 300.0}}})
    check = site_check("/x/scratch", "scratch", site, results_dir="/r")
    (program,) = check.probes(FACTS)
    assert isinstance(program, RunProgram)
    assert (program.argv, program.timeout_s, program.stamp_env) == (("/x/scratch",), 3, "HC_TIMESTAMP")
    assert dict(program.env) == {"HC_TEST_PARAMS": "--min 5", "HC_RESULTS_DIR": "/r"}
    assert check.every_s == 300.0
    assert site_check("/x/other", "other", site).every_s is None


def test_of_results_about_several_hosts_those_of_this_node_count() -> None:
    ours, other = "HEALTH_CHECK_RESULT:N1.site.org:Failed:reboot:bad", "HEALTH_CHECK_RESULT:n2:Passed:none:fine"
    assert judged(f"{ours}\n{other}").outcome is Outcome.FAILED
    assert judged(f"{other}\n{ours}").outcome is Outcome.FAILED
    assert judged(other.replace("Passed", "Failed")).outcome is Outcome.FAILED, "its host name is not its node name"
    elsewhere = "HEALTH_CHECK_RESULT:n3:Failed:reboot:bad"
    assert judged(f"{other}\n{elsewhere}").outcome is Outcome.UNKNOWN


def test_output_that_was_cut_before_a_result_says_nothing_of_the_node() -> None:
    raw = Raw(returncode=2, output="x" * 65536, truncated=True)
    assert CHECK.verdict((raw,), FACTS, Past()).outcome is Outcome.UNKNOWN


def test_a_file_may_have_a_mode_of_its_own() -> None:
    limits = limits_of({"site": {"mode": "report", "scratch": {"mode": "drain"}}})
    assert site_check("/x/scratch", "scratch", limits).mode(limits) == "drain"
    assert site_check("/x/other", "other", limits).mode(limits) == "report"


@pytest.mark.parametrize("name", ["Scratch", "a b", "", "-x", "x" * 36, "../x", "a:b", "ü"])
def test_a_name_that_fits_no_mark_is_refused(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize("name", ["scratch", "10-gpu.sh", "a_b.c-d"])
def test_usual_file_names_are_taken(name: str) -> None:
    assert is_name(name)
