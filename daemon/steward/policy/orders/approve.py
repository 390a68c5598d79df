"""A person's yes to repairs that wait for one."""

from dataclasses import replace

from steward.model.case import Case
from steward.model.order import Answer, Approve
from steward.policy.draft import Draft
from steward.policy.node.approval import awaits_yes
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import conflict, invalid, not_found


def approve(order: Approve, desk: Desk) -> Answer:
    """The plan of this very turn begins the repairs, as far as budgets allow. Raises Refusal where one of the words
    names nothing that waits for approval: then none is approved."""
    if not order.words:
        raise invalid(f"Name at least one case or node. {_waiting(desk)}")
    draft = Draft(desk.seen, desk.want, desk.memory(), desk.now)
    for case in {case.id: case for case in [_case(word, draft, desk) for word in order.words]}.values():
        desk.cases[case.id] = replace(case, approved=desk.now, approved_by=desk.who, entered=desk.now)
        desk.tell("case.approved", f"{desk.who} approved the repair of {case.node}", node=case.node, case=case.id)
    return Answer()


def _case(word: str, draft: Draft, desk: Desk) -> Case:
    named = [case for case in desk.cases.values() if word in (case.id, case.number, case.number[1:], case.node)]
    if not named:
        raise not_found(f"{word} is neither a case nor a node with a case. {_waiting(desk)}")
    case = next((case for case in named if case.is_open), named[-1])
    if not awaits_yes(case, draft):
        yes = f", approved by {case.approved_by}" if case.approved is not None else ""
        raise conflict(f"Case {case.number} of {case.node} does not wait for approval (step {case.step.value}{yes}).")
    return case


def _waiting(desk: Desk) -> str:
    asked = [case for case in desk.cases.values() if case.waits_for_yes]
    names = ", ".join(f"{case.number} ({case.node})" for case in sorted(asked, key=lambda each: each.opened)[:10])
    return f"These wait for approval: {names}." if names else "No repair waits for approval."
