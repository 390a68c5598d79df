"""Lines of the kernel log, as real kernels wrote them: each node reads another one at the same moment."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.findings import bad, instance
from tests.e2e.on_node import has_own_machines
from tests.e2e.story import Story

REPAIR_S = 90.0
OOM = (
    "Out of memory: Killed process 812 (slurmd) total-vm:100kB, anon-rss:9kB, file-rss:8kB, shmem-rss:0kB, UID:0 "
    "pgtables:100kB oom_score_adj:0"
)
NFS = "nfs: server home1 not responding, still trying"
NVME = "nvme nvme1: I/O 12 QID 3 timeout, aborting"
LOOK_ALIKES = (
    "12,801,1000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=0, GPU has fallen off the bus.",
    "12,802,1000001,-;mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: be00000000800400",
    "NVRM: Xid 79[4711]: segfault at 0 ip 0000000000401136 sp 00007ffd6c2b0c60 error 6 in x[401000+1000]",
    "python[12]: EXT4-fs (sda1): Remounting filesystem read-only",
    "EDAC A: UE: page allocation failure: order:4, mode:0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO), nodemask=(null)",
    "Oops: 0000 [#1] (4711) used greatest stack depth: 11432 bytes left",
)
"""What a user can make appear: records of the facility `user`, and lines that begin with a name of his choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`rule`: how the node is taken out, at once or after its jobs; `rung`: what mends it in the end."""

    node: str
    text: str
    check: str
    rule: str
    rung: str


ACTED_ON = (
    Line(
        node="n1",
        text="mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: be00000000800400",
        check="kernel_log.mce",
        rule="node.fatal",
        rung="replace",
    ),
    Line(
        node="n2",
        text="EXT4-fs error (device sda1): ext4_journal_check_start: Remounting filesystem read-only",
        check="kernel_log.remount_ro",
        rule="node.degraded",
        rung="reboot",
    ),
    Line(
        node="n3",
        text="nvme nvme0: Disabling device after reset failure: -19",
        check="kernel_log.nvme_dead",
        rule="node.degraded",
        rung="replace",
    ),
)


@pytest.fixture(scope="module")
def hurt_at(ward: Story, before: Mapping[str, str]) -> float:
    times = [ward.hurt(FaultKind.KERNEL_LOG, line.node, line.text) for line in ACTED_ON]
    for text in LOOK_ALIKES:
        ward.hurt(FaultKind.KERNEL_LOG, "n4", text)
    for text in (NFS, NVME):
        ward.hurt(FaultKind.KERNEL_LOG, "n5", text)
    ward.hurt(FaultKind.KERNEL_LOG, "n6", OOM)
    return times[0]


@pytest.mark.parametrize("line", ACTED_ON, ids=lambda each: each.check)
def test_a_line_of_broken_hardware_takes_its_node_out_and_mends_it(
    ward: Story, before: Mapping[str, str], hurt_at: float, line: Line
) -> None:
    case = ward.wait_case(line.node, "closed", REPAIR_S, since=hurt_at)
    assert (case["check"], case["why"]["rule"], case["rung"]) == (line.check, line.rule, line.rung)
    assert (instance(ward, line.node) != before[line.node]) == (line.rung == "replace")
    ward.wait("it takes jobs again", lambda: ward.node_state(line.node) == "IDLE")


def test_a_daemon_that_the_kernel_killed_is_started_again_and_the_machine_stays(
    ward: Story, before: Mapping[str, str], hurt_at: float
) -> None:
    """The local bed has no systemd: there the agent says so, and the ladder goes one rung up."""
    case = ward.wait_case("n6", "closed", REPAIR_S, since=hurt_at)
    assert case["check"] == "kernel_log.oom_daemon"
    assert case["rung"] == ("restart_service" if has_own_machines(ward.bed) else "reboot")
    assert instance(ward, "n6") == before["n6"]
    ward.wait("it takes jobs again", lambda: ward.node_state("n6") == "IDLE")


def test_a_silent_file_server_is_the_clusters_and_a_slow_disk_is_told(ward: Story, hurt_at: float) -> None:
    ward.wait("both are told", lambda: {"kernel_log.nfs_stall", "kernel_log.nvme_timeout"} <= bad(ward, "n5").keys())
    told = bad(ward, "n5")
    assert (told["kernel_log.nfs_stall"]["severity"], told["kernel_log.nfs_stall"]["scope"]) == ("suspect", "cluster")
    assert told["kernel_log.nvme_timeout"]["severity"] == "suspect"
    ward.wait_case("n1", "closed", REPAIR_S, since=hurt_at)
    assert ward.cases("n5", since=hurt_at) == []
    assert ward.node_state("n5") == "IDLE"


def test_what_a_user_can_write_does_nothing(ward: Story, hurt_at: float) -> None:
    ward.wait_case("n1", "closed", REPAIR_S, since=hurt_at)
    assert {check: one["severity"] for check, one in bad(ward, "n4").items() if one["severity"] != "info"} == {}
    assert ward.cases("n4", since=hurt_at) == []
    assert ward.node_state("n4") == "IDLE"
