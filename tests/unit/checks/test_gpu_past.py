"""GPU checks that judge by several looks."""

import pytest

from steward.checks.check import Check, Past, Reading
from steward.checks.gpu import heat, links, present
from steward.model.health import Advice, Outcome, Severity
from steward.model.probe import Raw
from tests.builders.gpus import recorded, seen, with_fault

H200 = recorded("h200")
HUNG = Raw(hung="NVML hangs: no answer within 20 s")
NOW = 100_000.0


def past_of(check: Check, looks: list[Raw], every_s: float = 60.0) -> Past:
    """What the agent keeps of these looks, the last of them now."""
    assert check.readings is not None
    begin = NOW - every_s * (len(looks) - 1)
    taken = [Reading(at=begin + every_s * n, values=check.readings((raw,))) for n, raw in enumerate(looks)]
    return Past(now=NOW, readings=tuple(taken))


def judged(check: Check, looks: list[Raw], **limit: float) -> Outcome:
    return seen(check, looks[-1], past=past_of(check, looks), **limit).outcome


def test_a_hang_is_fatal_after_five_looks_in_a_row_and_not_before() -> None:
    assert judged(present.HANG, [H200, *[HUNG] * 4]) is Outcome.UNKNOWN
    looks = [H200, *[HUNG] * 5]
    told = seen(present.HANG, HUNG, past=past_of(present.HANG, looks))
    assert (told.outcome, told.severity, told.advice) == (Outcome.FAILED, Severity.FATAL, Advice.REBOOT)
    assert judged(present.HANG, [HUNG, HUNG, H200, HUNG, HUNG, HUNG]) is Outcome.UNKNOWN
    assert judged(present.HANG, [*[HUNG] * 5, H200]) is Outcome.PASSED
    assert judged(present.HANG, [HUNG, HUNG], gpu__smi_hang__misses=2) is Outcome.FAILED


@pytest.mark.parametrize(("check", "bits"), [(heat.THROTTLE, 0x8), (heat.THROTTLE, 0x40), (heat.BRAKE, 0x80)])
def test_a_gpu_that_slows_down_in_six_of_ten_looks_is_suspect(check: Check, bits: int) -> None:
    slow = with_fault(H200, clock_reasons=bits)
    assert judged(check, [slow] * 5 + [H200] * 5) is Outcome.PASSED
    told = seen(check, slow, past=past_of(check, [H200] * 4 + [slow] * 6))
    assert (told.outcome, told.severity, told.advice) == (Outcome.FAILED, Severity.SUSPECT, Advice.NONE)
    assert "6 of 10" in told.text


@pytest.mark.parametrize("bits", [0x1, 0x2, 0x4, 0x10, 0x100])
def test_idle_clocks_and_the_power_cap_are_no_slowdown(bits: int) -> None:
    looks = [with_fault(H200, clock_reasons=bits)] * 10
    assert judged(heat.THROTTLE, looks) is Outcome.PASSED
    assert judged(heat.BRAKE, looks) is Outcome.PASSED


def test_counters_are_judged_by_their_growth_not_by_their_height() -> None:
    high = with_fault(H200, pcie_replays=5000, nvlink_errors=900)
    more = with_fault(H200, pcie_replays=5101, nvlink_errors=905)
    assert judged(links.REPLAY, [high, high]) is Outcome.PASSED
    assert judged(links.REPLAY, [high, more]) is Outcome.FAILED
    assert judged(links.ERR, [high, high]) is Outcome.PASSED
    assert judged(links.ERR, [high, more]) is Outcome.FAILED
    assert judged(links.ERR, [high]) is Outcome.PASSED
