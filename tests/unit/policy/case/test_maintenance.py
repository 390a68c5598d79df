"""A node in a MAINT reservation is left to the people who work on it, until the reservation ends."""

import pytest

from steward.model.action import DownNode, DrainNode
from steward.model.case import CaseStep
from steward.model.health import Severity
from steward.views.explain import explain_node
from tests.builders.picture import Picture, a_cluster, n

MAINT = "MAINTENANCE"


def in_maintenance(picture: Picture, *more: str) -> Picture:
    return picture.node("n2", flags=frozenset({MAINT, "RESERVED", *more}))


def explained(picture: Picture) -> str:
    return "\n".join(explain_node(n("n2"), picture.seen, picture.want, picture.memory, picture.now))


def touched(picture: Picture) -> list[str]:
    kinds = DownNode | DrainNode
    return [action.node for action in picture.plan().actions if isinstance(action, kinds)]


@pytest.mark.parametrize("severity", [Severity.FATAL, Severity.DEGRADED])
def test_a_finding_is_said_once_and_acted_on_when_the_maintenance_is_over(severity: Severity) -> None:
    during = in_maintenance(a_cluster().failing("n2", severity))
    assert touched(during) == []
    (told,) = during.plan().events
    assert (told.kind, "in maintenance (flag MAINT)" in told.text) == ("case.withheld", True), told
    assert during.then().plan().events == ()
    assert "nothing: a reservation of Slurm has it in maintenance" in explained(during)
    assert touched(during.then(60).node("n2", flags=frozenset())) == ["n2"]


def step_of(picture: Picture) -> CaseStep:
    (case,) = picture.plan().memory.cases.values()
    return case.step


def test_a_repair_that_has_not_begun_waits_for_the_end_of_the_maintenance() -> None:
    drained = a_cluster().lost("n2").then().marked("n2").then()
    assert step_of(drained) is CaseStep.LAUNCH
    during = in_maintenance(a_cluster().lost("n2").then().marked("n2"), "DRAIN").then()
    assert step_of(during) is CaseStep.RELEASE
    assert "waits for the end of its maintenance" in explained(during)
    assert step_of(during.then(60).node("n2", flags=frozenset({"DRAIN"}))) is CaseStep.LAUNCH


def test_what_an_admin_asks_for_is_done_in_maintenance_too() -> None:
    asked = in_maintenance(a_cluster().drained("n2", "Action:Replace", "FAIL"), "FAIL").then()
    assert step_of(asked) is CaseStep.LAUNCH
