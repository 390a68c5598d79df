"""A site with fixed machines, and what befalls its spares, in the words of `picture`."""

from dataclasses import replace
from typing import Any

from steward.model.action import LaunchInstance
from steward.model.case import Case
from steward.model.ids import InstanceId
from steward.model.instance import SPARES, Instance, InstanceState, Slot
from steward.model.mark import SPARE
from steward.model.node import NodeBase
from steward.views.explain import explain_node
from tests.builders.picture import Picture, a_cluster, a_node, an_agent, n, names

AGAIN_S = 61.0
"""After this long a launch that left no trace is asked for again."""
HOLD = str(SPARE)


def a_site(*spares: str, held: bool = True, reboots: bool = False, **repair: Any) -> Picture:
    """n1..n6 with fixed machines, and the named spares. `reboots`: the site has a command for that."""
    whole = a_cluster(**repair)
    seen, all_names = whole.seen, [*whole.seen.nodes, *(n(name) for name in spares)]
    machines = {InstanceId(f"static-{name}"): machine(name) for name in all_names}
    picture = whole.see(
        nodes={**seen.nodes, **{n(name): a_node(n(name)) for name in spares}},
        agents={**seen.agents, **{n(name): an_agent(n(name)) for name in spares}},
        instances=machines,
    )
    slots = {
        name: Slot(node=name, group=SPARES if name in spares else "main", fixed=True, reboots=reboots)
        for name in all_names
    }
    picture = replace(picture, want=replace(picture.want, slots=slots, spares=names(*spares)))
    for name in spares if held else ():
        picture = picture.drained(name, HOLD)
    return picture


def machine(name: str, **fields: object) -> Instance:
    made = Instance(id=InstanceId(f"static-{name}"), node=n(name), state=InstanceState.RUNNING)
    return replace(made, **fields)  # type: ignore[arg-type]


def case_of(picture: Picture, name: str = "n2") -> Case:
    return [case for case in picture.memory.cases.values() if case.node == name][-1]


def broken(picture: Picture, name: str = "n2") -> Picture:
    """The node died and was taken out of service by us."""
    return picture.lost(name).then().marked(name)


def lent(picture: Picture, spare: str = "s1", name: str = "n2") -> Picture:
    """The provider lists the spare as the case's."""
    token = case_of(picture, name).token
    loan = machine(spare, id=InstanceId(f"static-{spare}-{token}"), token=token, instead_of=n(name))
    others = {k: v for k, v in picture.seen.instances.items() if k != f"static-{spare}"}
    return picture.see(instances={**others, loan.id: loan}).then(1)


def free(picture: Picture, name: str) -> Picture:
    return picture.node(name, base=NodeBase.IDLE, flags=frozenset(), reason=None)


def serving(picture: Picture, spare: str = "s1", name: str = "n2") -> Picture:
    """The spare passed its checks and takes jobs."""
    return free(lent(picture, spare, name).checked(spare).then(1), spare).then(1)


def taken_back(picture: Picture, spare: str = "s1") -> Picture:
    """The provider ended the loan."""
    kept = {k: v for k, v in picture.seen.instances.items() if v.node != spare}
    return picture.see(instances={**kept, InstanceId(f"static-{spare}"): machine(spare)})


def actions(picture: Picture) -> list[tuple[type, str]]:
    """What is planned: each action and the node that it is about."""
    planned = picture.actions()
    return [(type(a), a.slot.node if isinstance(a, LaunchInstance) else getattr(a, "node", "")) for a in planned]


def text_of(picture: Picture, name: str) -> str:
    return "\n".join(explain_node(n(name), picture.seen, picture.want, picture.memory, picture.now))
