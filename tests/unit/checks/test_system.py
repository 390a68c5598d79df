"""Each check of the operating system on what its probes brought back from a good node and from broken ones."""

import dataclasses
from pathlib import Path

import pytest

from steward.checks import ACCELERATORS, CHECKS, gpu, kernel, mounts, services
from steward.checks.check import Facts, Judgement, Past, Reading
from steward.checks.fabric import FABRIC
from steward.checks.known import limits_of
from steward.checks.limits import Limits
from steward.model.health import Advice, Outcome, Scope, Severity
from steward.model.ids import NodeName
from steward.model.probe import Raw, RunProgram, TouchMounts
from tests.builders.recorded import NOW, recorded

RECORDINGS = Path(__file__).parents[2] / "recordings" / "checks"
ELSEWHERE = (*FABRIC, *ACCELERATORS, *gpu.CHECKS)
SYSTEM = tuple(check for check in CHECKS if (RECORDINGS / check.id).is_dir() and check not in ELSEWHERE)
BY_ID = {check.id: check for check in SYSTEM}
NAMED = limits_of({"os.modules.required": ("nvidia-peermem", "ib_uverbs")})
FACTS = Facts(node=NodeName("n1"), limits=NAMED, slurm_conf="/etc/slurm/slurm.conf")

D, S, INFO = Severity.DEGRADED, Severity.SUSPECT, Severity.INFO
BAD: dict[str, tuple[Severity, Advice, str]] = {
    "cpu.topology/lost-core": (D, Advice.REBOOT, "63 CPUs online of 128, Slurm's CPUTot is 64"),
    "cpu.clocksource/lost-tsc": (S, Advice.REBOOT, "the clock source is hpet: the TSC was lost"),
    "cpu.governor/lowest": (INFO, Advice.NONE, "CPUs stay at their lowest speed: powersave on 4 (acpi-cpufreq)"),
    "cpu.governor/differ": (INFO, Advice.NONE, "CPUs differ: performance on 3, powersave on 1"),
    "mem.free/used-up": (INFO, Advice.NONE, "90 MiB available"),
    "mem.edac/uncorrected": (D, Advice.REPLACE, "errors that could not be corrected since boot: mc1 1"),
    "clock.sync/lost": (INFO, Advice.NONE, "chronyd runs, but the clock is not synchronised"),
    "os.zombie/many": (INFO, Advice.NONE, "101 zombies, 101 of them of process 700 (limit 100)"),
    "os.pids/used-up": (INFO, Advice.NONE, "28400 processes and threads of 32768 (87 %)"),
    "os.files/used-up": (INFO, Advice.NONE, "812000 file handles of 1000000 (81 %)"),
    "mem.frag/fragmented": (INFO, Advice.NONE, "no free block of 2 MiB on NUMA node 0"),
    "os.load/high": (INFO, Advice.NONE, "load 140.50 on 64 CPUs in 15 min"),
    "os.modules/missing": (D, Advice.REBOOT, "not loaded: nvidia_peermem, ib_uverbs"),
    "gpu.libraries/empty": (
        D,
        Advice.REPLACE,
        "empty or no library: /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1, "
        "/usr/lib/x86_64-linux-gnu/libnvidia-ptxjitcompiler.so.1",
    ),
    "gpu.peermem/missing": (INFO, Advice.NONE, "nvidia_peermem is not loaded: no GPUDirect RDMA"),
    "efa.memlock/low": (INFO, Advice.NONE, "slurmd's LimitMEMLOCK is 8 MiB: set it to infinity for EFA"),
    "os.reboot_required/wanted": (
        INFO,
        Advice.NONE,
        "a reboot is pending for libc6, linux-image-6.1.0-26-amd64",
    ),
    "os.reboot_required/scheduled": (INFO, Advice.NONE, "a shutdown or reboot is scheduled in 10 min"),
    "disk.raid/lost": (D, Advice.REPLACE, "lost a disk: md0"),
    "disk.raid/rebuilds": (INFO, Advice.NONE, "lost a disk and rebuilds: md0"),
    "disk.nvme/dead": (D, Advice.REPLACE, "nvme1: controller is dead"),
    "disk.nvme/unreliable": (D, Advice.REPLACE, "nvme1: spare below its threshold, unreliable"),
    "disk.nvme/newer-tool": (D, Advice.REPLACE, "nvme0: read-only"),
    "disk.nvme/hot": (INFO, Advice.NONE, "too hot: nvme0"),
    "disk.smart/fails": (D, Advice.REPLACE, "the disk's own health report (SMART) says that it fails: sdb"),
    "svc.munge/dead": (D, Advice.RESTART_SERVICE, "munge encode: Failed to access"),
    "svc.munge/refused": (D, Advice.RESTART_SERVICE, "munge encode: Failed to connect"),
    "svc.units/failed": (D, Advice.RESTART_SERVICE, "failed: chrony.service"),
    "slurm.spool/full": (D, Advice.NONE, "SlurmdSpoolDir /var/spool/slurmd: 95 % in use"),
    "slurm.spool_ro/read-only": (D, Advice.REBOOT, "SlurmdSpoolDir /var/spool/slurmd is read-only"),
    "slurm.gres/lost": (D, Advice.REBOOT, "7 GPUs are there, Slurm's Gres has 8"),
    "slurm.gres/amd-lost": (D, Advice.REBOOT, "1 GPUs are there, Slurm's Gres has 2"),
    "slurm.shim/not-named": (INFO, Advice.NONE, "the plugstack.conf that Slurm reads here does not name it"),
    "slurm.shim/another-version": (
        INFO,
        Advice.NONE,
        "plugin_load_from_file: Incompatible Slurm plugin /usr/lib/steward/steward.so version (24.11.5)",
    ),
    "slurm.shim/no-file": (INFO, Advice.NONE, "plugin_load_from_file: dlopen(/usr/lib/steward/steward.so)"),
    "slurm.gres/no-driver": (D, Advice.REBOOT, "no driver lists a GPU, Slurm's Gres has 8, 2 are on the PCI bus"),
    "slurm.gres/nothing-there": (S, Advice.REBOOT, "no driver lists a GPU, Slurm's Gres has 8, none is on the PCI bus"),
    "proc.rogue/left-over": (INFO, Advice.NONE, "2 processes without a job: python3 (700, uid 1002), ray::worker (701"),
    "proc.rogue/false-stepd": (INFO, Advice.NONE, "2 processes without a job: slurmstepd (700, uid 1002), miner (701"),
    "bmc.sensors/fan": (S, Advice.NONE, "critical: FAN1"),
}
PASSED = {f"{check.id}/good" for check in SYSTEM} | {
    *("cpu.topology/cores-for-cpus", "cpu.clocksource/virtual", "cpu.governor/adaptive", "mem.edac/storm"),
    *("os.dstate/driver", "os.dstate/file-server", "os.dstate/a-users-nvidia"),
    "disk.nvme/no-tool",
}
"""Stuck processes and many corrected errors are so only over time: below."""
SKIPPED = {
    *("cpu.topology/overrides", "cpu.clocksource/absent", "cpu.governor/absent", "mem.edac/absent"),
    *("clock.sync/no-daemon", "disk.raid/absent", "disk.raid/none", "disk.nvme/absent"),
    *("disk.smart/virtual", "disk.smart/no-tool", "fs.shared/absent", "svc.munge/no-library", "svc.units/no-systemd"),
    *("svc.units/not-installed", "slurm.spool/absent", "slurm.spool_ro/absent"),
    *("slurm.gres/slices", "slurm.gres/slices-by-nvml", "slurm.gres/no-gres"),
    *("slurm.gres/overrides", "slurm.gres/others", "bmc.sensors/no-device", "bmc.sensors/not-installed"),
    "slurm.shim/not-installed",
    *("mem.frag/absent", "os.modules/absent", "gpu.peermem/open-driver", "gpu.peermem/no-adapter"),
    *("gpu.libraries/absent", "gpu.peermem/no-driver", "efa.memlock/no-unit", "efa.memlock/no-device"),
}
UNKNOWN = {
    *("cpu.topology/no-controller", "cpu.topology/garbage", "mem.free/garbage", "os.pids/garbage", "os.files/garbage"),
    *("svc.units/no-bus", "slurm.gres/no-controller", "fs.shared/hung", "fs.shared/gone"),
    *("mem.frag/garbage", "os.load/garbage", "efa.memlock/garbage", "slurm.shim/no-slurm-conf"),
    *("svc.munge/crowded", "svc.munge/full-queue"),
}


def raws_of(case: str) -> tuple[Raw, ...]:
    return recorded(RECORDINGS / f"{case}.txt")


def judged(*cases: str, every_s: float = 60.0, limit: dict[str, float] | None = None) -> Judgement:
    """The verdict on the last case, after looks that brought those before it."""
    check = BY_ID[cases[-1].partition("/")[0]]
    facts = dataclasses.replace(FACTS, limits=Limits(values={**NAMED.values, **(limit or {})}))
    begun = NOW - every_s * (len(cases) - 1)
    readings = tuple(
        Reading(at=begun + every_s * number, values=check.readings(raws_of(case)))
        for number, case in enumerate(cases)
        if check.readings is not None
    )
    return check.verdict(raws_of(cases[-1]), facts, Past(now=NOW, readings=readings))


def test_every_recording_is_judged_here() -> None:
    there = {f"{path.parent.name}/{path.stem}" for check in SYSTEM for path in (RECORDINGS / check.id).glob("*.txt")}
    assert there == {*BAD, *PASSED, *SKIPPED, *UNKNOWN}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_fault_is_told_with_its_severity_and_remedy(case: str) -> None:
    verdict = judged(case)
    severity, advice, text = BAD[case]
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, severity, advice)
    assert verdict.text.startswith(text)
    assert verdict.scope is Scope.NODE


@pytest.mark.parametrize("case", sorted(PASSED))
def test_a_sound_node_passes(case: str) -> None:
    assert judged(case).outcome is Outcome.PASSED


@pytest.mark.parametrize("case", sorted(SKIPPED))
def test_what_is_not_there_is_skipped_with_the_reason(case: str) -> None:
    verdict = judged(case)
    assert verdict.outcome is Outcome.SKIPPED
    assert verdict.text


@pytest.mark.parametrize("case", sorted(UNKNOWN))
def test_what_makes_no_sense_is_unknown(case: str) -> None:
    assert judged(case).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("check", SYSTEM, ids=lambda check: check.id)
def test_a_look_that_brought_nothing_at_all_is_no_reason_to_act(check: object) -> None:
    one = next(each for each in SYSTEM if each is check)
    raws = tuple(Raw() for _ in one.probes(FACTS))
    assert one.verdict(raws, FACTS, Past(now=NOW)).severity is Severity.INFO


def test_what_only_tells_never_drains_and_what_is_proof_does() -> None:
    proof = {check.id for check in SYSTEM if check.mode(Limits()) == "drain"}
    assert proof == {
        *("cpu.topology", "mem.edac", "os.dstate", "disk.raid", "disk.nvme", "disk.smart", "svc.munge", "slurm.gres"),
        *("os.modules", "slurm.spool_ro"),
    }


def test_the_gpu_drivers_own_thread_that_is_stuck_for_five_minutes_asks_for_a_reboot() -> None:
    verdict = judged(*["os.dstate/driver"] * 6)
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, D, Advice.REBOOT)
    assert verdict.text == "the GPU driver hangs: nvidia-modeset/kthread_q (300)"
    assert judged(*["os.dstate/driver"] * 5).outcome is Outcome.PASSED


def test_processes_that_wait_for_a_file_server_and_one_that_only_has_the_drivers_name_are_told() -> None:
    for case in ("os.dstate/file-server", "os.dstate/a-users-nvidia"):
        verdict = judged(*[case] * 6)
        assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, INFO, Advice.NONE)


def test_a_process_that_ran_meanwhile_is_not_stuck() -> None:
    between = ["os.dstate/driver"] * 3 + ["os.dstate/good"] + ["os.dstate/driver"] * 3
    assert judged(*between).outcome is Outcome.PASSED


def test_many_corrected_errors_within_a_day_make_memory_suspect() -> None:
    verdict = judged("mem.edac/good", "mem.edac/storm", every_s=600)
    assert (verdict.outcome, verdict.severity, verdict.hardware) == (Outcome.FAILED, S, "mc1")
    assert verdict.text == "corrected errors in 24 h (limit 100): mc1 128"
    assert judged("mem.edac/good", "mem.edac/storm", limit={"mem.edac.ce_per_day": 200}).outcome is Outcome.PASSED


@pytest.mark.parametrize(("case", "told"), [("fs.shared/hung", "/fsx: hung"), ("fs.shared/gone", "/home: not mounted")])
def test_a_file_server_that_is_silent_for_five_looks_is_the_clusters_trouble(case: str, told: str) -> None:
    assert judged(*[case] * 4).outcome is Outcome.UNKNOWN
    verdict = judged(*[case] * 5)
    assert (verdict.outcome, verdict.scope, verdict.advice) == (Outcome.FAILED, Scope.CLUSTER, Advice.NONE)
    assert verdict.text == told


def test_a_file_server_that_answered_in_between_begins_anew() -> None:
    assert judged(*["fs.shared/hung"] * 4, "fs.shared/good", "fs.shared/hung").outcome is Outcome.UNKNOWN


def test_the_mounts_that_the_site_names_are_asked_and_no_others() -> None:
    named = limits_of({"fs.shared.paths": ("/fsx",)})
    assert mounts.SHARED.probes(dataclasses.replace(FACTS, limits=named)) == (TouchMounts(paths=("/fsx",)),)
    (probe,) = mounts.SHARED.probes(FACTS)
    assert isinstance(probe, TouchMounts)
    assert {"nfs4", "lustre"} <= set(probe.types)


def test_the_services_that_the_site_names_are_asked_in_one_call() -> None:
    named = limits_of({"svc.units.units": ("a.service", "b.service")})
    (probe,) = services.UNITS.probes(dataclasses.replace(FACTS, limits=named))
    assert isinstance(probe, RunProgram)
    assert probe.argv[-3:] == ("--", "a.service", "b.service")
    none = dataclasses.replace(FACTS, limits=limits_of({"svc.units.units": ()}))
    assert services.UNITS.judge((Raw(),), none, Past()).outcome is Outcome.SKIPPED


def test_without_a_name_no_module_is_missed() -> None:
    none = dataclasses.replace(FACTS, limits=Limits())
    assert kernel.REQUIRED.judge(raws_of("os.modules/missing"), none, Past()).outcome is Outcome.SKIPPED


def test_a_service_that_failed_is_named_as_what_must_be_restarted() -> None:
    assert judged("svc.units/failed").hardware == "chrony.service"
    assert judged("svc.munge/dead").hardware == "munge.service"


def test_the_page_lists_every_check_with_its_thresholds_and_its_mode() -> None:
    page = (Path(__file__).parents[3] / "docs" / "checks.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for check in SYSTEM:
        assert rows[check.id].endswith(f"| {check.mode(Limits())} |")
        assert [one.name for one in check.thresholds if f"`{one.name}`" not in rows[check.id]] == []
