"""StartClusterHealthCheck: accepted and recorded as one event a group."""

from steward.model.order import Answer, StartHealthCheck
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import group_of, invalid


def start_health_check(order: StartHealthCheck, desk: Desk) -> Answer:
    """Entries of one group are one. Raises Refusal where a group or an instance is not known."""
    cluster = desk.the(order.cluster)
    wished: dict[str, tuple[set[str], set[str]]] = {}
    for name, ids, checks in order.wishes:
        group_of(desk, name, cluster)
        members = {str(slot.instance) for slot in desk.slots.values() if slot.group == name and slot.instance}
        if unknown := sorted(set(ids) - members):
            raise invalid(f"Instance group {name} has no instance {', '.join(unknown)}.")
        nodes, words = wished.setdefault(name, (set(), set()))
        nodes |= set(ids) or members
        words |= set(checks)
    for name, (nodes, words) in sorted(wished.items()):
        text = f"{desk.who} asked for {', '.join(sorted(words))} on {len(nodes)} instances of {name}"
        desk.tell("health.asked", text, group=name)
    return Answer(cluster_id=cluster.id)
