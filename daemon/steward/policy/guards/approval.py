"""Repairs that wait for a person's approval (`repair.mode = "ask"`).

The node of a repair that waits for approval is drained at once, so that it takes no jobs, and nothing is done to its
machine before the approval. Jobs are resumed meanwhile.
"""

from dataclasses import replace

from steward.model.case import Case, CaseStep, Trigger
from steward.model.events import Level
from steward.model.health import Advice
from steward.policy.draft import Draft

_DOES = {
    Advice.RESTART_SERVICE: "restart a service on it",
    Advice.RESET_GPU: "reset its GPU",
    Advice.REBOOT: "reboot it",
    Advice.REPLACE: "replace its machine",
}


def needs_approval(case: Case, draft: Draft) -> bool:
    """Return whether this repair may not begin before a person approves it."""
    return case.step in (CaseStep.SUSPECT, CaseStep.DRAIN, CaseStep.RELEASE) and bool(why_awaits(case, draft))


def why_awaits(case: Case, draft: Draft) -> str:
    """Return `waits for your approval: ...`; empty if the repair needs no approval, or has it."""
    # an admin's own command is an approval; a machine that is only checked again (Advice.NONE) needs none
    is_needed = case.trigger is not Trigger.ADMIN and case.rung in _DOES
    if not draft.want.repair.ask or not is_needed or case.approved is not None:
        return ""
    return f"waits for your approval to {_DOES[case.rung]}: `steward approve {case.number}`"


def ask_for_approval(case: Case, draft: Draft) -> Case:
    """Ask people for approval once for each rung, and note since when the case waits; return the case."""
    if not needs_approval(case, draft):
        return case if case.asked is None or case.approved is not None else draft.cases.keep(replace(case, asked=None))
    text = (
        f"{case.node} takes no more jobs; Steward asks to {_DOES[case.rung]}: {case.why}. Yes: `steward approve "
        f"{case.number}`. No: `scontrol update nodename={case.node} state=resume`{_page(case, draft)}"
    )
    once = f"ask:{case.id}:{case.rung.value}"
    draft.tell("case.asked", text, once=once, level=Level.WARNING, node=case.node, case=case.id)
    return case if case.asked is not None else draft.cases.keep(replace(case, asked=draft.now))


def _page(case: Case, draft: Draft) -> str:
    """Return a sentence with the address of the case's page; empty if no page is configured."""
    url = draft.want.page_url.rstrip("/")
    return f". Look at it: {url}/case/{case.number}" if url else ""
