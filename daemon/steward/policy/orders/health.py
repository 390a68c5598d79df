"""StartClusterHealthCheck: one deep check for each set of kinds that is asked for, on nodes of worker groups."""

from steward.model.deep import DeepKind
from steward.model.group import Role
from steward.model.ids import NodeName
from steward.model.order import Answer, StartHealthCheck
from steward.model.slot import SlotStep
from steward.policy.orders.deep import add, check_free, kinds_of
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import group_of, invalid


def start_health_check(order: StartHealthCheck, desk: Desk) -> Answer:
    """Nodes that do not serve are left out. Raises Refusal where a group or an instance is not known, a group takes no
    jobs, no node is left, or an earlier request is not over yet: nothing was begun then."""
    cluster = desk.the(order.cluster)
    check_free(desk)
    wished: dict[NodeName, frozenset[DeepKind]] = {}
    for name, ids, checks in order.wishes:
        nodes = _nodes(name, ids, desk)
        kinds = kinds_of(checks)
        wished |= {node: wished.get(node, frozenset()) | kinds for node in nodes}
        words = ", ".join(sorted(set(checks)))
        desk.tell("health.asked", f"{desk.who} asked for {words} on {len(nodes)} instances of {name}", group=name)
    if not wished:
        raise invalid("None of the instances is in service.")
    together = [frozenset(n for n in wished if wished[n] == kinds) for kinds in sorted(set(wished.values()), key=len)]
    runs = tuple(add(nodes, wished[min(nodes)], desk).id for nodes in together)
    return Answer(cluster_id=cluster.id, runs=runs)


def _nodes(name: str, ids: tuple[str, ...], desk: Desk) -> list[NodeName]:
    cluster = desk.cluster
    assert cluster is not None
    if group_of(desk, name, cluster).role is not Role.COMPUTE:
        raise invalid(f"Instance group {name} takes no jobs: only worker groups are deep-checked.")
    members = {str(slot.instance): slot for slot in desk.slots.values() if slot.group == name and slot.instance}
    if unknown := sorted(set(ids) - members.keys()):
        raise invalid(f"Instance group {name} has no instance {', '.join(unknown)}.")
    chosen = [members[id] for id in (ids or sorted(members))]
    return [slot.node for slot in chosen if slot.step is SlotStep.SERVING]
