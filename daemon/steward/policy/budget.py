"""How much may be out of service, in repair and replaced at once, before a person is asked."""

from collections.abc import Callable

from steward.model.case import Case, Step, Trigger
from steward.model.events import Level
from steward.model.ids import NodeName
from steward.model.memory import Breaker
from steward.policy.draft import Draft

REPLACING = (Step.LAUNCH, Step.PROVISION, Step.VERIFY, Step.RETURN)
HOUR_S = 3600.0


def scopes(node: NodeName, draft: Draft) -> tuple[str, ...]:
    """The breakers that guard a node: its group's, if it has one, and the cluster's."""
    slot = draft.slots.get(node)
    return (f"group:{slot.group}", "all") if slot else ("all",)


def members(scope: str, draft: Draft) -> int:
    """How many nodes a breaker guards."""
    if scope == "all":
        return len(draft.seen.nodes)
    return draft.group_sizes[scope.removeprefix("group:")]


def out_of_service(scope: str, draft: Draft) -> int:
    """Nodes taken out by our own decision (not by an admin's command) since the breakers were last reset."""
    return sum(1 for case in draft.cases.values() if _counts(case, draft) and scope in scopes(case.node, draft))


def _counts(case: Case, draft: Draft) -> bool:
    is_out = case.is_open and case.step is not Step.SUSPECT and not case.is_stood_in
    ours = is_out and case.trigger is not Trigger.ADMIN
    return ours and case.opened > draft.breakers_reset


def breaker_limit(scope: str, draft: Draft) -> int:
    rules = draft.want.repair
    return max(rules.breaker_min, int(rules.breaker_fraction * members(scope, draft)))


def tripped(node: NodeName, draft: Draft) -> Breaker | None:
    """The tripped breaker that guards this node; trips one when taking the node out would be one too many."""
    for scope in scopes(node, draft):
        if scope not in draft.breakers and out_of_service(scope, draft) >= breaker_limit(scope, draft):
            _trip(scope, draft)
        if scope in draft.breakers:
            return draft.breakers[scope]
    return None


def _trip(scope: str, draft: Draft) -> None:
    text = (
        f"breaker {scope}: {out_of_service(scope, draft)} nodes are out of service by our own action and another "
        f"should follow (limit {breaker_limit(scope, draft)}): report only until `steward resume-actions`"
    )
    draft.breakers[scope] = Breaker(scope=scope, tripped=draft.now, text=text)
    draft.tell("breaker.tripped", text, level=Level.ERROR)


def must_wait(case: Case, draft: Draft) -> str:
    """Why this repair may not begin to replace its node yet; empty when it may."""
    return next((why for rule in _WAITS if (why := rule(case, draft))), "")


def _for_turn(case: Case, draft: Draft) -> str:
    """Repairs run side by side only up to a share of the node's own group."""
    rules = draft.want.repair
    group = scopes(case.node, draft)[0]
    most = max(rules.concurrent_min, int(rules.concurrent_fraction * members(group, draft)))
    busy = [c.node for c in draft.cases.values() if c.step in REPLACING and scopes(c.node, draft)[0] == group]
    if len(busy) < most:
        return ""
    return f"waits for its turn: {len(busy)} of at most {most} repairs run ({', '.join(sorted(busy)[:10])})"


def _for_the_hour(case: Case, draft: Draft) -> str:
    begun = sorted(at for times in draft.history.values() for at in times if at > draft.now - HOUR_S)
    most = draft.want.repair.replacements_per_hour
    if len(begun) < most:
        return ""
    draft.wake(begun[-most] + HOUR_S)
    return f"waits: {len(begun)} repairs began within the hour (limit {most})"


def _for_provider(case: Case, draft: Draft) -> str:
    return "" if draft.provider_is_fresh else "waits for the provider: its machines cannot be listed now"


_WAITS: tuple[Callable[[Case, Draft], str], ...] = (_for_provider, _for_turn, _for_the_hour)


def is_worn_out(case: Case, draft: Draft) -> bool:
    """Whether the node was repaired so often lately that a person should look; a command from one overrules it."""
    rules = draft.want.repair
    lately = [at for at in draft.history.get(case.node, ()) if at > draft.now - rules.node_repairs_window_s]
    return case.trigger is not Trigger.ADMIN and len(lately) >= rules.node_repairs
