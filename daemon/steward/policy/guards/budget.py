"""How many repairs may run at once."""

from collections.abc import Callable

from steward.model.case import Case, CaseStep, Trigger
from steward.model.ids import NodeName
from steward.model.node_names import fold
from steward.policy.draft import Draft
from steward.policy.facts.incidents import CHECK, in_incident, is_scout
from steward.policy.guards.approval import why_awaits
from steward.policy.guards.breaker import members, scopes
from steward.policy.guards.ladder import cool_until, is_light, was_repaired
from steward.policy.traits import in_maintenance

HOUR_S = 3600.0


def must_wait(case: Case, draft: Draft) -> str:
    """Return why this repair may not begin to work on the machine yet; empty if it may."""
    return next((why for rule in _WAITS if (why := rule(case, draft))), "")


def _for_incident(case: Case, draft: Draft) -> str:
    """Return why a repair waits for the end of an incident."""
    # other nodes showed the same fault after this one was taken out: the fault may not be its own
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
    busy = [node for node in _repaired_beside(case, draft) if scopes(node, draft)[0] == group]
    if len(busy) < most:
        return ""
    return f"waits for its turn: {len(busy)} of at most {most} repairs run ({fold(busy)})"


def _for_turn_of_all(case: Case, draft: Draft) -> str:
    """Return why a repair waits for others in the whole cluster; empty if it need not."""
    most = draft.want.repair.concurrent_all_count
    busy = len(_repaired_beside(case, draft))
    return "" if busy < most else f"waits for its turn: {busy} repairs run in the whole cluster (limit {most})"


def _repaired_beside(case: Case, draft: Draft) -> list[NodeName]:
    """Return the nodes whose running repairs count for this one's turn.

    Repairs of what Slurm took out for one user's jobs take turns among themselves: the others wait for none of them.
    """
    is_apart = case.is_users_drain
    return [node for id, node in draft.cases.replacing.items() if draft.cases[id].is_users_drain is is_apart]


def _for_the_hour(case: Case, draft: Draft) -> str:
    """Return why a repair waits because of the limit of repairs in an hour; empty if it need not."""
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
    """Return when the launches and reboots that are under way began; finished ones are in the history."""
    cases = (draft.cases[id] for id in draft.cases.replacing)
    return [case.entered for case in cases if _counts_in_the_hour(case, draft)]


def _counts_in_the_hour(case: Case, draft: Draft) -> bool:
    return case.step is CaseStep.LAUNCH and not case.is_for_users and not was_repaired(case, draft)


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
