"""On which nodes an agent is expected: those that `steward doctor` misses and `steward status` counts."""

from steward.model.node import NodeBase, Reason
from steward.policy.draft import Draft
from steward.views.expected_agents import expected_agents
from tests.builders.api_cluster import ID, ApiPicture, an_api_cluster
from tests.builders.picture import T0, Picture, a_cluster, n


def expected(picture: Picture | ApiPicture, now: float = T0) -> frozenset[str]:
    return frozenset(expected_agents(Draft(picture.seen, picture.want, picture.memory, now)))


def test_the_nodes_of_slurm_are_expected_to_have_agents() -> None:
    assert expected(a_cluster(3)) == {"n1", "n2", "n3"}


def test_a_node_that_is_powered_down_is_not() -> None:
    asleep = a_cluster(3).node("n2", base=NodeBase.IDLE, flags=frozenset({"POWERED_DOWN"}))
    assert n("n2") not in expected(asleep)


def test_nor_is_one_of_an_empty_group() -> None:
    full = an_api_cluster(workers=2)
    assert {"workers-1", "workers-2"} <= expected(full)
    slots = {name: slot for name, slot in full.memory.slots.items() if name != "workers-2"}
    reason = Reason(text=f"steward:scale:leave:{ID}-2", at=T0 - 10, user="slurm")
    left = full.remember(slots=slots).node("workers-2", base=NodeBase.DOWN, flags=frozenset({"DRAIN"}), reason=reason)
    assert "workers-2" not in expected(left)
