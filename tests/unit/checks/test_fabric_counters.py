"""Error counters: growth counts, not what was there before, and not a counter that began anew."""

import pytest

from steward.checks.check import Check
from steward.checks.fabric import ib_errors
from steward.model.health import Outcome, Severity
from steward.model.probe import Raw
from tests.builders.looks import Looks
from tests.builders.sysfs import efa, infiniband, raw

MINUTE_S = 60.0


def with_count(counter: str, value: int) -> Raw:
    return raw(infiniband(counters={counter: value}))


CASES = [
    (ib_errors.LINK_DOWNED, "link_downed", 3, 4, Severity.DEGRADED, "drain"),
    (ib_errors.INTEGRITY, "local_link_integrity_errors", 0, 1, Severity.DEGRADED, "drain"),
    (ib_errors.OVERRUN, "excessive_buffer_overrun_errors", 0, 1, Severity.DEGRADED, "drain"),
    (ib_errors.RECOVERY, "link_error_recovery", 5, 6, Severity.SUSPECT, "report"),
    (ib_errors.RCV_ERR, "port_rcv_errors", 600, 601, Severity.SUSPECT, "report"),
    (ib_errors.DISCARD, "port_xmit_discards", 6000, 6001, Severity.INFO, "report"),
    (ib_errors.RNR, "rnr_nak_retry_err", 0, 1, Severity.SUSPECT, "report"),
    (ib_errors.ACK_TO, "local_ack_timeout_err", 60, 61, Severity.INFO, "report"),
    (ib_errors.ROCE_SLOW, "roce_slow_restart", 600, 601, Severity.SUSPECT, "report"),
]
IDS = [check.id for check, *_ in CASES]
EVERY = [check for check, *_ in CASES] + [ib_errors.SYMBOL, ib_errors.EFA]


@pytest.mark.parametrize(("check", "counter", "borne", "bad", "severity", "mode"), CASES, ids=IDS)
def test_a_counter_may_grow_so_much_in_a_minute_and_no_more(
    check: Check, counter: str, borne: int, bad: int, severity: Severity, mode: str
) -> None:
    start = 1000
    before = with_count(counter, start)
    assert Looks(check).over(0, MINUTE_S, before, with_count(counter, start + borne)).outcome is Outcome.PASSED
    looks = Looks(check)
    verdict = looks.over(0, MINUTE_S, before, with_count(counter, start + bad))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, severity)
    assert f"mlx5_0/1 {counter} +" in verdict.text
    assert verdict.hardware == "mlx5_0/1"
    assert check.mode(looks.facts.limits) == mode


@pytest.mark.parametrize(("check", "counter"), [(case[0], case[1]) for case in CASES], ids=IDS)
def test_what_was_counted_before_the_first_look_and_a_reset_are_no_growth(check: Check, counter: str) -> None:
    assert Looks(check).at(0, with_count(counter, 10**9)).outcome is Outcome.PASSED
    many = with_count(counter, 10**9)
    assert (
        Looks(check).over(0, MINUTE_S, many, with_count(counter, 0), with_count(counter, 0)).outcome is Outcome.PASSED
    )


@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.id)
def test_a_node_without_such_counters_is_skipped(check: Check) -> None:
    assert Looks(check).at(0, Raw()).outcome is Outcome.SKIPPED


@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.id)
@pytest.mark.parametrize("text", ["", "N/A (no PMA)", "-5", "\x00", "1e400"])
def test_counters_that_are_no_numbers_are_unknown(check: Check, text: str) -> None:
    whole = {**infiniband(), **efa()}
    garbage = {path: text if "counters/" in path else value for path, value in whole.items()}
    assert Looks(check).at(0, Raw(files=dict(garbage))).outcome is Outcome.UNKNOWN


def test_lost_links_are_remembered_for_three_hours() -> None:
    looks = Looks(ib_errors.LINK_DOWNED)
    verdict = looks.over(0, 3000, *(with_count("link_downed", n) for n in (0, 2, 3, 4)))
    assert verdict.outcome is Outcome.FAILED
    slow = Looks(ib_errors.LINK_DOWNED).over(0, 5000, *(with_count("link_downed", n) for n in (0, 1, 2, 3, 4)))
    assert slow.outcome is Outcome.PASSED


def test_a_site_may_bear_more() -> None:
    looks = Looks(ib_errors.OVERRUN, limit={"ib.overrun.in_1h": 5})
    name = "excessive_buffer_overrun_errors"
    assert looks.over(0, MINUTE_S, with_count(name, 0), with_count(name, 5)).outcome is Outcome.PASSED


def symbols(*counts: int) -> Looks:
    looks = Looks(ib_errors.SYMBOL)
    looks.over(0, MINUTE_S, *(with_count("symbol_error", count) for count in counts))
    return looks


def test_a_steady_trickle_of_symbol_errors_is_a_dying_cable() -> None:
    looks = symbols(*(3 * n for n in range(60)))
    verdict = looks.at(60 * MINUTE_S, with_count("symbol_error", 180))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, Severity.DEGRADED)


def test_one_burst_of_symbol_errors_is_only_a_suspicion_and_soon_forgotten() -> None:
    looks = symbols(0, 0)
    burst = looks.at(2 * MINUTE_S, with_count("symbol_error", 50_000))
    assert (burst.outcome, burst.severity) == (Outcome.FAILED, Severity.SUSPECT)
    later = looks.over(3 * MINUTE_S, MINUTE_S, *(with_count("symbol_error", 50_000) for _ in range(50)))
    assert later.outcome is Outcome.PASSED


def test_a_hundred_symbol_errors_an_hour_are_what_a_link_may_have() -> None:
    looks = symbols(*(n for n in range(100)))
    assert looks.at(100 * MINUTE_S, with_count("symbol_error", 101)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("counter", "borne"), [("rx_drops", 6000), ("retrans_pkts", 60_000), ("retrans_bytes", 60_000_000)]
)
def test_efa_devices_may_repeat_so_much(counter: str, borne: int) -> None:
    zero = raw(efa())
    assert Looks(ib_errors.EFA).over(0, MINUTE_S, zero, raw(efa(counters={counter: borne}))).outcome is Outcome.PASSED
    verdict = Looks(ib_errors.EFA).over(0, MINUTE_S, zero, raw(efa(counters={counter: borne + 60})))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, Severity.INFO)
