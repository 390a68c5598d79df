"""How much may be in repair and replaced at once, before a person is asked."""

from collections.abc import Callable

from steward.model.case import Case, Trigger
from steward.model.node_names import fold
from steward.policy.draft import Draft
from steward.policy.node.approval import why_awaits
from steward.policy.node.breaker import members, scopes
from steward.policy.node.correlate import CHECK, in_incident
from steward.policy.node.ladder import cool_until, is_light

HOUR_S = 3600.0


def must_wait(case: Case, draft: Draft) -> str:
    """Why this repair may not begin to replace its node yet; empty when it may."""
    return next((why for rule in _WAITS if (why := rule(case, draft))), "")


def _for_incident(case: Case, draft: Draft) -> str:
    """A node that was taken out before others told of the same fault: it may not be this node's."""
    kind = f"{CHECK}{case.check}"
    if case.trigger is Trigger.ADMIN or not in_incident(case.node, kind, draft):
        return ""
    return f"waits for the end of the incident {kind}: many nodes have this fault at once"


def _for_turn(case: Case, draft: Draft) -> str:
    """Repairs run side by side only up to a share of the node's own group."""
    rules = draft.want.repair
    group = scopes(case.node, draft)[0]
    most = max(rules.concurrent_min, int(rules.concurrent_fraction * members(group, draft)))
    busy = [node for node in draft.cases.replacing.values() if scopes(node, draft)[0] == group]
    if len(busy) < most:
        return ""
    return f"waits for its turn: {len(busy)} of at most {most} repairs run ({fold(busy)})"


def _for_turn_of_all(case: Case, draft: Draft) -> str:
    """Why a repair waits for others in the whole cluster; empty where it need not."""
    most = draft.want.repair.concurrent_all_count
    busy = len(draft.cases.replacing)
    return "" if busy < most else f"waits for its turn: {busy} repairs run in the whole cluster (limit {most})"


def _for_the_hour(case: Case, draft: Draft) -> str:
    if is_light(case):
        return ""
    begun = sorted(at for times in draft.history.values() for at in times if at > draft.now - HOUR_S)
    most = draft.want.repair.replacements_per_hour
    if len(begun) < most:
        return ""
    draft.wake(begun[-most] + HOUR_S)
    return f"waits: {len(begun)} repairs began within the hour (limit {most})"


def _for_provider(case: Case, draft: Draft) -> str:
    return (
        "" if draft.provider_is_fresh or is_light(case) else "waits for the provider: its machines cannot be listed now"
    )


def _for_cooling(case: Case, draft: Draft) -> str:
    """A node that fails right after its return is out of service at once, but not repaired in a loop."""
    until = cool_until(case, draft)
    if draft.now >= until:
        return ""
    draft.wake(until)
    return f"waits: the node came back from its last repair less than {draft.want.repair.budgets.cooldown_s:.0f} s ago"


_WAITS: tuple[Callable[[Case, Draft], str], ...] = (
    why_awaits,
    _for_incident,
    _for_provider,
    _for_cooling,
    _for_turn,
    _for_turn_of_all,
    _for_the_hour,
)
