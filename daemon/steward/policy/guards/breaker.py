"""Breakers: if Steward's own decisions take out too many nodes, further repairs are only reported.

One breaker guards the cluster, one each group, and one each check. A person may reset a tripped breaker. After its
patience it lets one trial repair through: if that ends well, the breaker closes; else it trips again with twice the
patience. Repairs that run when a breaker trips go on.
"""

from dataclasses import replace

from steward.model.case import Case, CaseStep, Trigger
from steward.model.events import Level
from steward.model.ids import NodeName
from steward.model.memory import Breaker
from steward.policy.draft import Draft

LOST_AGENT = "agent"
"""The check of a lost node's case: no health check took the node out."""
CHECK_SHARE, CHECK_WINDOW_S = 0.1, 600.0
"""More nodes than this share of all, taken out for one check within this time, trip its breaker."""
DAY_S = 86400.0


def scopes(node: NodeName, draft: Draft) -> tuple[str, ...]:
    """Return the breakers that guard a node: its group's, if it has one, and the cluster's."""
    slot = draft.slots.repairable.get(node)
    return (f"group:{slot.group}", "all") if slot else ("all",)


def guards(node: NodeName, check: str, draft: Draft) -> tuple[str, ...]:
    """Return the breakers that guard a node, with that of the check that would take it out."""
    return scopes(node, draft) if check == LOST_AGENT else (*scopes(node, draft), f"check:{check}")


def members(scope: str, draft: Draft) -> int:
    """Return how many nodes a breaker guards."""
    if scope.startswith("group:"):
        return draft.slots.group_sizes[scope.removeprefix("group:")]
    return len(draft.seen.nodes)


def limit(scope: str, draft: Draft) -> int:
    """Return how many nodes of a scope may be out; the next one trips the breaker.

    For a check, it is the number of nodes taken out within its window.
    """
    rules = draft.want.repair
    if scope.startswith("check:"):
        return max(rules.check_breaker_min, int(CHECK_SHARE * members(scope, draft)))
    return max(rules.breaker_min, int(rules.breaker_fraction * members(scope, draft)))


def taken_out(scope: str, draft: Draft) -> int:
    """Return how many nodes count against the limit since the breaker was last reset."""
    since = max(draft.breakers_reset, draft.breaker_resets.get(scope, 0.0))
    cases = (c for c in draft.cases.values() if c.step is not CaseStep.SUSPECT)
    # only our own decisions count: no admin's command, no machine that is surely gone, and no node that Slurm took out
    # and that is only checked, or is so for a user's jobs
    ours = [c for c in cases if c.trigger is not Trigger.ADMIN and not c.gone]
    ours = [c for c in ours if not c.is_of_reason and not c.is_users_drain]
    if scope.startswith("check:"):
        since = max(since, draft.now - CHECK_WINDOW_S)
        return len({c.node for c in ours if c.opened > since and f"check:{c.check}" == scope})
    out = [c for c in ours if c.is_open and not c.is_stood_in and c.opened > since]
    return sum(1 for case in out if scope in scopes(case.node, draft))


def holding(node: NodeName, check: str, draft: Draft) -> Breaker | None:
    """Return the breaker that keeps a node from being taken out for a check; None if there is none.

    A breaker whose limit is reached trips first.
    """
    return _holding(node, check, None, draft)


def tripped(node: NodeName, check: str, draft: Draft, case: Case | None = None) -> Breaker | None:
    """Return a tripped breaker that guards the node, without tripping another one; None if there is none.

    Use it for a node whose fault is not certain yet. `case` is the node's, if it has one.
    """
    for scope in guards(node, check, draft):
        breaker = draft.breakers.get(scope)
        if breaker is not None and not _may_pass(breaker, case, draft):
            return breaker
    return None


def admit(case: Case, draft: Draft) -> Breaker | None:
    """Return the breaker that holds a case; None if the case may go on.

    A case that may go on becomes the trial repair of the tripped breakers that guard its node.
    """
    if case.is_of_reason:
        return None  # its checks only decide whether it is given back: no node is taken out
    breaker = _holding(case.node, case.check, case, draft)
    if breaker is None:
        for scope in guards(case.node, case.check, draft):
            _let_through(scope, case, draft)
    return breaker


def follow_breakers(draft: Draft) -> None:
    """Close the breakers whose trial repair ended well, and trip those again whose trial did not."""
    for scope, breaker in sorted(draft.breakers.items()):
        if breaker.trial is None:
            continue
        case = draft.cases.get(breaker.trial)
        if case is None or (not case.is_open and case.returned is None):
            draft.breakers[scope] = replace(breaker, trial=None)
        elif case.returned is not None and (not case.is_open or case.is_stood_in):
            del draft.breakers[scope]
            text = f"breaker {scope}: closed, the repair of {case.node} ended well"
            draft.tell("breaker.closed", text, node=case.node, case=case.id)
        elif case.step is CaseStep.HELD:
            patience = min(2 * breaker.patience_s, DAY_S)
            draft.breakers[scope] = replace(breaker, tripped=draft.now, patience_s=patience, trial=None)
            text = (
                f"breaker {scope}: the repair of {case.node} did not end well; the next one in {patience / 60:.0f} min"
            )
            draft.tell("breaker.tripped", text, level=Level.ERROR, node=case.node, case=case.id)


def _holding(node: NodeName, check: str, case: Case | None, draft: Draft) -> Breaker | None:
    """Return the breaker that holds the node or its case, after tripping the full ones; None if there is none."""
    for scope in guards(node, check, draft):
        if scope not in draft.breakers and _is_full(scope, draft):
            _trip(scope, draft)
        breaker = draft.breakers.get(scope)
        if breaker is not None and not _may_pass(breaker, case, draft):
            return breaker
    return None


def _is_full(scope: str, draft: Draft) -> bool:
    """Return whether the limit of the scope is reached."""
    most = limit(scope, draft)
    # each node that counts has a case: where hundreds of cases are opened in one plan, counting at each costs the most
    return len(draft.cases) >= most and taken_out(scope, draft) >= most


def _may_pass(breaker: Breaker, case: Case | None, draft: Draft) -> bool:
    """Return whether the breaker lets this case through: its patience is over, it has room, and no other trial runs."""
    if breaker.trial is not None:
        return case is not None and breaker.trial == case.id
    due = breaker.tripped + breaker.patience_s
    draft.wake(due)
    return draft.now >= due and not _is_full(breaker.scope, draft)


def _let_through(scope: str, case: Case, draft: Draft) -> None:
    """Make the case the trial repair of a tripped breaker."""
    breaker = draft.breakers.get(scope)
    if breaker is not None and breaker.trial is None:
        draft.breakers[scope] = replace(breaker, trial=case.id)
        text = f"breaker {scope}: one repair is let through, {case.node}; it ends well, or the breaker trips again"
        draft.tell("breaker.half_open", text, node=case.node, case=case.id)


def _trip(scope: str, draft: Draft) -> None:
    """Trip the breaker and say why."""
    out = f"{taken_out(scope, draft)} nodes "
    if scope.startswith("check:"):
        out += f"were taken out for it within {CHECK_WINDOW_S / 60:.0f} min"
    else:
        out += "are out of service by our own action"
    text = (
        f"breaker {scope}: {out} and one more would be taken out (limit {limit(scope, draft)}): report only until "
        f"`steward breaker reset {scope}`, or until a first repair that is let through ends well"
    )
    patience_s = draft.want.repair.breaker_patience_s
    draft.breakers[scope] = Breaker(scope=scope, tripped=draft.now, text=text, patience_s=patience_s)
    draft.tell("breaker.tripped", text, level=Level.ERROR)
