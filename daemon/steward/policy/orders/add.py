"""BatchAddClusterNodes: add a number of instances to groups. The caller gets their logical ids at once."""

import hashlib
import json
from dataclasses import asdict, replace

from steward.model.group import ClientToken, Cluster, Goal, Group, GroupStatus, Role
from steward.model.order import Added, AddNodes, OrderAnswer
from steward.model.why import Why
from steward.policy.orders.order_draft import OrderDraft
from steward.policy.orders.refuse import check_limits, check_not_busy, check_repeated, check_source, invalid, limit
from steward.policy.slot_of import new_slots, taken_names

MOST_GROUPS = 5
MOST_NODES = 50
TOKEN_KEPT_S = 8 * 3600.0
NO_SUCH_GROUP, BAD_STATUS = "InstanceGroupNotFound", "InvalidInstanceGroupStatus"


def add(order: AddNodes, draft: OrderDraft) -> OrderAnswer:
    """Grow the groups that can grow now; the answer names the refused groups and says why.

    A repeated call (by its client token) gets the same answer and changes nothing.
    """
    cluster = draft.cluster_named(order.cluster)
    _forget_old_tokens(draft)
    if known := _earlier_answer(order, draft):
        return known
    _check(order, cluster)
    grown = {name: count for name, count in order.wishes if not _refused(name, count, draft)}
    refused = [failed for name, count in order.wishes if (failed := _refused(name, count, draft))]
    added = _grow(grown, draft) if grown else []
    answer = OrderAnswer(cluster_id=cluster.id, added=(*added, *refused))
    if order.token and added:
        text = json.dumps([asdict(one) for one in answer.added])
        draft.client_tokens[order.token] = ClientToken(digest=_digest(order, cluster), answer=text, at=draft.now)
    return answer


def _forget_old_tokens(draft: OrderDraft) -> None:
    tokens = draft.client_tokens
    tokens.drop([word for word, token in tokens.items() if draft.now >= token.at + TOKEN_KEPT_S])


def _earlier_answer(order: AddNodes, draft: OrderDraft) -> OrderAnswer | None:
    token = draft.client_tokens.get(order.token)
    cluster = draft.cluster_named(order.cluster)
    if token is None:
        return None
    if token.digest != _digest(order, cluster):
        raise invalid(f"ClientToken {order.token} was used for another call within the last 8 hours; take a new one.")
    return OrderAnswer(cluster_id=cluster.id, added=tuple(Added(**one) for one in json.loads(token.answer)))


def _digest(order: AddNodes, cluster: Cluster) -> str:
    return hashlib.sha256(json.dumps([cluster.id, sorted(order.wishes)]).encode()).hexdigest()


def _check(order: AddNodes, cluster: Cluster) -> None:
    check_not_busy(cluster, "BatchAddClusterNodes")
    if not cluster.continuous:
        raise invalid(f"Cluster {cluster.name}: BatchAddClusterNodes needs NodeProvisioningMode Continuous.")
    check_repeated((name for name, _ in order.wishes), "NodesToAdd")
    if not 1 <= len(order.wishes) <= MOST_GROUPS:
        raise invalid(f"NodesToAdd: {len(order.wishes)} groups; one call adds to 1 to {MOST_GROUPS}.")
    if any(count < 1 for _, count in order.wishes):
        raise invalid("NodesToAdd: IncrementTargetCountBy must be at least 1.")
    if (total := sum(count for _, count in order.wishes)) > MOST_NODES:
        raise invalid(f"NodesToAdd: {total} nodes; one call adds at most {MOST_NODES} in all.")


def _refused(name: str, count: int, draft: OrderDraft) -> Added | None:
    """Return why the group cannot grow now; None if it can."""
    group = draft.groups.get(name)
    if group is None:
        return Added(group=name, refused=NO_SUCH_GROUP, count=count, text=f"There is no instance group {name}.")
    if group.role is Role.CONTROLLER:
        return Added(group=name, refused=BAD_STATUS, count=count, text=f"{name} is the controller: it has one machine.")
    if group.status not in (GroupStatus.IN_SERVICE, GroupStatus.FAILED, GroupStatus.DEGRADED):
        text = f"{name} is {group.status.value}: wait until it is InService."
        return Added(group=name, refused=BAD_STATUS, count=count, text=text)
    return None


def _grow(grown: dict[str, int], draft: OrderDraft) -> list[Added]:
    goals = {}
    for name, count in grown.items():
        group = draft.groups[name]
        goals[name] = replace(group.goal, target=group.goal.target + count)
        check_source(replace(group, goal=goals[name]), draft.rules)
    check_limits(
        [replace(each, goal=goals.get(each.name, each.goal)) for each in draft.groups_that_stay()], draft.rules
    )
    operation = draft.set_goals(goals)
    added = [one for name, count in grown.items() for one in _mint(draft.groups[name], count, draft)]
    sizes = ", ".join(f"{name} {_goal_before(name, draft).target} -> {goals[name].target}" for name in grown)
    draft.tell("group.grown", f"{draft.who} added nodes: {sizes}", operation=operation.id if operation else "")
    return added


def _goal_before(name: str, draft: OrderDraft) -> Goal:
    return draft.before.groups[name].goal


def _mint(group: Group, count: int, draft: OrderDraft) -> list[Added]:
    """Make the slots at once, so that the answer can name their ids."""
    assert draft.cluster is not None
    why = Why(rule="slot.ordered", text=f"{draft.who} added nodes to {group.name}", evidence=(f"{count} more",))
    taken = taken_names(group.name, draft.slots, draft.seen, draft.want)
    draft.cluster, slots = new_slots(group, count, taken, draft.cluster, draft.want, why, draft.now)
    if len(slots) < count:
        raise limit(f"Instance group {group.name}: only {len(slots)} of its node names are free now.")
    for slot in slots:
        draft.slots.keep(slot)
    return [Added(group=group.name, logical=slot.logical) for slot in slots]
