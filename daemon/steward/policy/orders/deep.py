"""A deep check of named nodes, asked for by a person or through StartClusterHealthCheck."""

from collections.abc import Collection

from steward.model.deep import DeepCause, DeepKind, DeepRun
from steward.model.group import Role
from steward.model.ids import NodeName
from steward.model.node_names import fold
from steward.model.order import Answer, CheckDeep, StartHealthCheck
from steward.model.slot import SlotStep
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import conflict, group_of, invalid


def check_deep(order: CheckDeep, desk: Desk) -> Answer:
    """Ask for one deep check. Raises Refusal where a node or a kind is not known, or another request is not over
    yet."""
    nodes = frozenset(NodeName(name) for name in order.nodes)
    if unknown := sorted(nodes - desk.seen.nodes.keys()):
        raise invalid(f"Slurm has no node {fold(unknown)}.")
    if not nodes:
        raise invalid("Name at least one node.")
    run = ask(nodes, kinds_of(order.kinds), desk)
    return Answer(cluster_id=desk.cluster.id if desk.cluster else "", runs=(run.id,))


def kinds_of(words: Collection[str]) -> frozenset[DeepKind]:
    """The kinds that words name; all kinds where no word is given. Raises Refusal for a word that names none."""
    known = {kind.value: kind for kind in DeepKind}
    if unknown := sorted(set(words) - known.keys()):
        raise invalid(f"{', '.join(unknown)}: no such deep check; there are {' and '.join(sorted(known))}.")
    return frozenset(known[word] for word in words) or frozenset(DeepKind)


def check_free(desk: Desk) -> None:
    """Raises Refusal while an earlier request goes on: one at a time, as in HyperPod."""
    if not desk.want.deep.enabled:
        raise conflict("Deep checks are switched off (deep.enabled).")
    if earlier := sorted(run.id for run in desk.deeps.values() if run.is_open and run.cause is DeepCause.ASKED):
        raise conflict(f"Deep check {earlier[0]} was asked for before and is not over yet.")


def ask(nodes: frozenset[NodeName], kinds: frozenset[DeepKind], desk: Desk) -> DeepRun:
    """A run that waits for its nodes."""
    check_free(desk)
    return add(nodes, kinds, desk)


def add(nodes: frozenset[NodeName], kinds: frozenset[DeepKind], desk: Desk) -> DeepRun:
    """Begin a run without asking whether another request goes on."""
    run = DeepRun(
        id=f"d{desk.next_case}",
        cause=DeepCause.ASKED,
        who=desk.who,
        kinds=kinds,
        nodes=nodes,
        asked=desk.now,
        entered=desk.now,
    )
    desk.next_case += 1
    desk.deeps[run.id] = run
    words = ", ".join(sorted(kind.value for kind in kinds))
    desk.tell("deep.asked", f"{desk.who} asked for deep check {run.id} ({words}) of {len(nodes)} nodes")
    return run


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
