"""A deep check of named nodes, asked for by a person or through StartClusterHealthCheck."""

from collections.abc import Collection

from steward.model.deep import DeepCause, DeepKind, DeepRun
from steward.model.ids import NodeName
from steward.model.node_names import fold
from steward.model.order import Answer, CheckDeep
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import conflict, invalid


def check_deep(order: CheckDeep, desk: Desk) -> Answer:
    """One run. Raises Refusal where a node or a kind is not known, or another request is not over yet."""
    nodes = frozenset(NodeName(name) for name in order.nodes)
    if unknown := sorted(nodes - desk.seen.nodes.keys()):
        raise invalid(f"Slurm has no node {fold(unknown)}.")
    if not nodes:
        raise invalid("Name at least one node.")
    run = ask(nodes, kinds_of(order.kinds), desk)
    return Answer(cluster_id=desk.cluster.id if desk.cluster else "", runs=(run.id,))


def kinds_of(words: Collection[str]) -> frozenset[DeepKind]:
    """None given: all. Raises Refusal for a word that is none of the kinds."""
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
    """The same without asking whether another request goes on."""
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
