"""InfiniBand and RoCE ports: state, rate, adapters that vanish, links that bounce."""

import pytest

from steward.checks.check import Check
from steward.checks.fabric import devices, ib_ports
from steward.model.health import Advice, Outcome, Severity
from steward.model.probe import Raw
from tests.builders.looks import Looks
from tests.builders.sysfs import efa, infiniband, raw

UP = infiniband()
DOWN = infiniband(state="1: DOWN", phys_state="2: Polling")
OTHER = infiniband("mlx5_1")
LINK_CHECKS = (ib_ports.STATE, ib_ports.PHYS, ib_ports.DROP, ib_ports.FLAP, ib_ports.RATE)


@pytest.mark.parametrize("check", LINK_CHECKS, ids=lambda check: check.id)
def test_a_node_without_ports_is_skipped(check: Check) -> None:
    assert Looks(check).at(0, Raw()).outcome is Outcome.SKIPPED


@pytest.mark.parametrize("check", LINK_CHECKS, ids=lambda check: check.id)
def test_ports_that_stay_up_pass(check: Check) -> None:
    assert Looks(check).over(0, 15, *(raw(UP, OTHER) for _ in range(20))).outcome is Outcome.PASSED


@pytest.mark.parametrize("check", LINK_CHECKS, ids=lambda check: check.id)
@pytest.mark.parametrize("text", ["", "garbage", "999999: ???", "\x00\xff"])
def test_a_state_that_says_nothing_is_unknown(check: Check, text: str) -> None:
    assert Looks(check).over(0, 15, raw(UP), raw(infiniband(state=text))).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("check", [ib_ports.STATE, ib_ports.PHYS], ids=lambda check: check.id)
def test_a_port_that_was_up_and_is_down_is_degraded_and_named(check: Check) -> None:
    verdict = Looks(check).over(0, 15, raw(UP, OTHER), raw(DOWN, OTHER))
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, Severity.DEGRADED, Advice.REBOOT)
    assert "mlx5_0/1: DOWN, Polling" in verdict.text
    assert verdict.hardware == "mlx5_0/1"


def test_a_port_that_is_initialising_is_linked_and_not_active() -> None:
    initialising = infiniband(state="2: INIT")
    assert Looks(ib_ports.STATE).over(0, 15, raw(UP), raw(initialising)).outcome is Outcome.FAILED
    assert Looks(ib_ports.PHYS).over(0, 15, raw(UP), raw(initialising)).outcome is Outcome.PASSED


@pytest.mark.parametrize("check", LINK_CHECKS, ids=lambda check: check.id)
def test_a_port_that_was_never_up_has_no_cable(check: Check) -> None:
    verdict = Looks(check).over(0, 60, *(raw(DOWN, OTHER) for _ in range(10)))
    assert verdict.outcome is Outcome.PASSED


def test_a_site_may_say_how_many_ports_must_be_active_so_that_one_that_is_dead_from_the_boot_on_is_seen() -> None:
    verdict = Looks(ib_ports.STATE, limit={"ib.state.min_active": 2}).at(0, raw(DOWN, OTHER))
    assert verdict.outcome is Outcome.FAILED
    assert verdict.text == "1 ports active, 2 expected; not active: mlx5_0/1"


def test_ports_of_guests_do_not_count() -> None:
    guest = infiniband("mlx5_9", is_guests=True)
    lost = infiniband("mlx5_9", is_guests=True, state="1: DOWN")
    assert Looks(ib_ports.STATE).over(0, 15, raw(UP, guest), raw(UP, lost)).outcome is Outcome.PASSED


@pytest.mark.parametrize(("down_s", "outcome"), [(225, Outcome.PASSED), (240, Outcome.FAILED)])
def test_a_port_is_dropped_when_it_was_down_for_four_minutes(down_s: int, outcome: Outcome) -> None:
    looks = Looks(ib_ports.DROP)
    looks.at(0, raw(UP))
    verdict = looks.over(15, 15, *(raw(DOWN) for _ in range(down_s // 15 + 1)))
    assert verdict.outcome is outcome
    assert (verdict.advice is Advice.REPLACE) is (outcome is Outcome.FAILED)


def bounce(looks: Looks, start: float, times: int, every_s: float) -> float:
    """Go down and up; the time of the last look."""
    for number in range(times):
        looks.at(start + number * every_s, raw(DOWN))
        looks.at(start + number * every_s + every_s / 2, raw(UP))
    return start + times * every_s - every_s / 2


def test_three_downs_in_an_hour_are_borne_and_the_fourth_is_a_trip() -> None:
    looks = Looks(ib_ports.FLAP)
    looks.at(0, raw(UP))
    end = bounce(looks, 60, 3, 600)
    assert looks.at(end + 1, raw(UP)).outcome is Outcome.PASSED
    verdict = looks.at(end + 15, raw(DOWN))
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, Severity.DEGRADED, Advice.REBOOT)
    assert verdict.text == "went down too often within an hour: mlx5_0/1"


def test_downs_that_are_hours_apart_are_no_flapping() -> None:
    looks = Looks(ib_ports.FLAP)
    looks.at(0, raw(UP))
    end = bounce(looks, 60, 20, 1500)
    assert looks.at(end, raw(UP)).outcome is Outcome.PASSED


def test_a_trip_is_over_after_an_hour_of_quiet() -> None:
    looks = Looks(ib_ports.FLAP)
    looks.at(0, raw(UP))
    end = bounce(looks, 60, 4, 60)
    assert looks.at(end, raw(UP)).outcome is Outcome.FAILED
    assert looks.at(end + 3700, raw(UP)).outcome is Outcome.PASSED


def test_with_the_third_trip_in_a_day_a_port_is_bad_for_a_day_and_a_restarted_agent_still_knows() -> None:
    looks = Looks(ib_ports.FLAP)
    looks.at(0, raw(UP))
    for trip in range(3):
        end = bounce(looks, 60 + trip * 7200, 4, 60)
    restarted = Looks(ib_ports.FLAP)
    restarted.notes = looks.notes
    verdict = restarted.at(end + 4 * 3600, raw(UP))
    assert (verdict.outcome, verdict.advice) == (Outcome.FAILED, Advice.REPLACE)
    assert verdict.text == "went down too often, 3 times or more in 24 h: mlx5_0/1"
    assert restarted.at(end + 86400, raw(UP)).outcome is Outcome.PASSED


def test_three_trips_on_three_days_are_borne() -> None:
    looks = Looks(ib_ports.FLAP)
    looks.at(0, raw(UP))
    for trip in range(3):
        end = bounce(looks, 60 + trip * 86400, 4, 60)
    assert looks.at(end + 7200, raw(UP)).outcome is Outcome.PASSED


def test_a_port_slower_than_it_was_is_degraded() -> None:
    slow = infiniband(rate="100 Gb/sec (1X NDR)")
    verdict = Looks(ib_ports.RATE).over(0, 15, raw(UP), raw(slow))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, Severity.DEGRADED)
    assert verdict.text == "mlx5_0/1 at 100 Gbit/s, it had 400"


def test_a_port_that_is_down_has_no_rate_to_judge() -> None:
    down = infiniband(state="1: DOWN", rate="10 Gb/sec (4X SDR)")
    assert Looks(ib_ports.RATE).over(0, 15, raw(UP), raw(down)).outcome is Outcome.PASSED


def test_the_sites_rate_is_asked_of_infiniband_and_not_of_roce() -> None:
    limit = {"ib.rate.min_gbps": 400}
    slow = infiniband(rate="200 Gb/sec (4X HDR)")
    roce = infiniband(rate="25 Gb/sec (1X EDR)", layer="Ethernet")
    assert Looks(ib_ports.RATE, limit=limit).at(0, raw(slow)).text == "mlx5_0/1 at 200 Gbit/s, 400 expected"
    assert Looks(ib_ports.RATE, limit=limit).at(0, raw(roce)).outcome is Outcome.PASSED


def test_an_adapter_that_vanished_asks_for_a_reboot_also_after_a_restart_of_the_agent() -> None:
    looks = Looks(devices.IB)
    looks.at(0, raw(UP, OTHER))
    restarted = Looks(devices.IB)
    restarted.notes = looks.notes
    verdict = restarted.at(60, raw(OTHER))
    assert (verdict.outcome, verdict.advice) == (Outcome.FAILED, Advice.REBOOT)
    assert verdict.text.startswith("1 of 2 host channel adapters vanished: 0000:")
    assert Looks(devices.IB).at(60, raw(OTHER)).outcome is Outcome.PASSED


def test_the_last_adapter_that_vanished_is_missed_as_well() -> None:
    assert Looks(devices.IB).over(0, 15, raw(UP), Raw()).outcome is Outcome.FAILED


def test_an_adapter_that_got_another_name_is_the_same_one() -> None:
    renamed = infiniband("ibp1s0", slot="0000:01:00.0")
    assert Looks(devices.IB).over(0, 15, raw(infiniband(slot="0000:01:00.0")), raw(renamed)).outcome is Outcome.PASSED


def test_a_bond_takes_the_place_of_its_members() -> None:
    bond = infiniband("mlx5_bond_0", slot="0000:01:00.0")
    before = raw(infiniband(slot="0000:01:00.0"), infiniband("mlx5_1", slot="0000:01:00.1"))
    assert Looks(devices.IB).over(0, 15, before, raw(bond)).outcome is Outcome.PASSED


def test_expected_adapters_and_efa_devices_are_counted_apart() -> None:
    node = raw(UP, efa("rdmap0"), efa("rdmap1"))
    assert Looks(devices.IB, limit={"ib.count.expected": 2}).at(0, node).text == "1 host channel adapters, 2 expected"
    assert Looks(devices.EFA, limit={"efa.count.expected": 2}).at(0, node).outcome is Outcome.PASSED
    verdict = Looks(devices.EFA, limit={"efa.count.expected": 4}).at(0, node)
    assert (verdict.text, verdict.advice) == ("2 EFA devices, 4 expected", Advice.REPLACE)


@pytest.mark.parametrize("check", [devices.IB, devices.EFA], ids=lambda check: check.id)
def test_a_node_without_adapters_is_skipped(check: Check) -> None:
    assert Looks(check).at(0, Raw()).outcome is Outcome.SKIPPED


def test_an_efa_device_that_programs_cannot_use_asks_for_a_reboot() -> None:
    node = raw(UP, efa("rdmap0"), efa("rdmap1", has_verbs=False))
    verdict = Looks(devices.PROVIDER).at(0, node)
    assert (verdict.outcome, verdict.severity, verdict.advice) == (Outcome.FAILED, Severity.DEGRADED, Advice.REBOOT)
    assert verdict.hardware == "rdmap1"


def test_efa_devices_with_their_verbs_pass_and_a_node_without_them_is_skipped() -> None:
    assert Looks(devices.PROVIDER).at(0, raw(efa("rdmap0"), efa("rdmap1"))).outcome is Outcome.PASSED
    assert Looks(devices.PROVIDER).at(0, raw(UP)).outcome is Outcome.SKIPPED
    assert Looks(devices.PROVIDER).at(0, Raw()).outcome is Outcome.SKIPPED
