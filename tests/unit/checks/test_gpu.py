"""What each GPU check makes of a look at NVML."""

from pathlib import Path
from typing import Any

import pytest

from steward.checks import gpu
from steward.checks.check import Check, Judgement, Past
from steward.checks.gpu import heat, links, memory, present, upkeep
from steward.checks.limits import Limits
from steward.model.health import Advice, Outcome, Severity
from steward.model.probe import GpuProcess, Raw
from tests.builders.gpus import process, recorded, seen, with_fault

H200, V100 = recorded("h200"), recorded("v100")
SECOND = (H200.gpus or ())[1].uuid
DEGRADED, FATAL, SUSPECT, INFO = Severity.DEGRADED, Severity.FATAL, Severity.SUSPECT, Severity.INFO
PLAIN = [check for check in gpu.CHECKS if check not in (memory.LEFTOVER, links.MANAGER)]
"""Those that look at NVML alone."""


def names(checks: list[Check]) -> list[str]:
    return [check.id for check in checks]


@pytest.mark.parametrize("check", PLAIN, ids=names(PLAIN))
def test_healthy_gpus_pass_every_check(check: Check) -> None:
    told = seen(check, H200)
    assert told.outcome is (Outcome.SKIPPED if check is memory.RETIRED else Outcome.PASSED), told


@pytest.mark.parametrize("check", PLAIN, ids=names(PLAIN))
def test_healthy_gpus_of_an_older_kind_fail_no_check(check: Check) -> None:
    assert seen(check, V100).outcome in (Outcome.PASSED, Outcome.SKIPPED)


@pytest.mark.parametrize("check", PLAIN, ids=names(PLAIN))
def test_a_node_without_gpus_is_skipped(check: Check) -> None:
    assert seen(check, Raw(gpus=())) == Judgement(outcome=Outcome.SKIPPED, text="no NVIDIA GPU on this node")


@pytest.mark.parametrize("check", PLAIN, ids=names(PLAIN))
def test_an_nvml_that_hangs_or_fails_says_nothing_of_the_gpus(check: Check) -> None:
    assert seen(check, Raw(hung="NVML hangs: no answer within 20 s")).outcome is Outcome.UNKNOWN
    assert seen(check, Raw(error="NVML cannot be asked: Driver Not Loaded")).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("check", PLAIN[1:], ids=names(PLAIN[1:]))
def test_a_lost_gpu_is_told_once_and_the_others_are_still_judged(check: Check) -> None:
    assert seen(check, recorded("lost")).outcome in (Outcome.PASSED, Outcome.SKIPPED)


def test_a_lost_gpu_is_fatal_and_named() -> None:
    told = seen(present.PRESENT, recorded("lost"))
    assert (told.severity, told.advice, told.hardware) == (FATAL, Advice.REBOOT, SECOND)
    assert "GPU is lost" in told.text


FAULTS: list[tuple[Check, dict[str, Any], Severity, Advice]] = [
    (present.RECOVERY, {"recovery_action": 1}, FATAL, Advice.RESET_GPU),
    (present.RECOVERY, {"recovery_action": 2}, FATAL, Advice.REBOOT),
    (present.RECOVERY, {"recovery_action": 3}, SUSPECT, Advice.RESET_GPU),
    (present.RECOVERY, {"recovery_action": 4}, DEGRADED, Advice.RESET_GPU),
    (present.RECOVERY, {"recovery_action": 7}, FATAL, Advice.REBOOT),
    (present.RECOVERY, {"recovery_action": 99}, INFO, Advice.NONE),
    (memory.DBE_VOL, {"ecc_uncorrected": 1}, DEGRADED, Advice.RESET_GPU),
    (memory.SRAM_UE, {"sram_uncorrected": 1}, INFO, Advice.NONE),
    (memory.SRAM_UE, {"sram_uncorrected": 5}, DEGRADED, Advice.REPLACE),
    (memory.SRAM_UE, {"sram_limit_exceeded": True}, DEGRADED, Advice.REPLACE),
    (memory.CE, {"ecc_corrected_dram": 20_000_001}, SUSPECT, Advice.NONE),
    (memory.CE, {"ecc_corrected_sram": 10_001}, SUSPECT, Advice.NONE),
    (memory.PENDING, {"remap_pending": True}, SUSPECT, Advice.RESET_GPU),
    (memory.FAILED, {"remap_failed": True}, DEGRADED, Advice.REPLACE),
    (memory.COUNT, {"remapped_uncorrected": 11}, SUSPECT, Advice.NONE),
    (memory.COUNT, {"remapped_uncorrected": 513}, DEGRADED, Advice.REPLACE),
    (memory.RETIRED, {"retired_pages": 11}, SUSPECT, Advice.NONE),
    (memory.RETIRED, {"retire_pending": True}, SUSPECT, Advice.REBOOT),
    (heat.TEMP, {"margin_c": 0}, SUSPECT, Advice.NONE),
    (heat.TEMP, {"margin_c": None, "temperature_c": 92, "slowdown_c": 92}, SUSPECT, Advice.NONE),
    (links.WIDTH, {"pcie_width": 8}, DEGRADED, Advice.REBOOT),
    (links.DOWN, {"nvlinks": (True,) * 17 + (False,)}, DEGRADED, Advice.RESET_GPU),
    (links.DOWN, {"nvlinks": (False,) * 18}, DEGRADED, Advice.RESET_GPU),
    (links.FABRIC, {"fabric_state": 2}, DEGRADED, Advice.REBOOT),
    (links.FABRIC, {"fabric_status": 999}, DEGRADED, Advice.REBOOT),
    (links.FABRIC, {"fabric_health": 0x1}, DEGRADED, Advice.REBOOT),
    (links.FABRIC, {"fabric_health": 0x10}, DEGRADED, Advice.REBOOT),
    (links.FABRIC, {"fabric_health": 0x500}, DEGRADED, Advice.REBOOT),
    (upkeep.PERSIST, {"persistence": False}, INFO, Advice.NONE),
    (upkeep.INFOROM, {"inforom_error": "Corrupted infoROM"}, SUSPECT, Advice.REPLACE),
    (upkeep.VBIOS, {"vbios": "96.00.61.00.01"}, INFO, Advice.NONE),
]


@pytest.mark.parametrize(
    ("check", "fault", "severity", "advice"), FAULTS, ids=[f"{each[0].id}-{each[1]}" for each in FAULTS]
)
def test_a_fault_of_one_gpu_has_its_severity_and_remedy_and_names_the_gpu(
    check: Check, fault: dict[str, Any], severity: Severity, advice: Advice
) -> None:
    told = seen(check, with_fault(H200, **fault))
    assert (told.outcome, told.severity, told.advice) == (Outcome.FAILED, severity, advice)
    if check is not upkeep.VBIOS:
        assert told.hardware == SECOND
        assert told.text.startswith(f"GPU 1 {SECOND}: ")


@pytest.mark.parametrize("mask", [0x0, 0x1AA, 0xAA])
def test_a_fabric_health_mask_that_is_not_zero_may_be_a_healthy_one(mask: int) -> None:
    assert seen(links.FABRIC, with_fault(H200, fabric_health=mask)).outcome is Outcome.PASSED


def test_the_worst_of_several_faults_decides_and_all_are_named() -> None:
    both = with_fault(with_fault(H200, 0, recovery_action=3), 1, recovery_action=2)
    told = seen(present.RECOVERY, both)
    assert (told.severity, told.advice, told.hardware) == (FATAL, Advice.REBOOT, SECOND)
    assert told.text.index("GPU 1") < told.text.index("GPU 0")


def test_a_site_says_its_own_numbers() -> None:
    worn = with_fault(H200, remapped_uncorrected=11)
    assert seen(memory.COUNT, worn, gpu__remap__count__suspect=20).outcome is Outcome.PASSED
    assert seen(links.DOWN, V100, gpu__nvlink__down__links=6).outcome is Outcome.SKIPPED
    assert seen(links.DOWN, with_fault(H200, nvlinks=(True,) * 18), gpu__nvlink__down__links=19).is_bad


def test_links_that_no_gpu_of_the_node_uses_are_no_fault() -> None:
    unused = with_fault(with_fault(H200, 0, nvlinks=(False,) * 18), 1, nvlinks=(False,) * 18)
    assert seen(links.DOWN, unused).outcome is Outcome.SKIPPED


def test_a_board_with_bridges_may_have_as_many_links_as_it_likes_and_a_soldered_one_not() -> None:
    twelve = (True,) * 12 + (False,) * 6
    soldered = with_fault(with_fault(H200, 0, nvlinks=twelve), 1, nvlinks=twelve)
    assert seen(links.DOWN, soldered).is_bad
    bridged = with_fault(with_fault(soldered, 0, name="NVIDIA H200 NVL"), 1, name="NVIDIA H200 NVL")
    assert seen(links.DOWN, bridged).outcome is Outcome.PASSED


def test_gpus_that_vanished_in_this_boot_are_fatal_but_an_unloaded_driver_is_not() -> None:
    past = Past(now=1000.0, notes={"gpus": (2.0,)})
    fewer = Raw(gpus=(H200.gpus or ())[:1])
    assert seen(present.PRESENT, fewer, past=past).severity is FATAL
    assert seen(present.PRESENT, Raw(gpus=()), past=past).severity is DEGRADED
    assert seen(present.PRESENT, fewer).outcome is Outcome.PASSED


SWITCHES = Raw(files={"/proc/driver/nvidia-nvswitch/devices/0000:84:00.0": ""})


def test_the_fabric_manager_must_run_where_switches_are_and_nowhere_else() -> None:
    others, running = Raw(), Raw(processes=(process(8, "nv-fabricmanage"),))
    assert seen(links.MANAGER, Raw(), others).outcome is Outcome.SKIPPED
    assert seen(links.MANAGER, SWITCHES, running).outcome is Outcome.PASSED
    told = seen(links.MANAGER, SWITCHES, others)
    assert (told.severity, told.advice) == (DEGRADED, Advice.RESTART_SERVICE)


def test_what_a_job_left_on_a_gpu_is_told_when_no_job_is_there() -> None:
    used = with_fault(H200, processes=(GpuProcess(pid=4711, mib=100),))
    idle = (process(1, "systemd"), process(50, "slurmstepd"), process(4711, "python", uid=1000))
    told = seen(memory.LEFTOVER, used, Raw(processes=idle))
    assert (told.outcome, told.severity, told.hardware) == (Outcome.FAILED, SUSPECT, SECOND)
    assert "4711 (python, uid 1000)" in told.text
    busy = (*idle, process(51, "bash", parent=50, uid=1000))
    assert seen(memory.LEFTOVER, used, Raw(processes=busy)).outcome is Outcome.PASSED
    users = (*idle, process(60, "slurmstepd", uid=1000), process(61, "bash", parent=60, uid=1000))
    assert seen(memory.LEFTOVER, used, Raw(processes=users)).is_bad, "a user calls his process what he likes"


def test_services_of_root_may_use_a_gpu_and_leaked_memory_is_told() -> None:
    root = (process(1, "systemd"), process(60, "nv-hostengine"))
    served = with_fault(H200, processes=(GpuProcess(pid=60, mib=500),), memory_used_mib=500)
    assert seen(memory.LEFTOVER, served, Raw(processes=root)).outcome is Outcome.PASSED
    leaked = with_fault(H200, memory_used_mib=500)
    assert "500 MiB" in seen(memory.LEFTOVER, leaked, Raw(processes=root)).text
    assert seen(memory.LEFTOVER, leaked, Raw()).outcome is Outcome.SKIPPED


def test_every_gpu_check_and_its_thresholds_are_on_the_page_of_checks() -> None:
    page = (Path(__file__).parents[3] / "docs" / "checks.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `gpu")}
    for check in gpu.CHECKS:
        row = rows[check.id]
        defaults = {one.name: "none" if one.default is None else f"{one.default:.0f}" for one in check.thresholds}
        told = [f"`{name}` ({default}" for name, default in defaults.items()]
        assert [words for words in told if words not in row] == []
        assert row.endswith("| drain |" if check.mode(Limits()) == "drain" else "| report |")
