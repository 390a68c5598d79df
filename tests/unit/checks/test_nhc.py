"""NHC's own words, as it printed them (1.4.3), become findings; nhc itself is told to mark nothing."""

import pytest

from steward.checks.check import Facts, Judgement, Past
from steward.checks.known import limits_of
from steward.checks.site import nhc_check
from steward.model.health import Advice, Outcome, Severity
from steward.model.ids import NodeName
from steward.model.probe import Raw

CONF = "/etc/nhc/nhc.conf"
LIMITS = limits_of({"site.nhc": CONF, "site.timeout_s": 30.0, "site.nhc.mode": "drain"})
FACTS = Facts(node=NodeName("n1"), limits=LIMITS)
NOT_MOUNTED = "ERROR:  nhc-steward:  Health check failed:  check_fs_mount:  /scratch not mounted\n"
HUNG = 'ERROR:  nhc-steward:  Health check failed:  Script timed out while executing "check_ps_service slurmd".\n'


def judged(returncode: int, output: str, conf: str | None = "* || true\n") -> Judgement:
    raws = (Raw(files={CONF: conf}), Raw(returncode=returncode, output=output))
    return nhc_check(LIMITS).verdict(raws, FACTS, Past())


def test_what_nhc_finds_is_the_findings_text() -> None:
    expected = Judgement(
        outcome=Outcome.FAILED,
        severity=Severity.DEGRADED,
        advice=Advice.NONE,
        text="nhc: check_fs_mount:  /scratch not mounted",
    )
    assert judged(1, f"noise\n{NOT_MOUNTED}") == expected


def test_a_full_folder_that_users_can_fill_is_told_and_takes_no_node_out() -> None:
    said = "ERROR:  nhc-steward:  Health check failed:  check_fs_free:  /tmp has only 12 kB free (0%), 5% is minimum\n"
    verdict = judged(1, said)
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, Severity.INFO, Advice.NONE)
    assert "/tmp has only 12 kB free" in verdict.text


def test_nhc_that_finds_nothing_passes() -> None:
    assert judged(0, "").outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("status", "output"),
    [
        (142, HUNG),
        (143, ""),
        (10, "nhc:  ERROR:  Invalid option:  -z"),
        (145, "ERROR:  Prior NHC instance is still running (PID #7); is it hung?"),
        (127, "bash: nhc: not found"),
        (-9, NOT_MOUNTED[:9]),
    ],
)
def test_nhc_that_hangs_or_breaks_says_nothing_of_the_node(status: int, output: str) -> None:
    assert judged(status, output).outcome is Outcome.UNKNOWN


def test_a_configuration_that_is_not_there_is_said_so() -> None:
    """nhc itself takes it for a node without faults."""
    verdict = judged(0, "", conf=None)
    assert (verdict.outcome, verdict.text) == (Outcome.UNKNOWN, f"{CONF}: no such file (checks.site.nhc)")


def test_a_check_that_ends_nhc_without_a_word_found_fault() -> None:
    """`* || exit 3`, or a site's check that ends the shell."""
    verdict = judged(3, "")
    assert (verdict.outcome, verdict.text) == (Outcome.FAILED, "nhc ended with status 3 and gave no reason")


def test_it_is_a_site_check_with_a_mode_and_a_period() -> None:
    check = nhc_check(LIMITS)
    assert (check.id, check.mode(LIMITS), check.every_s) == ("site.nhc", "drain", 60.0)
