"""What many kernel-log lines become: events that count, escalate, explain and end each other."""

import pytest

from steward.checks.check import Judgement
from steward.checks.kernel_events import MAX_EVENTS, OLD_S, QUIET_S, KernelEvent, judged_together, with_line
from steward.checks.kernel_log import judge
from steward.checks.kernel_log.signatures import Sign
from steward.model.health import Advice, Finding, Outcome, Severity
from tests.builders.kernel_corpus import CHANGED, XID

F, D, S, I = Severity.FATAL, Severity.DEGRADED, Severity.SUSPECT, Severity.INFO  # noqa: E741
DAY = 86400.0
DIMM = "EDAC MC0: {n} CE memory read error on CPU_SrcID#0_Chan#1_DIMM#0 (channel:1)"
LOST = "nvidia-nvswitch3: SXid (PCI:0000:87:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"


def after(*lines: tuple[float, str]) -> tuple[KernelEvent, ...]:
    events: tuple[KernelEvent, ...] = ()
    for at, line in lines:
        sign = judge(line)
        assert sign is not None
        events = with_line(events, sign, at)
    return judged_together(events)


def grade(event: KernelEvent) -> tuple[Severity, Advice]:
    return event.verdict.severity, event.verdict.advice


def test_an_event_is_a_finding_that_acts_at_once_with_the_lines_own_time() -> None:
    (event,) = after((123.5, XID + "79, x"))
    assert event.finding.event
    assert event.finding.is_bad
    assert (event.finding.at, event.finding.hardware) == (123.5, "0000:05:00")


def test_the_same_line_a_while_later_is_the_same_event_with_the_newest_time() -> None:
    (event,) = after((1.0, XID + "79, x"), (20.0, XID + "79, y"))
    assert (event.finding.at, event.finding.text[-1]) == (20.0, "y")


def test_the_same_line_within_seconds_is_no_news() -> None:
    (event,) = after((1.0, XID + "79, x"), (5.0, XID + "79, y"))
    assert event.finding.at == 1.0


def test_a_line_that_acts_on_nothing_is_told_once_a_minute() -> None:
    told = {event.at for at in range(200) for event in after(*[(float(n), XID + "43, x") for n in range(at + 1)])}
    assert told == {0.0, QUIET_S, 2 * QUIET_S, 3 * QUIET_S}


def test_worse_news_about_the_same_thing_is_told_at_once() -> None:
    to_drain = XID + f"154, {CHANGED} 0x0 (None) to 0x3 (Drain P2P)"
    to_reboot = XID + f"154, {CHANGED} 0x3 (Drain P2P) to 0x2 (Node Reboot Required)"
    (event,) = after((1.0, to_drain), (1.5, to_reboot))
    assert grade(event) == (F, Advice.REBOOT)


def test_another_gpu_is_another_event() -> None:
    events = after((1.0, XID + "79, x"), (2.0, "NVRM: Xid (PCI:0000:06:00): 79, x"))
    assert {event.subject for event in events} == {"0000:05:00", "0000:06:00"}


REPEATED = [
    ("nvme nvme1: I/O 12 QID 3 timeout, aborting", 2, 3600, S, D, Advice.REPLACE),
    ("I/O error, dev sda, sector 8 op 0x0:(READ)", 3, 600, S, D, Advice.REPLACE),
    ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [x:1]", 3, 600, I, D, Advice.REBOOT),
    ("rcu: INFO: rcu_sched self-detected stall on CPU", 3, 600, I, D, Advice.REBOOT),
    ("nvme 0000:05:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=x", 3, 3600, I, D, Advice.REBOOT),
    ("NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out", 3, 3600, I, D, Advice.REBOOT),
    ("efa 0000:00:1d.0: Completion timeout", 3, 3600, I, D, Advice.REPLACE),
    (XID + "13, pid=1, x", 2, DAY, I, S, Advice.NONE),
    (XID + "31, pid=1, x", 2, DAY, I, S, Advice.NONE),
    (XID + "39, pid=1, x", 2, DAY, I, S, Advice.RESET_GPU),
    (XID + "64, x", 2, DAY, D, D, Advice.REPLACE),
    (XID + "74, x", 2, DAY, D, D, Advice.REPLACE),
    (XID + "110, x", 2, DAY, F, F, Advice.REPLACE),
    (XID + "149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x1 0x0)", 2, DAY, D, D, Advice.REPLACE),
]


@pytest.mark.parametrize(("line", "times", "within_s", "first", "then", "advice"), REPEATED)
def test_what_comes_too_often_within_its_time_is_worse(
    line: str, times: int, within_s: float, first: Severity, then: Severity, advice: Advice
) -> None:
    gap = within_s / (times - 1)
    (once,) = after(*[(n * gap, line) for n in range(times - 1)])
    assert once.verdict.severity is first
    (often,) = after(*[(n * gap, line) for n in range(times)])
    assert grade(often) == (then, advice)
    assert often.finding.text.startswith(f"{times} times in {within_s:g} s: ")
    (apart,) = after(*[(n * (gap + within_s), line) for n in range(times)])
    assert apart.verdict.severity is first


def test_a_burst_of_lines_counts_once() -> None:
    line = "nvme nvme1: I/O 12 QID 3 timeout, aborting"
    (burst,) = after(*[(n * 0.01, line) for n in range(400)])
    assert burst.verdict.severity is S
    (crash,) = after(*[(n * 1.0, XID + "31, pid=1, x") for n in range(100)])
    assert crash.verdict.severity is I


def test_an_nvlink_error_of_another_link_is_another_event() -> None:
    lines = [(n * DAY / 4, XID + f"149, NETIR_LINK_EVT Fatal XC0 i0 Link {n:02} (0x1 0x0)") for n in range(3)]
    events = after(*lines)
    assert [event.verdict.advice for event in events] == [Advice.RESET_GPU] * 3
    assert {event.finding.hardware for event in events} == {"0000:05:00"}


def test_more_than_a_hundred_corrected_errors_of_a_dimm_in_a_day_ask_for_a_look() -> None:
    (few,) = after((0.0, DIMM.format(n=60)), (DAY - 1, DIMM.format(n=40)))
    assert few.verdict.severity is I
    (many,) = after((0.0, DIMM.format(n=60)), (DAY - 1, DIMM.format(n=41)))
    assert grade(many) == (S, Advice.NONE)
    assert many.finding.hardware == "CPU_SrcID#0_Chan#1_DIMM#0"
    (apart,) = after((0.0, DIMM.format(n=60)), (DAY + 1, DIMM.format(n=41)))
    assert apart.verdict.severity is I


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        ("nfs: server home1 not responding, still trying", "nfs: server home1 OK"),
        ("Lustre: a-OST1-osc-ff: Connection to a-OST1 (at 10.0.0.1@tcp) was lost; x",
         "Lustre: a-OST1-osc-ff: Connection restored to 10.0.0.1@tcp (at 10.0.0.1@tcp)"),
    ],
)  # fmt: skip
def test_a_server_that_answers_again_ends_the_trouble_with_it_and_with_no_other(begins: str, ends: str) -> None:
    assert not any(event.verdict.is_bad for event in after((1.0, begins), (9.0, ends)))
    other = begins.replace("home1", "home2").replace("a-OST1-osc", "a-OST2-osc")
    assert any(event.verdict.is_bad for event in after((1.0, other), (9.0, ends)))


def test_the_drivers_own_word_goes_before_the_table_for_the_same_gpu() -> None:
    word = XID + f"154, {CHANGED} 0x0 (None) to 0x1 (GPU Reset Required)"
    events = {event.check: event for event in after((1.0, XID + "79, x"), (2.0, word))}
    assert grade(events["kernel_log.xid79"]) == (F, Advice.RESET_GPU)
    other = {event.check: event for event in after((1.0, "NVRM: Xid (PCI:0000:06:00): 79, x"), (2.0, word))}
    assert grade(other["kernel_log.xid79"]) == (F, Advice.REBOOT)
    later = {event.check: event for event in after((1.0, XID + "79, x"), (1000.0, word))}
    assert grade(later["kernel_log.xid79"]) == (F, Advice.REBOOT)


def test_a_recovery_action_that_is_withdrawn_does_not_make_the_event_undone() -> None:
    """Events stay for the boot; only another incarnation clears them."""
    to_reboot = XID + f"154, {CHANGED} 0x0 (None) to 0x2 (Node Reboot Required)"
    to_none = XID + f"154, {CHANGED} 0x2 (Node Reboot Required) to 0x0 (None)"
    (event,) = after((1.0, to_reboot), (100.0, to_none))
    assert event.finding.is_bad


def test_a_switchs_lost_link_after_a_gpu_fell_off_the_bus_is_that_gpus() -> None:
    events = {event.check: event for event in after((1.0, XID + "79, x"), (3.0, LOST))}
    assert not events["kernel_log.sxid20034"].verdict.is_bad
    assert "because a GPU fell off the bus" in events["kernel_log.sxid20034"].verdict.text
    (alone,) = after((3.0, LOST))
    assert alone.verdict.is_bad


def test_an_xid_45_after_another_error_adds_nothing() -> None:
    bad = [event.check for event in after((1.0, XID + "48, x"), (1.1, XID + "45, x")) if event.verdict.is_bad]
    assert bad == ["kernel_log.xid48"]


def test_a_line_from_long_before_the_agent_first_looked_is_told_and_does_not_act() -> None:
    sign = judge(XID + "79, x")
    assert sign is not None
    (old,) = with_line((), sign, 0.0, now=OLD_S + 1)
    assert (old.verdict.outcome, old.finding.text[:9]) == (Outcome.PASSED, "old line,")
    (fresh,) = with_line((), sign, 0.0, now=OLD_S - 1)
    assert fresh.verdict.is_bad


def test_a_flood_of_kinds_keeps_what_matters() -> None:
    fatal = judge(XID + "79, x")
    assert fatal is not None
    events = with_line((), fatal, 0.0)
    for number in range(100):
        verdict = Judgement(outcome=Outcome.PASSED, text="x")
        events = with_line(events, Sign(check=f"kernel_log.c{number}", subject="", verdict=verdict), float(number + 1))
    assert len(events) == MAX_EVENTS
    assert any(event.finding.is_bad for event in events)


def test_a_flood_of_one_line_is_a_handful_of_findings() -> None:
    events: tuple[KernelEvent, ...] = ()
    findings: set[tuple[Finding, ...]] = set()
    sign = judge("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm x: reading")
    assert sign is not None
    for number in range(6000):
        events = with_line(events, sign, number / 100)
        findings.add(tuple(event.finding for event in events))
    assert len(findings) <= 13
