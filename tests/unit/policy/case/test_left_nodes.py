"""Nodes whose machines were ended on purpose: they are missed by nobody."""

from dataclasses import replace

from steward.model.case import CaseStep
from steward.model.group import Goal
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.node import NodeBase, Reason
from steward.model.plan import Plan
from steward.model.slot import Purpose, SlotStep
from steward.policy.plan import plan
from steward.views.explain import explain_node
from tests.builders.api_cluster import ID, ApiPicture, an_api_cluster, nothing
from tests.builders.picture import T0, n

NODES = [f"workers-{number}" for number in range(1, 7)]


def decided(picture: ApiPicture) -> Plan:
    return plan(picture.seen, picture.want, picture.memory, T0)


def silenced(picture: ApiPicture) -> ApiPicture:
    for node in NODES[2:]:
        picture = picture.agent(node, connected=False, lost_at=T0 - 1, last_heard=T0 - 1)
    return picture


def pooled(picture: ApiPicture) -> ApiPicture:
    """The nodes are those of a `[[groups]]` table; all but two left a group that is no more."""
    slots = {n(node): Slot(node=n(node), group="workers") for node in NODES}
    picture = replace(picture, want=replace(picture.want, slots=slots))
    for number, node in enumerate(NODES[2:], 3):
        reason = Reason(text=f"steward:scale:leave:{ID}-{number}", at=T0 - 10, user="slurm")
        picture = picture.node(node, base=NodeBase.DOWN, flags=frozenset({"DRAIN"}), reason=reason)
    return picture


def test_the_agents_of_nodes_that_leave_are_no_incident() -> None:
    picture = an_api_cluster(workers=6)
    for node in NODES[2:]:
        picture = picture.slot(node, step=SlotStep.END, purpose=Purpose.LEAVE)
    assert not decided(silenced(picture)).memory.incidents


def test_agents_of_nodes_that_serve_still_are_one() -> None:
    assert list(decided(silenced(an_api_cluster(workers=6))).memory.incidents) == ["agents"]


def test_a_node_that_left_is_not_repaired_after_its_cluster_was_deleted() -> None:
    gone = replace(an_api_cluster(workers=6), memory=nothing().memory)
    plan = decided(silenced(pooled(gone)))
    assert (plan.actions, dict(plan.memory.cases), dict(plan.memory.incidents)) == ((), {}, {})
    assert not [event for event in plan.events if event.kind == "node.orphan"]


def test_a_node_whose_machine_never_came_is_not_repaired_either() -> None:
    gone = replace(an_api_cluster(workers=6), memory=nothing().memory)
    held = Reason(text=f"steward:setup:hold:{ID}-6", at=T0 - 10, user="slurm")
    assert not decided(silenced(pooled(gone).node(NODES[5], reason=held))).memory.cases


def test_a_repair_that_is_open_when_a_group_takes_its_node_is_the_groups_business() -> None:
    picture = an_api_cluster(workers=1).repaired(NODES[1], CaseStep.HELD).change_group("workers", goal=Goal(target=2))
    assert not [case for case in decided(picture).memory.cases.values() if case.is_open]


def test_a_node_that_never_left_is_repaired_then() -> None:
    gone = replace(an_api_cluster(workers=6), memory=nothing().memory)
    reasonless = pooled(gone).node(NODES[5], flags=frozenset(), reason=None)
    assert {case.node for case in decided(silenced(reasonless)).memory.cases.values()} == {NodeName(NODES[5])}


def test_a_node_that_left_is_explained_as_one_that_nobody_misses() -> None:
    gone = silenced(pooled(replace(an_api_cluster(workers=6), memory=nothing().memory)))
    told = " ".join(explain_node(n(NODES[5]), gone.seen, gone.want, gone.memory, T0))
    assert "The node left its group of the API and has no machine" in told
    assert not any(word in told for word in ("fault", "agent", "provider"))
