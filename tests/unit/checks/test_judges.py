"""What each check says of what its probes brought back."""

from dataclasses import replace

import pytest

from steward.checks import CHECKS, clock, disk, gpu, memory, mounts, services
from steward.checks.check import Check, Facts, Judgement, Past
from steward.checks.known import limits_of
from steward.checks.limits import Limits
from steward.model.health import Advice, Outcome, Severity
from steward.model.ids import NodeName
from steward.model.probe import Disk, DiskUsage, Gpu, Raw, RunProgram

FACTS = Facts(node=NodeName("n1"), limits=Limits(), slurm_conf="/etc/slurm/slurm.conf")
GB = 1 << 30


def with_limits(**tables: object) -> Facts:
    return replace(FACTS, limits=limits_of(tables))


def judged(check: Check, *raws: Raw, facts: Facts = FACTS, was_bad: bool = False) -> Judgement:
    return check.verdict(raws, facts, Past(was_bad=was_bad))


def a_disk(used_percent: float = 10.0, *, inodes_percent: float = 1.0, read_only: bool = False) -> Disk:
    return Disk(
        total=1000 * GB,
        free=int((100 - used_percent) * 10 * GB),
        inodes=100_000,
        inodes_free=int((100 - inodes_percent) * 1000),
        read_only=read_only,
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_look_that_failed_is_unknown_and_no_reason_to_act(check: Check) -> None:
    raws = tuple(Raw(error="it hung") for _ in check.probes(FACTS))
    verdict = check.verdict(raws, FACTS, Past(was_bad=True))
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.severity is Severity.INFO
    assert "it hung" in verdict.text


def test_check_ids_are_unique_and_fit_a_mark() -> None:
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(check_id.replace(".", "_").isidentifier() and len(check_id) <= 40 for check_id in ids)


def test_slurmd_is_asked_by_the_name_of_its_node_and_through_our_slurm_conf() -> None:
    (probe,) = services.SLURMD.probes(FACTS)
    assert isinstance(probe, RunProgram)
    assert dict(probe.env) == {"SLURMD_NODENAME": "n1", "SLURM_CONF": "/etc/slurm/slurm.conf"}


def test_a_slurmd_that_answers_is_fine() -> None:
    raw = Raw(returncode=0, output="Active Steps             = NONE\nSlurmd PID               = 22171\n")
    assert judged(services.SLURMD, raw).outcome is Outcome.PASSED


def test_a_slurmd_whose_port_refuses_needs_a_restart_but_not_for_the_first_minute() -> None:
    raw = Raw(returncode=1, output="scontrol: error: slurm_slurmd_info: Connection refused")
    verdict = judged(services.SLURMD, raw)
    assert (verdict.outcome, verdict.advice) == (Outcome.FAILED, Advice.RESTART_SERVICE)
    assert services.SLURMD.bad_for_s == 60


@pytest.mark.parametrize("output", ["scontrol: fatal: no configuration", "Socket timed out", ""])
def test_any_other_trouble_of_asking_says_nothing_about_slurmd(output: str) -> None:
    assert judged(services.SLURMD, Raw(returncode=1, output=output)).outcome is Outcome.UNKNOWN


def test_only_the_disks_of_the_settings_are_looked_at() -> None:
    facts = with_limits(disk={"paths": ("/scratch", "/tmp"), "users": ("/tmp", "/local")})
    assert disk.DISK.probes(facts) == (DiskUsage(paths=("/scratch", "/tmp", "/local")),)


@pytest.mark.parametrize(
    ("used", "was_bad", "outcome"),
    [
        (89.9, False, Outcome.PASSED),
        (90.0, False, Outcome.FAILED),
        (85.0, True, Outcome.FAILED),
        (85.0, False, Outcome.PASSED),
        (79.9, True, Outcome.PASSED),
    ],
)
def test_a_disk_is_full_at_90_percent_and_until_it_is_below_80(used: float, was_bad: bool, outcome: Outcome) -> None:
    assert judged(disk.DISK, Raw(disks={"/": a_disk(used)}), was_bad=was_bad).outcome is outcome


def test_a_disk_without_inodes_is_full_and_the_fullest_is_named_first() -> None:
    raw = Raw(disks={"/": a_disk(91), "/opt": a_disk(5, inodes_percent=99), "/var": a_disk(5)})
    verdict = judged(disk.DISK, raw)
    assert verdict.text == "in use: /opt 99.0 %, / 91.0 % (limit 90 %)"
    assert (verdict.severity, verdict.advice) == (Severity.DEGRADED, Advice.REPLACE)


FULL_ROOT = replace(a_disk(), device=1, total=50 * GB, free=1 * GB)
FILLED_BY_A_USER = {
    "/tmp of its own": {"/tmp": replace(a_disk(99), device=2)},
    "inodes of /tmp": {"/tmp": replace(a_disk(5, inodes_percent=99), device=2)},
    "/dev/shm": {"/": replace(a_disk(), device=1), "/dev/shm": replace(a_disk(), device=3, total=100, free=5)},
    "folders of jobs": {"/run/steward/jobs": replace(a_disk(5, inodes_percent=100), device=4)},
    "/tmp on the root file system": {"/": FULL_ROOT, "/tmp": FULL_ROOT},
    "/var/tmp on /var": {"/var": FULL_ROOT, "/var/tmp": FULL_ROOT},
    "a subvolume beside /": {"/": FULL_ROOT, "/tmp": replace(FULL_ROOT, device=7)},
    "scratch that all may write to": {"/scratch": replace(a_disk(99), is_open=True)},
}


@pytest.mark.parametrize("way", FILLED_BY_A_USER)
def test_what_a_user_can_fill_takes_no_node_out_and_says_nothing_about_its_hardware(way: str) -> None:
    verdict = judged(disk.DISK, Raw(disks=FILLED_BY_A_USER[way]))
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, Severity.INFO, Advice.NONE)
    assert "users can fill that" in verdict.text


def test_a_full_disk_of_the_system_takes_its_node_out_whatever_users_filled_beside_it() -> None:
    raw = Raw(disks={"/": FULL_ROOT, "/tmp": replace(a_disk(99), device=2)})
    assert judged(disk.DISK, raw).severity is Severity.DEGRADED


def test_local_scratch_is_what_the_settings_call_the_users() -> None:
    facts = with_limits(disk={"users": ("/scratch",)})
    assert judged(disk.DISK, Raw(disks={"/scratch": a_disk(99)}), facts=facts).severity is Severity.INFO


def test_a_file_system_that_counts_no_inodes_or_no_blocks_is_not_full() -> None:
    odd = Disk(total=0, free=0, inodes=0, inodes_free=0, read_only=False)
    assert judged(disk.DISK, Raw(disks={"/": odd})).outcome is Outcome.PASSED


def test_no_disk_at_all_is_skipped_with_the_reason() -> None:
    verdict = judged(disk.DISK, Raw(disks={}))
    assert (verdict.outcome, verdict.text) == (Outcome.SKIPPED, "none of /, /tmp, /var exists")


def test_a_read_only_root_asks_for_a_reboot() -> None:
    verdict = judged(mounts.MOUNTS, Raw(disks={"/": a_disk(read_only=True)}))
    assert (verdict.outcome, verdict.advice, verdict.text) == (Outcome.FAILED, Advice.REBOOT, "read-only: /")


def test_a_mount_that_is_not_there_is_a_failure_and_no_wanted_mount_is_skipped() -> None:
    facts = with_limits(mounts={"writable": ("/", "/scratch")})
    assert judged(mounts.MOUNTS, Raw(disks={"/": a_disk()}), facts=facts).text == "not there: /scratch"
    none = with_limits(mounts={"writable": ()})
    assert judged(mounts.MOUNTS, Raw(disks={}), facts=none).outcome is Outcome.SKIPPED


def looks_of_memory(total_kb: int, shown: Raw) -> tuple[Raw, Raw]:
    return Raw(files={"/proc/meminfo": f"MemTotal:       {total_kb} kB\nMemFree: 1 kB\n"}), shown


def shows(real_memory: int) -> Raw:
    return Raw(returncode=0, output=f"NodeName=n1 Arch=x86_64 RealMemory={real_memory} AllocMem=0")


@pytest.mark.parametrize(
    ("total_mb", "outcome"), [(1000, Outcome.PASSED), (950, Outcome.PASSED), (949, Outcome.FAILED)]
)
def test_memory_may_be_5_percent_less_than_slurm_was_told(total_mb: int, outcome: Outcome) -> None:
    verdict = judged(memory.MEMORY, *looks_of_memory(total_mb * 1024, shows(1000)))
    assert verdict.outcome is outcome
    assert verdict.text == f"{total_mb} MB, Slurm's RealMemory is 1000 MB"


def test_memory_is_unknown_while_slurmctld_does_not_tell_its_size() -> None:
    shown = Raw(returncode=1, output="slurm_load_node error: Unable to contact slurm controller")
    verdict = judged(memory.MEMORY, *looks_of_memory(1024, shown))
    assert verdict.outcome is Outcome.UNKNOWN
    assert "Unable to contact" in verdict.text


def test_memory_asks_slurmctld_rarely_and_never_in_a_check_now() -> None:
    assert memory.MEMORY.every_s == 3600
    assert not memory.MEMORY.is_quick


def test_a_node_without_gpus_is_skipped_and_says_why() -> None:
    verdict = judged(gpu.present.PRESENT, Raw(gpus=()))
    assert verdict == Judgement(outcome=Outcome.SKIPPED, text="no NVIDIA GPU on this node")


def test_gpus_that_answer_are_fine() -> None:
    assert judged(gpu.present.PRESENT, Raw(gpus=tuple(Gpu(index=n) for n in range(8)))).text == "8 GPUs answer"


def test_a_missing_gpu_is_fatal() -> None:
    facts = with_limits(gpu={"expected_count": 8})
    verdict = judged(gpu.present.PRESENT, Raw(gpus=tuple(Gpu(index=n) for n in range(7))), facts=facts)
    assert (verdict.severity, verdict.advice, verdict.text) == (Severity.FATAL, Advice.REBOOT, "7 GPUs, 8 expected")
    assert judged(gpu.present.PRESENT, Raw(gpus=()), facts=facts).outcome is Outcome.FAILED


@pytest.mark.parametrize(("code", "advice"), [(15, Advice.REBOOT), (16, Advice.RESET_GPU)])
def test_a_gpu_that_does_not_answer_is_fatal_and_nvml_says_what_it_needs(code: int, advice: Advice) -> None:
    raw = Raw(gpus=(Gpu(index=0), Gpu(index=1, uuid="GPU-1", error="GPU is lost", code=code)))
    verdict = judged(gpu.present.PRESENT, raw)
    assert (verdict.severity, verdict.advice) == (Severity.FATAL, advice)
    assert verdict.text == "GPU 1 GPU-1: GPU is lost"


@pytest.mark.parametrize(("skew", "word"), [(31.0, "31.0 s behind"), (-31.0, "31.0 s ahead of")])
def test_a_clock_that_is_off_is_told_but_never_acts(skew: float, word: str) -> None:
    verdict = judged(clock.CLOCK, Raw(skew_s=skew))
    assert verdict.severity is Severity.SUSPECT
    assert word in verdict.text


def test_a_clock_within_its_limit_is_fine_and_without_a_head_nothing_is_said() -> None:
    assert judged(clock.CLOCK, Raw(skew_s=-29.9)).outcome is Outcome.PASSED
    assert judged(clock.CLOCK, Raw(skew_s=None)).outcome is Outcome.SKIPPED
