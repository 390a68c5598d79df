"""Spare nodes of a site with fixed machines: kept drained, lent in place of broken nodes, taken back.

A *loan* is an instance that the provider lists on a spare, with the token of the case that took the spare and the node
that it replaces. A loan outlives its case, for as long as the broken node is away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steward.model.action import DrainNode, TerminateInstance
from steward.model.case import Case, CaseStep, Trigger
from steward.model.health import Advice
from steward.model.ids import Key, NodeName
from steward.model.instance import Instance
from steward.model.mark import SPARE
from steward.model.node import Node
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.loans import can_be_replaced, is_idle_spare, loans, may_stand_in_for
from steward.policy.facts.verdict import blocks_return

_MOST_TOLD = 10


def keep_spares(draft: Draft) -> None:
    """End the loans that are over, and drain every spare that is not lent, unless it is out of service already."""
    if not draft.want.spares or not draft.may_touch_nodes or not draft.provider_is_fresh:
        return
    lent = loans(draft)
    needed = {c.stand_in for c in draft.cases.values() if c.is_open and not is_idle_spare(c.node, draft)}
    serving = lent.keys() | needed
    for loan in sorted(lent.values(), key=lambda i: i.id):
        _end_if_over(loan, draft)
    for name in sorted(draft.want.spares - serving):
        _drain_unused(name, draft)


def _drain_unused(name: NodeName, draft: Draft) -> None:
    """Drain an unused spare, even while jobs run on it."""
    # its jobs run to their end and no other job begins: waiting for an idle moment might take for ever
    node = draft.seen.nodes.get(name)
    if node is None or not node.is_schedulable or draft.cases.in_work(name) is not None:
        return
    why = Why(
        rule="spare.hold", text=f"{name} is a spare and stands in for no node", evidence=("provider.static.spares",)
    )
    draft.wish(DrainNode(key=Key(f"hold:{name}"), why=why, node=name, mark=SPARE), draft.want.repair.retry_s)


def _end_if_over(loan: Instance, draft: Draft) -> None:
    text = _why_over(loan, draft)
    if text:
        why = Why(rule="spare.release", text=f"{loan.node} is no longer needed: {text}", evidence=(loan.token,))
        action = TerminateInstance(key=Key(f"release:{loan.id}"), why=why, instance=loan.id, node=loan.node)
        if draft.wish(action, draft.want.repair.retry_s):
            draft.tell("spare.release", why.text, node=loan.node)


def _why_over(loan: Instance, draft: Draft) -> str:
    """Return why the loan is over; empty while a case uses the spare, or it serves for a node that is away."""
    case = draft.cases.open_of(loan.instead_of) if loan.instead_of else None
    if loan.instead_of and is_idle_spare(loan.instead_of, draft):
        return f"{loan.instead_of}, itself a spare, is no longer needed"
    if case is not None and (case.stand_in == loan.node or (case.step is CaseStep.LAUNCH and _is_for(loan, case))):
        return ""
    if case is not None and case.rung is Advice.NONE and loan.token == case.token:
        return ""  # the broken node is back, and its checks decide
    if case is not None and case.stand_in is not None:
        return f"{case.node} has another spare"
    if case is not None and loan.token.startswith(f"{case.id}-"):
        return "it did not go into service"
    spare, broken = draft.seen.nodes.get(loan.node), draft.seen.nodes.get(loan.instead_of or NodeName(""))
    if spare is None or spare.mark == SPARE:
        return "it did not go into service"
    if broken is None or broken.name not in draft.slots.repairable:
        return f"{loan.instead_of} is not one of Steward's nodes any more"
    return f"{broken.name} serves again" if case is None and broken.is_schedulable else ""


def _is_for(loan: Instance, case: Case) -> bool:
    """Return whether the loan is for this case's node, and no earlier try of the case gave it up."""
    given_up = loan.token.startswith(f"{case.id}-") and loan.token != case.token
    return loan.instead_of == case.node and not given_up


def needs_spare(case: Case, draft: Draft) -> bool:
    """Return whether the case must replace a fixed machine, which only a spare can do."""
    slot = draft.slots.repairable.get(case.node)
    return slot is not None and slot.fixed and case.rung is Advice.REPLACE


def with_possible_rung(case: Case, draft: Draft) -> Case:
    """Return the case with a rung that its machine can have.

    A fixed machine without a spare is rebooted, if the site has a command for that, instead of replaced; a machine that
    cannot be rebooted is replaced.
    """
    slot = draft.slots.repairable.get(case.node)
    if slot is None or case.trigger is Trigger.ADMIN:
        return case
    if case.rung is Advice.REBOOT and not slot.reboots:
        return replace(case, rung=Advice.REPLACE)
    is_without = case.rung is Advice.REPLACE and slot.reboots and not can_be_replaced(case.node, draft)
    return replace(case, rung=Advice.REBOOT) if is_without else case


def loan_of(case: Case, draft: Draft) -> Instance | None:
    """Return the loan that this case took, or that an earlier case of the node left; None if there is none."""
    found = [i for i in loans(draft).values() if _is_for(i, case) and not i.state.is_dead]
    usable = [i for i in found if i.token == case.token or not is_spoilt(i.node, draft)]
    return min(usable, key=lambda i: (i.token != case.token, i.id)) if usable else None


def is_spoilt(spare: NodeName, draft: Draft) -> bool:
    """Return whether the spare became unusable: faulty itself, or taken out of service by a person or tool."""
    node = draft.seen.nodes.get(spare)
    return node is None or node.is_foreign or draft.cases.in_work(spare) is not None


def free_spare(case: Case, draft: Draft) -> NodeName | None:
    """Return the healthy free spare for this case; None if older cases need all that fit."""
    # the oldest case chooses first; each try of a case takes another spare
    older = [each for each in _waiting(draft) if _age(each) < _age(case)]
    lent = loans(draft)
    free = [name for name in sorted(draft.want.spares) if not _why_not_free(name, lent, draft)]
    for each in sorted(older, key=_age):
        taken = _chosen(each, free, draft)
        free = [name for name in free if name != taken]
    return _chosen(case, free, draft)


def _chosen(case: Case, free: Sequence[NodeName], draft: Draft) -> NodeName | None:
    fitting = [name for name in free if may_stand_in_for(name, case.node, draft)]
    return fitting[case.launches % len(fitting)] if fitting else None


def _waiting(draft: Draft) -> list[Case]:
    at_launch = [case for case in draft.cases.values() if case.step is CaseStep.LAUNCH and needs_spare(case, draft)]
    return [case for case in at_launch if loan_of(case, draft) is None]


def _age(case: Case) -> tuple[float, str]:
    return case.opened, case.id


def why_no_spare(case: Case, draft: Draft) -> str:
    """Return why no spare is free for the case, with a reason for each."""
    lent = loans(draft)
    told = [f"{name} {_why_not_for(case, name, lent, draft)}" for name in sorted(draft.want.spares)]
    return "capacity: no spare is free (" + "; ".join(told[:_MOST_TOLD]) + ")"


def _why_not_for(case: Case, name: NodeName, lent: Mapping[NodeName, Instance], draft: Draft) -> str:
    if not may_stand_in_for(name, case.node, draft):
        return f"shares no partition with {case.node}"
    return _why_not_free(name, lent, draft) or "is kept for other nodes"


def _why_not_free(name: NodeName, lent: Mapping[NodeName, Instance], draft: Draft) -> str:
    """Return why this spare cannot be lent now; empty if it can."""
    node, loan = draft.seen.nodes.get(name), lent.get(name)
    if node is None:
        return "is not known to Slurm"
    if loan is not None:
        return f"serves for {loan.instead_of}"
    if draft.cases.in_work(name) is not None:
        return "is broken itself"
    if node.mark != SPARE:
        return "is out of service, but not by Steward" if node.is_foreign else "is not drained yet"
    return _why_unsound(node, draft)


def _why_unsound(node: Node, draft: Draft) -> str:
    view = draft.seen.agents.get(node.name)
    if view is None or not view.connected or not node.responding:
        return "has no agent connected" if node.responding else "does not respond to Slurm"
    if any(each.state.is_dead for each in draft.overview.instances_of(node.name)):
        return "is switched off"
    bad = next((f for f in view.findings if blocks_return(f, draft)), None)
    return f"fails its check {bad.check}" if bad else ""
