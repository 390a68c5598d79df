"""How many repairs may run at once, and repairs that wait for a person's approval (`repair.mode = "ask"`).

The node of a repair that waits for approval is drained at once, so that it takes no jobs, and nothing is done to its
machine before the approval. Jobs are resumed meanwhile.
"""

from collections.abc import Callable
from dataclasses import replace

from steward.model.case import Case, Step, Trigger
from steward.model.events import Level
from steward.model.health import Advice
from steward.model.node_names import fold
from steward.policy.draft import Draft
from steward.policy.facts.correlate import CHECK, in_incident, is_scout
from steward.policy.guards.breaker import members, scopes
from steward.policy.guards.ladder import cool_until, is_light, was_repaired
from steward.policy.traits import in_maintenance

_DOES = {
    Advice.RESTART_SERVICE: "restart a service on it",
    Advice.RESET_GPU: "reset its GPU",
    Advice.REBOOT: "reboot it",
    Advice.REPLACE: "replace its machine",
}


def needs_approval(case: Case, draft: Draft) -> bool:
    """Return whether this repair may not begin before a person approves it."""
    return case.step in (Step.SUSPECT, Step.DRAIN, Step.RELEASE) and bool(why_awaits(case, draft))


def why_awaits(case: Case, draft: Draft) -> str:
    """Return `waits for your approval: ...`; empty if the repair needs no approval, or has it."""
    # an admin's own command is an approval; a machine that is only checked again (Advice.NONE) needs none
    is_needed = case.trigger is not Trigger.ADMIN and case.rung in _DOES
    if not draft.want.repair.ask or not is_needed or case.approved is not None:
        return ""
    return f"waits for your approval to {_DOES[case.rung]}: `steward approve {case.number}`"


def ask_for_yes(case: Case, draft: Draft) -> Case:
    """Tell people once for each proposed remedy, and remember since when the case waits."""
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


HOUR_S = 3600.0


def must_wait(case: Case, draft: Draft) -> str:
    """Return why this repair may not begin to replace its node yet; empty if it may."""
    return next((why for rule in _WAITS if (why := rule(case, draft))), "")


def _for_incident(case: Case, draft: Draft) -> str:
    """Return why a repair waits for the end of an incident."""
    # the node was taken out before others had the same fault: the fault may not be its own
    kind = f"{CHECK}{case.check}"
    is_scout_case = case.is_of_reason and is_scout(case.node, kind, draft)
    if case.trigger is Trigger.ADMIN or is_scout_case or not in_incident(case.node, kind, draft):
        return ""
    return f"waits for the end of the incident {kind}: many nodes have this fault at once"


def _for_maintenance(case: Case, draft: Draft) -> str:
    """Return why a repair that no admin asked for waits for the end of the node's maintenance."""
    node = draft.seen.nodes.get(case.node)
    if case.trigger is Trigger.ADMIN or node is None or not in_maintenance(node):
        return ""
    return "waits for the end of its maintenance (a reservation of Slurm with the flag MAINT)"


def _for_turn(case: Case, draft: Draft) -> str:
    """Return why a repair waits for others in the node's own group; empty if it need not."""
    rules = draft.want.repair
    group = scopes(case.node, draft)[0]
    most = max(rules.concurrent_min, int(rules.concurrent_fraction * members(group, draft)))
    busy = [node for node in draft.cases.replacing.values() if scopes(node, draft)[0] == group]
    if len(busy) < most:
        return ""
    return f"waits for its turn: {len(busy)} of at most {most} repairs run ({fold(busy)})"


def _for_turn_of_all(case: Case, draft: Draft) -> str:
    """Return why a repair waits for others in the whole cluster; empty if it need not."""
    most = draft.want.repair.concurrent_all_count
    busy = len(draft.cases.replacing)
    return "" if busy < most else f"waits for its turn: {busy} repairs run in the whole cluster (limit {most})"


def _for_the_hour(case: Case, draft: Draft) -> str:
    """Return why a repair waits for the limit of repairs in an hour; empty if it need not."""
    if is_light(case):
        return ""
    done = [at for times in draft.history.values() for at in times if at > draft.now - HOUR_S]
    begun = sorted([*done, *_launches_under_way(draft)])
    most = draft.want.repair.replacements_per_hour
    if len(begun) < most:
        return ""
    draft.wake(begun[-most] + HOUR_S)
    return f"waits: {len(begun)} repairs began within the hour (limit {most})"


def _launches_under_way(draft: Draft) -> list[float]:
    """Return when launches and reboots began that are not in the history yet; the history has finished ones."""
    cases = (draft.cases[id] for id in draft.cases.replacing)
    return [case.entered for case in cases if case.step is Step.LAUNCH and not was_repaired(case, draft)]


def _for_provider(case: Case, draft: Draft) -> str:
    """Return why a repair waits for the provider; empty if it need not."""
    return (
        "" if draft.provider_is_fresh or is_light(case) else "waits for the provider: its machines cannot be listed now"
    )


def _for_cooling(case: Case, draft: Draft) -> str:
    """Return why a repair waits after the node's last return; empty if it need not."""
    # a node that fails right after its return is out of service at once, but not repaired in a loop
    until = cool_until(case, draft)
    if draft.now >= until:
        return ""
    draft.wake(until)
    return f"waits: the node came back from its last repair less than {draft.want.repair.budgets.cooldown_s:.0f} s ago"


_WAITS: tuple[Callable[[Case, Draft], str], ...] = (
    why_awaits,
    _for_maintenance,
    _for_incident,
    _for_provider,
    _for_cooling,
    _for_turn,
    _for_turn_of_all,
    _for_the_hour,
)
