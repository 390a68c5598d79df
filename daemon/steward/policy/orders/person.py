"""Orders of a person: approve repairs, resize or pause an elastic run, start deep checks (also by the API)."""

from collections.abc import Collection
from dataclasses import replace

from steward.model.case import Case
from steward.model.deep import DeepCause, DeepKind, DeepRun
from steward.model.group import Role
from steward.model.ids import JobId, NodeName
from steward.model.node_names import fold
from steward.model.order import Approve, ChangeRun, CheckDeep, OrderAnswer, Refusal, RefusalKind, StartHealthCheck
from steward.model.slot import SlotStep
from steward.policy.facts.run_rules import rules_of
from steward.policy.guards.approval import needs_approval
from steward.policy.orders.order_draft import OrderDraft
from steward.policy.orders.refuse import conflict, group_of, invalid, not_found


def approve(order: Approve, draft: OrderDraft) -> OrderAnswer:
    """Approve repairs that wait for approval; this turn's plan begins them, as far as budgets allow.

    Raises Refusal, and approves none, if one of the words names no case that waits for approval.
    """
    if not order.words:
        raise invalid(f"Name at least one case or node. {_waiting(draft)}")
    for case in {case.id: case for case in [_case(word, draft) for word in order.words]}.values():
        draft.cases.keep(replace(case, approved=draft.now, approved_by=draft.who, entered=draft.now))
        draft.tell("case.approved", f"{draft.who} approved the repair of {case.node}", node=case.node, case=case.id)
    return OrderAnswer()


def _case(word: str, draft: OrderDraft) -> Case:
    named = [case for case in draft.cases.values() if word in (case.id, case.number, case.number[1:], case.node)]
    if not named:
        raise not_found(f"{word} is neither a case nor a node with a case. {_waiting(draft)}")
    case = next((case for case in named if case.is_open), named[-1])
    if not needs_approval(case, draft):
        yes = f", approved by {case.approved_by}" if case.approved is not None else ""
        raise conflict(f"Case {case.number} of {case.node} does not wait for approval (step {case.step.value}{yes}).")
    return case


def _waiting(draft: OrderDraft) -> str:
    asked = [case for case in draft.cases.values() if case.waits_for_yes]
    names = ", ".join(f"{case.number} ({case.node})" for case in sorted(asked, key=lambda each: each.opened)[:10])
    return f"These wait for approval: {names}." if names else "No repair waits for approval."


def change_run(order: ChangeRun, draft: OrderDraft) -> OrderAnswer:
    """Change an elastic run; this turn's plan carries the change out. Raises Refusal for an unknown run or size."""
    run = draft.elastic.get(JobId(order.run))
    if run is None or not run.is_open:
        raise Refusal(RefusalKind.NOT_FOUND, f"There is no elastic run {order.run}: `steward elastic list` shows them.")
    rules = rules_of(run.spec, run.base, draft.want.elastic)
    if rules is None:
        raise invalid(f"Run {run.id} has no sizes.")
    words = list[str]()
    if order.size is not None:
        if order.size and order.size not in rules.spec.sizes:
            known = ", ".join(map(str, rules.spec.sizes))
            raise invalid(f"Run {run.id} has the sizes {known}; not {order.size}.")
        run = replace(run, wish=order.size or None)
        words.append(f"at most {order.size} nodes" if order.size else "any of its sizes")
    if order.paused is not None:
        run = replace(run, paused=order.paused)
        words.append("no growth" if order.paused else "growth again")
    draft.elastic.keep(run)
    draft.tell("elastic.asked", f"{draft.who} asked elastic run {run.id} for {' and '.join(words) or 'nothing'}")
    return OrderAnswer()


def check_deep(order: CheckDeep, draft: OrderDraft) -> OrderAnswer:
    """Start one deep check. Raises Refusal for an unknown node or kind, or while another request is not over."""
    nodes = frozenset(NodeName(name) for name in order.nodes)
    if unknown := sorted(nodes - draft.seen.nodes.keys()):
        raise invalid(f"Slurm has no node {fold(unknown)}.")
    if not nodes:
        raise invalid("Name at least one node.")
    run = ask(nodes, kinds_of(order.kinds), draft)
    return OrderAnswer(cluster_id=draft.cluster.id if draft.cluster else "", runs=(run.id,))


def kinds_of(words: Collection[str]) -> frozenset[DeepKind]:
    """Return the kinds of deep check of these names; all kinds without a name. Raises Refusal for an unknown name."""
    known = {kind.value: kind for kind in DeepKind}
    if unknown := sorted(set(words) - known.keys()):
        raise invalid(f"{', '.join(unknown)}: no such deep check; there are {' and '.join(sorted(known))}.")
    return frozenset(known[word] for word in words) or frozenset(DeepKind)


def check_free(draft: OrderDraft) -> None:
    """Raise Refusal while an earlier request is not over: one at a time, as in HyperPod."""
    if not draft.want.deep.enabled:
        raise conflict("Deep checks are switched off (deep.enabled).")
    if earlier := sorted(run.id for run in draft.deeps.values() if run.is_open and run.cause is DeepCause.ASKED):
        raise conflict(f"Deep check {earlier[0]} was asked for before and is not over yet.")


def ask(nodes: frozenset[NodeName], kinds: frozenset[DeepKind], draft: OrderDraft) -> DeepRun:
    """Start a deep check, which first waits for its nodes. Raises Refusal while another request is not over."""
    check_free(draft)
    return add(nodes, kinds, draft)


def add(nodes: frozenset[NodeName], kinds: frozenset[DeepKind], draft: OrderDraft) -> DeepRun:
    """Start a run, even if another request is not over."""
    run = DeepRun(
        id=f"d{draft.next_case}",
        cause=DeepCause.ASKED,
        who=draft.who,
        kinds=kinds,
        nodes=nodes,
        asked=draft.now,
        entered=draft.now,
    )
    draft.next_case += 1
    draft.deeps.keep(run)
    words = ", ".join(sorted(kind.value for kind in kinds))
    draft.tell("deep.asked", f"{draft.who} asked for deep check {run.id} ({words}) of {len(nodes)} nodes")
    return run


def start_health_check(order: StartHealthCheck, draft: OrderDraft) -> OrderAnswer:
    """Start deep checks of the named instances, or of the named groups' instances, that are in service.

    Raises Refusal, and starts none, if a group or instance is not known, a group takes no jobs, no instance is in
    service, or an earlier request is not over.
    """
    cluster = draft.cluster_named(order.cluster)
    check_free(draft)
    wished: dict[NodeName, frozenset[DeepKind]] = {}
    for name, ids, checks in order.wishes:
        nodes = _nodes(name, ids, draft)
        kinds = kinds_of(checks)
        wished |= {node: wished.get(node, frozenset()) | kinds for node in nodes}
        words = ", ".join(sorted(set(checks)))
        draft.tell("health.asked", f"{draft.who} asked for {words} on {len(nodes)} instances of {name}", group=name)
    if not wished:
        raise invalid("None of the instances is in service.")
    together = [frozenset(n for n in wished if wished[n] == kinds) for kinds in sorted(set(wished.values()), key=len)]
    runs = tuple(add(nodes, wished[min(nodes)], draft).id for nodes in together)
    return OrderAnswer(cluster_id=cluster.id, runs=runs)


def _nodes(name: str, ids: tuple[str, ...], draft: OrderDraft) -> list[NodeName]:
    cluster = draft.cluster
    assert cluster is not None
    if group_of(draft, name, cluster).role is not Role.COMPUTE:
        raise invalid(f"Instance group {name} takes no jobs: only worker groups are deep-checked.")
    members = {str(slot.instance): slot for slot in draft.slots.values() if slot.group == name and slot.instance}
    if unknown := sorted(set(ids) - members.keys()):
        raise invalid(f"Instance group {name} has no instance {', '.join(unknown)}.")
    chosen = [members[id] for id in (ids or sorted(members))]
    return [slot.node for slot in chosen if slot.step is SlotStep.SERVING]
