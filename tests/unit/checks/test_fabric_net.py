"""Ethernet interfaces: which count, and what is wrong with them."""

import pytest

from steward.checks.check import Check
from steward.checks.fabric import net
from steward.model.health import Outcome, Severity
from steward.model.probe import Raw
from tests.builders.looks import Looks
from tests.builders.sysfs import ethernet, raw

CHECKS = (net.OPERSTATE, net.CARRIER)
NOT_OURS = {
    "a veth": ethernet("veth12", has_device=False),
    "a bridge": ethernet("docker0", has_device=False),
    "a bond": ethernet("bond0", has_device=False),
    "the loopback": ethernet("lo", type="772", has_device=False),
    "IP over InfiniBand": ethernet("ib0", type="32"),
    "a guest's virtual function": ethernet("eth7", is_guests=True),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
@pytest.mark.parametrize("files", NOT_OURS.values(), ids=NOT_OURS.keys())
def test_only_physical_ethernet_interfaces_count(check: Check, files: dict[str, str | None]) -> None:
    assert Looks(check).at(0, raw(files)).outcome is Outcome.SKIPPED


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_site_may_name_others_and_then_only_those_count(check: Check) -> None:
    looks = Looks(check, limit={"net.*.interfaces": ("bond0",)})
    bond, eth = ethernet("bond0", has_device=False), ethernet("eth0")
    bad = (ethernet("bond0", has_device=False, operstate="down", downs=9), ethernet("eth0"))
    assert looks.at(0, raw(bond, eth)).outcome is Outcome.PASSED
    verdict = looks.at(60, raw(*bad))
    assert (verdict.outcome, verdict.hardware) == (Outcome.FAILED, "bond0")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_node_without_interfaces_is_skipped_and_garbage_is_unknown(check: Check) -> None:
    assert Looks(check).at(0, Raw()).outcome is Outcome.SKIPPED
    garbage = {path: "\x00?" if "c" in path.rpartition("/")[2] else text for path, text in ethernet("eth0").items()}
    garbage["/sys/class/net/eth0/operstate"] = None
    assert Looks(check).at(0, Raw(files=dict(garbage))).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("state", ["down", "lowerlayerdown", "dormant", "notpresent"])
def test_an_interface_that_was_up_and_is_not_is_degraded(state: str) -> None:
    verdict = Looks(net.OPERSTATE).over(0, 15, raw(ethernet()), raw(ethernet(operstate=state)))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, Severity.DEGRADED)
    assert verdict.text == f"eth0 was up and is {state}"


def test_an_interface_that_an_administrator_set_down_is_told_so() -> None:
    verdict = Looks(net.OPERSTATE).over(0, 15, raw(ethernet()), raw(ethernet(operstate="down", flags="0x1002")))
    assert verdict.text == "eth0 was up and is down (set down by an administrator)"


def test_a_lost_member_of_a_bond_is_only_a_suspicion() -> None:
    lost = ethernet("eth1", operstate="down", is_in_bond=True)
    before = raw(ethernet("eth0", is_in_bond=True), ethernet("eth1", is_in_bond=True))
    verdict = Looks(net.OPERSTATE).over(0, 15, before, raw(ethernet("eth0", is_in_bond=True), lost))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, Severity.SUSPECT)


def test_an_interface_that_was_never_up_is_not_in_use() -> None:
    node = raw(ethernet(), ethernet("eth1", operstate="down"))
    assert Looks(net.OPERSTATE).over(0, 15, node, node).text == "1 of 2 interfaces up, none was lost"


def test_an_interface_that_went_away_says_nothing_of_the_node() -> None:
    both = raw(ethernet(), ethernet("eth1"))
    assert Looks(net.OPERSTATE).over(0, 15, both, raw(ethernet())).outcome is Outcome.PASSED


def test_a_driver_that_does_not_know_its_state_is_up() -> None:
    unknown = raw(ethernet(operstate="unknown"))
    assert Looks(net.OPERSTATE).over(0, 15, unknown, unknown).outcome is Outcome.PASSED


def test_more_than_three_lost_carriers_in_an_hour_are_a_suspicion_also_between_two_looks() -> None:
    looks = Looks(net.CARRIER)
    assert looks.over(0, 15, raw(ethernet(downs=100)), raw(ethernet(downs=103))).outcome is Outcome.PASSED
    verdict = looks.at(30, raw(ethernet(downs=104)))
    assert (verdict.outcome, verdict.severity) == (Outcome.FAILED, Severity.SUSPECT)
    assert net.CARRIER.mode(looks.facts.limits) == "report"


def test_an_old_kernel_counts_changes_of_which_half_are_downs() -> None:
    def old(changes: int) -> Raw:
        files = ethernet()
        del files["/sys/class/net/eth0/carrier_down_count"]
        return raw({**files, "/sys/class/net/eth0/carrier_changes": f"{changes}\n"})

    assert Looks(net.CARRIER).over(0, 15, old(2), old(8)).outcome is Outcome.PASSED
    assert Looks(net.CARRIER).over(0, 15, old(2), old(10)).outcome is Outcome.FAILED


def test_carriers_lost_while_the_agent_was_away_count() -> None:
    looks = Looks(net.CARRIER)
    looks.at(0, raw(ethernet(downs=1)))
    restarted = Looks(net.CARRIER)
    restarted.notes = looks.notes
    assert restarted.at(600, raw(ethernet(downs=9))).outcome is Outcome.FAILED
