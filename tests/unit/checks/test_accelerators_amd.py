"""AMD GPUs by what their driver shows in sysfs."""

import pytest

from steward.checks import amd
from steward.checks.check import Check
from steward.model.health import Advice, Outcome, Severity
from steward.model.probe import Raw
from tests.builders.looks import Looks
from tests.builders.sysfs import amd_gpu, kfd_cpu, raw

ECC, BADPAGES, XGMI, TEMP = amd.ECC, amd.BADPAGES, amd.XGMI, amd.TEMP
EVERY = amd.CHECKS


@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.id)
def test_a_node_without_amd_gpus_is_skipped_also_where_the_driver_lists_its_processors(check: Check) -> None:
    assert Looks(check).at(0, Raw()).outcome is Outcome.SKIPPED
    assert Looks(check).at(0, raw(kfd_cpu())).outcome is Outcome.SKIPPED


@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.id)
def test_gpus_without_a_fault_pass(check: Check) -> None:
    assert Looks(check).at(0, raw(kfd_cpu(), amd_gpu(0), amd_gpu(1))).outcome is Outcome.PASSED


@pytest.mark.parametrize("check", [ECC, BADPAGES, XGMI, TEMP], ids=lambda check: check.id)
def test_a_driver_that_tells_nothing_of_errors_is_skipped(check: Check) -> None:
    silent = {path: text for path, text in amd_gpu(0).items() if "/device/" not in path}
    assert Looks(check).at(0, raw(silent)).outcome is Outcome.SKIPPED


def test_error_counts_that_cannot_be_read_are_unknown() -> None:
    garbage = {path: "\x00 ue ce" if path.endswith("err_count") else text for path, text in amd_gpu(0).items()}
    assert Looks(ECC).at(0, Raw(files=dict(garbage))).outcome is Outcome.UNKNOWN


def test_a_gpu_that_vanished_is_fatal_also_after_a_restart_of_the_agent() -> None:
    looks = Looks(amd.COUNT)
    looks.at(0, raw(amd_gpu(0), amd_gpu(1)))
    restarted = Looks(amd.COUNT)
    restarted.notes = looks.notes
    verdict = restarted.at(60, raw(amd_gpu(1)))
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, Severity.FATAL, Advice.REBOOT)
    assert verdict.text.startswith("1 of 2 AMD GPUs vanished: ")


def test_fewer_gpus_than_the_site_expects_are_fatal() -> None:
    verdict = Looks(amd.COUNT, limit={"amd.count.expected": 8}).at(0, raw(amd_gpu(0)))
    assert (verdict.outcome, verdict.text) == (Outcome.FAILED, "1 AMD GPUs, 8 expected")


def test_five_uncorrectable_errors_are_borne_and_the_sixth_is_not() -> None:
    assert Looks(ECC).at(0, raw(amd_gpu(0, errors={"umc": 3, "gfx": 2}))).outcome is Outcome.PASSED
    verdict = Looks(ECC).at(0, raw(amd_gpu(0, errors={"umc": 3, "gfx": 3})))
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, Severity.DEGRADED, Advice.REBOOT)


@pytest.mark.parametrize("letter", ["P", "F"])
def test_a_bad_page_that_is_still_in_use_asks_for_a_reboot(letter: str) -> None:
    verdict = Looks(BADPAGES).at(0, raw(amd_gpu(0, pages="RR" + letter)))
    assert (verdict.outcome, verdict.advice) == (Outcome.FAILED, Advice.REBOOT)


def test_pages_that_were_out_of_use_before_are_no_fault_and_new_ones_are() -> None:
    looks = Looks(BADPAGES)
    assert looks.over(0, 60, raw(amd_gpu(0, pages="RR")), raw(amd_gpu(0, pages="RR"))).outcome is Outcome.PASSED
    assert looks.at(120, raw(amd_gpu(0, pages="RRR"))).text.startswith("new bad pages in this boot: card0")


def test_errors_of_links_between_gpus_ask_for_a_reset_and_are_no_memory_errors() -> None:
    node = raw(amd_gpu(0, errors={"xgmi_wafl": 9}))
    assert Looks(XGMI).at(0, node).advice is Advice.RESET_GPU
    assert Looks(ECC).at(0, node).outcome is Outcome.PASSED


def test_a_gpu_at_its_critical_temperature_is_a_suspicion_that_is_only_told() -> None:
    looks = Looks(TEMP)
    assert looks.at(0, raw(amd_gpu(0, junction_c=104))).outcome is Outcome.PASSED
    verdict = looks.at(60, raw(amd_gpu(0, junction_c=105)))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, Severity.SUSPECT)
    assert "junction 105 C" in verdict.text
    assert TEMP.mode(looks.facts.limits) == "report"
