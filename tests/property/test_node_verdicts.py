"""The verdicts of all nodes, of which most are told at a glance, are those that a close look at each one gives."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from steward.model.node import NodeBase, Reason
from steward.policy.draft import Draft
from steward.views.node_verdict import node_verdict, node_verdicts
from tests.builders.picture import T0, Picture, a_cluster

FLAGS = (
    "DRAIN",
    "NOT_RESPONDING",
    "COMPLETING",
    "POWERED_DOWN",
    "REBOOT_ISSUED",
    "MAINTENANCE",
    "DYNAMIC_NORM",
    "FAIL",
)
REASONS = ("", "bad fan", "Not responding", "steward:agent:replace:c1-0", "steward:spare", "Action:Reboot")
WORLD = a_cluster(4)

states = st.tuples(
    st.sampled_from(NodeBase),
    st.frozensets(st.sampled_from(FLAGS), max_size=3),
    st.sampled_from(REASONS),
    st.sampled_from(["agent", "none", "known before", "lost", "late"]),
)


def world_of(told: list[tuple[NodeBase, frozenset[str], str, str]]) -> Picture:
    nodes, agents, known = dict(WORLD.seen.nodes), dict(WORLD.seen.agents), dict(WORLD.memory.agents)
    for name, (base, flags, reason, agent) in zip(list(nodes), told, strict=True):
        why = Reason(text=reason, user="root", at=T0 - 60) if reason else None
        nodes[name] = replace(nodes[name], base=base, flags=flags, reason=why)
        match agent:
            case "none":
                agents.pop(name)
                known.pop(name, None)
            case "known before":
                agents.pop(name)
            case "lost":
                agents[name] = replace(agents[name], connected=False, lost_at=T0 - 5)
            case "late":
                agents[name] = replace(agents[name], late=True)
    picture = WORLD.see(nodes=nodes, agents=agents)
    return replace(picture, memory=replace(picture.memory, agents=known))


@given(st.lists(states, min_size=4, max_size=4))
def test_all_at_once_are_told_as_each_alone(told: list[tuple[NodeBase, frozenset[str], str, str]]) -> None:
    world = world_of(told)
    draft = Draft(world.seen, world.want, world.memory, world.now)
    each = {name: node_verdict(name, draft) for name in world.seen.nodes}
    assert node_verdicts(Draft(world.seen, world.want, world.memory, world.now)) == each
