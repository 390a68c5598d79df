"""AWS Neuron devices by what their driver shows in sysfs."""

import pytest

from steward.checks import neuron
from steward.checks.check import Check
from steward.model.health import Advice, Outcome, Severity
from steward.model.probe import Raw
from tests.builders.looks import Looks
from tests.builders.sysfs import neuron_device, raw


@pytest.mark.parametrize("check", neuron.CHECKS, ids=lambda check: check.id)
def test_a_node_without_neuron_devices_is_skipped(check: Check) -> None:
    assert Looks(check).at(0, Raw()).outcome is Outcome.SKIPPED


@pytest.mark.parametrize("check", neuron.CHECKS, ids=lambda check: check.id)
def test_devices_without_a_fault_pass(check: Check) -> None:
    assert Looks(check).at(0, raw(neuron_device(0), neuron_device(1))).outcome is Outcome.PASSED


@pytest.mark.parametrize("check", [neuron.ECC, neuron.EXEC], ids=lambda check: check.id)
def test_a_driver_that_does_not_count_is_skipped_and_garbage_is_unknown(check: Check) -> None:
    device = neuron_device(0)
    silent = {path: text for path, text in device.items() if "/stats/" not in path}
    garbage = {path: "n/a" if "/stats/" in path else text for path, text in device.items()}
    assert Looks(check).at(0, raw(silent)).outcome is Outcome.SKIPPED
    assert Looks(check).at(0, raw(garbage)).outcome is Outcome.UNKNOWN


def test_a_device_that_vanished_is_fatal_and_replaced() -> None:
    verdict = Looks(neuron.COUNT).over(0, 60, raw(neuron_device(0), neuron_device(1)), raw(neuron_device(0)))
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, Severity.FATAL, Advice.REPLACE)
    assert verdict.hardware == "neuron1"


def test_fewer_devices_than_the_site_expects_are_fatal() -> None:
    verdict = Looks(neuron.COUNT, limit={"neuron.count.expected": 16}).at(0, raw(neuron_device(0)))
    assert (verdict.outcome, verdict.text) == (Outcome.FAILED, "1 Neuron devices, 16 expected")


@pytest.mark.parametrize(
    ("counter", "advice"),
    [
        ("sram_ecc_uncorrected", Advice.REPLACE),
        ("mem_ecc_uncorrected", Advice.REPLACE),
        ("mem_ecc_repairable_uncorrected", Advice.REBOOT),
    ],
)
def test_an_uncorrected_error_is_degraded(counter: str, advice: Advice) -> None:
    verdict = Looks(neuron.ECC).at(0, raw(neuron_device(0), neuron_device(1, errors={counter: 1})))
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, Severity.DEGRADED, advice)
    assert verdict.text == f"neuron1 {counter}: 1"
    assert verdict.hardware == "neuron1"


def test_hardware_errors_of_executions_are_told_and_never_act_for_a_users_runtime_counts_them() -> None:
    looks = Looks(neuron.EXEC)
    assert looks.at(0, raw(neuron_device(0, hw_errors=7))).outcome is Outcome.PASSED
    verdict = looks.at(60, raw(neuron_device(0, hw_errors=8)))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, Severity.SUSPECT)
    assert neuron.EXEC.mode(looks.facts.limits) == "report"
