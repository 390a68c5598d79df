"""What is left alone for its group's sake: nodes that a minimum needs, groups that are not repaired by themselves."""

from dataclasses import replace

from steward.model.action import DownNode, DrainNode
from steward.model.group import Goal
from steward.model.health import Finding, Outcome, Severity
from steward.model.plan import Plan
from steward.policy.plan import plan
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.picture import T0, a_cluster
from tests.builders.want import but


def decided(picture: ApiPicture) -> Plan:
    want = replace(
        picture.want, repair=but(picture.want.repair, breaker_min=10, check_breaker_min=10, settle_degraded_s=0.0)
    )
    return plan(picture.seen, want, picture.memory, T0 + 100)


def touched(done: Plan) -> list[str]:
    return sorted(a.node for a in done.actions if isinstance(a, DownNode | DrainNode))


def failing(picture: ApiPicture, node: str, severity: Severity = Severity.DEGRADED) -> ApiPicture:
    bad = Finding(check="disk", outcome=Outcome.FAILED, severity=severity, text="full", at=T0 + 90)
    return picture.agent(node, findings=(bad,))


def three(minimum: int) -> ApiPicture:
    return an_api_cluster(3).change_group("workers", goal=Goal(target=3, minimum=minimum))


def test_a_degraded_node_is_not_drained_when_its_group_needs_it() -> None:
    done = decided(failing(three(minimum=3), "workers-1"))
    assert touched(done) == []
    assert "would fall below its minimum (3 serve, 3 must)" in done.events[0].text


def test_a_degraded_node_that_can_be_spared_is_drained() -> None:
    assert touched(decided(failing(three(minimum=2), "workers-1"))) == ["workers-1"]


def test_of_two_degraded_nodes_only_as_many_go_as_can_be_spared() -> None:
    assert touched(decided(failing(failing(three(minimum=2), "workers-1"), "workers-2"))) == ["workers-1"]


def test_a_fatal_fault_takes_the_node_out_whatever_the_minimum_is() -> None:
    assert touched(decided(failing(three(minimum=3), "workers-1", Severity.FATAL))) == ["workers-1"]


def test_nodes_of_a_group_without_recovery_are_only_reported() -> None:
    picture = a_cluster().failing("n2")
    off = replace(picture, want=replace(picture.want, unrepaired=frozenset({"main"})))
    assert touched(picture.plan()) == ["n2"]
    assert touched(off.plan()) == []
    assert 'the recovery of group main is "none"' in off.plan().events[0].text


def test_an_admins_command_is_carried_out_in_a_group_without_recovery() -> None:
    picture = a_cluster().drained("n2", "Action:Replace", flag="FAIL")
    off = replace(picture, want=replace(picture.want, unrepaired=frozenset({"main"})))
    assert [case.node for case in off.plan().memory.cases.values()] == ["n2"]
