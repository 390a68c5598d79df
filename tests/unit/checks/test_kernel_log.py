"""What kernel-log lines say of their node. The corpus has a line for each signature."""

import pytest

from steward.checks.check import Verdict
from steward.checks.kernel_events import MAX_EVENTS, Kept, remember
from steward.checks.kernel_log import SIGNATURES, Sign, judge
from steward.checks.xid import APPLICATION, HARDWARE
from steward.model.health import Advice, Outcome, Severity

F, D, S, I = Severity.FATAL, Severity.DEGRADED, Severity.SUSPECT, Severity.INFO  # noqa: E741
XID = "NVRM: Xid (PCI:0000:05:00): "
CORPUS: list[tuple[str, str, Severity, Advice]] = [
    (XID + "48, pid=1, name=x, An uncorrectable double bit error", "xid48", F, Advice.RESET_GPU),
    (XID + "63, pid='<unknown>', Row Remapper: New row marked for remapping", "xid63", S, Advice.RESET_GPU),
    (XID + "64, pid=1, Row Remapper: failed", "xid64", D, Advice.RESET_GPU),
    (XID + "79, pid=2, name=python, GPU has fallen off the bus.", "xid79", F, Advice.REBOOT),
    ("NVRM: Xid (0000:05:00): 79, GPU has fallen off the bus.", "xid79", F, Advice.REBOOT),
    ("NVRM: GPU 0000:05:00.0: GPU has fallen off the bus.", "xid79", F, Advice.REBOOT),
    ("NVRM: The NVIDIA GPU 0000:05:00.0 has fallen off the bus", "xid79", F, Advice.REBOOT),
    (XID + "94, pid=1, name=x, Contained: SM (0x1)", "xid94", D, Advice.RESET_GPU),
    (XID + "95, pid=1, Uncontained", "xid95", F, Advice.RESET_GPU),
    (XID + "119, pid=1, Timeout after 6s of waiting for RPC response from GPU0 GSP!", "xid119", F, Advice.RESET_GPU),
    (XID + "120, pid=1, GSP task panic", "xid120", F, Advice.RESET_GPU),
    (XID + "140, Unrecovered ECC", "xid140", F, Advice.RESET_GPU),
    (
        XID + "154, pid=1, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        "xid154",
        F,
        Advice.REBOOT,
    ),
    (XID + "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "xid154", F,
     Advice.RESET_GPU),
    (XID + "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x4 (Drain and Reset)", "xid154", D,
     Advice.RESET_GPU),
    (XID + "149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)", "xid149", D, Advice.RESET_GPU),
    ("NVRM: GPU 0000:05:00.0: RmInitAdapter failed! (0x26:0x56:1482)", "gpu_init", F, Advice.REBOOT),
    ("mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1", "mce", F, Advice.REPLACE),
    ("{1}[Hardware Error]: event severity: fatal", "mce", F, Advice.REPLACE),
    ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", "edac_ue", F, Advice.REPLACE),
    ("Memory failure: 0x1234: recovery action for dirty LRU page: Recovered", "mem_poison", D, Advice.REPLACE),
    ("EXT4-fs (sda1): Remounting filesystem read-only", "remount_ro", D, Advice.REBOOT),
    ("EXT4-fs error (device sda1): ext4_journal_check_start: Remounting filesystem read-only", "remount_ro", D,
     Advice.REBOOT),
    ("BTRFS: error (device sdb) in cleanup_transaction:1846: errno=-5 IO failure forced readonly", "remount_ro", D,
     Advice.REBOOT),
    ("BTRFS info (device sdb: state EA): forced readonly", "remount_ro", D, Advice.REBOOT),
    ("XFS (nvme0n1): Log I/O error detected. Shutting down filesystem: xlog_ioend_work", "xfs_shutdown", D,
     Advice.REBOOT),
    ("nvme nvme0: Removing after probe failure status: -19", "nvme_dead", D, Advice.REPLACE),
    ("nvme nvme0: Disabling device after reset failure: -19", "nvme_dead", D, Advice.REPLACE),
    ("nvme nvme1: I/O 12 QID 3 timeout, aborting", "nvme_timeout", S, Advice.NONE),
    ("block nvme0n1: no available path - failing I/O", "nvme_no_path", D, Advice.REBOOT),
]  # fmt: skip
REPORTED = [
    XID + "13, pid=1, name=python, Graphics SM Warp Exception on (GPC 1, TPC 0)",
    XID + "31, pid=1, name=python, Ch 00000008, intr 00000000. MMU Fault",
    XID + "43, pid=1, name=python, Ch 00000008",
    XID + "45, pid=1, name=python, Ch 00000008",
    XID + "68, pid=1, name=ffmpeg",
    XID + "154, GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)",
    XID + "149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 08 (0x004505c6 0x00000000)",
    XID + "3, pid=1",
    XID + "9999, from a driver of the future",
    "mce: [Hardware Error]: Machine check events logged",
    "{2}[Hardware Error]: event severity: corrected",
]
SILENT = [
    "",
    "eth0: renamed from veth1",
    "python[12]: segfault at 0 ip 0 sp 0 error 4 in libnccl.so.2",
    'audit: comm="x" name="NVRM: Xid (PCI:0000:05:00): 79, pid=1"',
    "usb 1-1: Product: NVRM: GPU has fallen off the bus",
    "[ 12.3] NVRM: Xid (PCI:0000:05:00): 79",
    "EXT4-fs (sda1): mounted filesystem with ordered data mode",
    "XFS (sda1): Mounting V5 Filesystem",
    "nvme nvme0: pci function 0000:00:04.0",
]


@pytest.mark.parametrize(("line", "name", "severity", "advice"), CORPUS, ids=[line[:60] for line, *_ in CORPUS])
def test_a_line_about_broken_hardware_is_a_failure(line: str, name: str, severity: Severity, advice: Advice) -> None:
    sign = judge(line)
    assert sign is not None
    assert sign.check == f"kernel_log.{name}"
    assert (sign.verdict.outcome, sign.verdict.severity, sign.verdict.advice) == (Outcome.FAILED, severity, advice)
    assert line[:40] in sign.verdict.text


@pytest.mark.parametrize("line", REPORTED)
def test_a_jobs_own_fault_and_unknown_codes_are_reported_and_never_act(line: str) -> None:
    sign = judge(line)
    assert sign is not None
    assert (sign.verdict.outcome, sign.verdict.severity) == (Outcome.PASSED, I)


@pytest.mark.parametrize("line", SILENT)
def test_other_lines_say_nothing_even_when_a_user_has_our_words_printed_in_them(line: str) -> None:
    assert judge(line) is None


def test_every_signature_has_a_line_in_the_corpus() -> None:
    lines = [line for line, *_ in CORPUS] + REPORTED
    unseen = [s.pattern.pattern for s in SIGNATURES if not any(s.pattern.match(line) for line in lines)]
    assert unseen == []


def test_no_code_is_both_hardware_and_the_jobs_own_fault() -> None:
    assert set(HARDWARE) & APPLICATION == set()


def test_hostile_bytes_in_a_line_are_made_printable_and_short() -> None:
    sign = judge(XID + "79, name=\x1b[31mrm -rf\x00\u202e" + "x" * 5000)
    assert sign is not None
    assert sign.verdict.text.isprintable()
    assert sign.verdict.text.isascii()
    assert len(sign.verdict.text) < 300


def after(*lines: tuple[float, str]) -> tuple[Kept, ...]:
    events: tuple[Kept, ...] = ()
    for at, line in lines:
        sign = judge(line)
        assert sign is not None
        events = remember(events, sign, at)
    return events


def test_an_event_is_a_finding_that_acts_at_once_with_the_lines_own_time() -> None:
    (event,) = after((123.5, XID + "79, x"))
    assert event.finding.event
    assert event.finding.is_bad
    assert event.finding.at == 123.5


def test_the_same_line_again_about_the_same_gpu_is_one_event_with_the_newest_time() -> None:
    (event,) = after((1.0, XID + "79, x"), (2.0, XID + "79, y"))
    assert event.finding.at == 2.0
    assert event.finding.text.endswith("y")


def test_another_gpu_is_another_event() -> None:
    events = after((1.0, XID + "79, x"), (2.0, "NVRM: Xid (PCI:0000:06:00): 79, x"))
    assert {event.subject for event in events} == {"0000:05:00", "0000:06:00"}


def test_an_nvme_timeout_is_a_suspicion_and_two_within_an_hour_are_a_failure() -> None:
    line = "nvme nvme1: I/O 12 QID 3 timeout, aborting"
    (once,) = after((0.0, line))
    assert once.verdict.severity is S
    (twice,) = after((0.0, line), (3600.0, line))
    assert (twice.verdict.severity, twice.verdict.advice) == (D, Advice.REPLACE)
    assert twice.finding.text.startswith("2 times in 3600 s: nvme nvme1")
    (apart,) = after((0.0, line), (3601.0, line))
    assert apart.verdict.severity is S


def test_a_recovery_action_that_is_withdrawn_does_not_make_the_event_undone() -> None:
    """Events stay for the boot; only another incarnation clears them."""
    to_reboot = XID + "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    to_none = XID + "154, GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)"
    (event,) = after((1.0, to_reboot), (2.0, to_none))
    assert event.finding.is_bad


def test_a_flood_of_kinds_keeps_what_matters() -> None:
    fatal = judge(XID + "79, x")
    assert fatal is not None
    events = remember((), fatal, 0.0)
    for number in range(100):
        verdict = Verdict(outcome=Outcome.PASSED, text="x")
        events = remember(events, Sign(check=f"kernel_log.c{number}", subject="", verdict=verdict), float(number + 1))
    assert len(events) == MAX_EVENTS
    assert any(event.finding.is_bad for event in events)
