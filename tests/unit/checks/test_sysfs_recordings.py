"""Each check on a tree before its fault and on the same tree after it."""

from pathlib import Path

import pytest

from steward.checks import ACCELERATORS
from steward.checks.check import Check
from steward.checks.fabric import FABRIC
from steward.checks.limits import Limits
from steward.model.health import Advice, Outcome, Severity
from tests.builders.looks import Looks
from tests.builders.sysfs import recorded

RECORDINGS = Path(__file__).parents[2] / "recordings" / "checks"
CHECKS = {check.id: check for check in (*FABRIC, *ACCELERATORS) if check.source == "sysfs"}
FATAL, DEGRADED, SUSPECT, INFO = Severity.FATAL, Severity.DEGRADED, Severity.SUSPECT, Severity.INFO
SAID = {
    "ib.state": (DEGRADED, Advice.REBOOT, "drain"),
    "ib.phys": (DEGRADED, Advice.REBOOT, "drain"),
    "ib.drop": (DEGRADED, Advice.REPLACE, "drain"),
    "ib.flap": (DEGRADED, Advice.REBOOT, "drain"),
    "ib.rate": (DEGRADED, Advice.REBOOT, "drain"),
    "ib.count": (DEGRADED, Advice.REBOOT, "drain"),
    "efa.provider": (DEGRADED, Advice.REBOOT, "drain"),
    "efa.count": (DEGRADED, Advice.REPLACE, "drain"),
    "ib.link_downed": (DEGRADED, Advice.REPLACE, "drain"),
    "ib.recovery": (SUSPECT, Advice.NONE, "report"),
    "ib.symbol": (SUSPECT, Advice.NONE, "drain"),
    "ib.integrity": (DEGRADED, Advice.REPLACE, "drain"),
    "ib.overrun": (DEGRADED, Advice.REPLACE, "drain"),
    "ib.rcv_err": (SUSPECT, Advice.NONE, "report"),
    "ib.discard": (INFO, Advice.NONE, "report"),
    "ib.rnr": (SUSPECT, Advice.NONE, "report"),
    "ib.ack_to": (INFO, Advice.NONE, "report"),
    "roce.slow": (SUSPECT, Advice.NONE, "report"),
    "efa.counters": (INFO, Advice.NONE, "report"),
    "net.operstate": (DEGRADED, Advice.REBOOT, "drain"),
    "net.carrier": (SUSPECT, Advice.REBOOT, "report"),
    "amd.count": (FATAL, Advice.REBOOT, "drain"),
    "amd.ecc": (DEGRADED, Advice.REBOOT, "drain"),
    "amd.badpages": (DEGRADED, Advice.REBOOT, "drain"),
    "amd.xgmi": (DEGRADED, Advice.RESET_GPU, "drain"),
    "amd.temp": (SUSPECT, Advice.NONE, "report"),
    "neuron.count": (FATAL, Advice.REPLACE, "drain"),
    "neuron.ecc": (DEGRADED, Advice.REPLACE, "drain"),
    "neuron.exec": (SUSPECT, Advice.NONE, "report"),
}
TURNS = {"ib.drop": 6, "ib.flap": 8}
"""How often the tree changes from good to bad and back, or stays bad, before it counts; else once."""


def test_every_check_of_sysfs_has_a_recording_and_a_row_here() -> None:
    assert set(SAID) == set(CHECKS) == {path.name for path in RECORDINGS.iterdir() if path.name in CHECKS}


@pytest.mark.parametrize("check", SAID)
def test_the_tree_before_the_fault_passes(check: str) -> None:
    before = recorded(RECORDINGS / check / "before.txt")
    assert Looks(CHECKS[check]).over(0, 60, before, before).outcome is Outcome.PASSED


@pytest.mark.parametrize("check", SAID)
def test_the_tree_after_the_fault_says_severity_remedy_and_mode_as_the_table_does(check: str) -> None:
    before, after = (recorded(RECORDINGS / check / name) for name in ("before.txt", "after.txt"))
    looks = Looks(CHECKS[check])
    looks.at(0, before)
    for turn in range(TURNS.get(check, 1)):
        back = before if check == "ib.flap" and turn % 2 else after
        verdict = looks.at(60.0 * (turn + 1), back)
    assert verdict.outcome is Outcome.FAILED
    assert (verdict.severity, verdict.advice, CHECKS[check].mode(Limits())) == SAID[check]
    assert verdict.hardware


@pytest.mark.parametrize("check", [*FABRIC, *ACCELERATORS], ids=lambda check: check.id)
def test_the_page_names_each_check_with_its_thresholds_and_their_defaults(check: Check) -> None:
    page = (Path(__file__).parents[3] / "docs" / "checks.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith("| `") and f"`{check.id}`" in line.split(" | ")[0]]
    assert all(f"`{one.name}`" in row and f"{one.default:g}".replace("1e+06", "1e6") in row for one in check.thresholds)
    assert row.rstrip(" |").endswith(check.mode(Limits()))
