"""Deep checks that nobody asked for: of suspects at their next idle moment, and of idle nodes in their turn."""

from collections.abc import Mapping

from steward.model.deep import DeepCause, DeepKind, DeepRun
from steward.model.ids import NodeName
from steward.policy.deep.crowd import Crowd
from steward.policy.draft import Draft

SUSPECT_AGAIN_S = 6 * 3600.0
"""A finding that is no proof is looked into once in this time."""
ALL_KINDS = frozenset(DeepKind)


def ask_suspects(doubts: Mapping[NodeName, str], crowd: Crowd, draft: Draft) -> None:
    """Ask for a deep check of each suspect, when its node is idle. `doubts` says why each is one."""
    for name in sorted(doubts.keys() & crowd.idle):
        if not _had(name, SUSPECT_AGAIN_S, draft):
            draft.tell("deep.suspect", f"{name}: {doubts[name]}; a deep check is asked for", node=name)
            new_run(DeepCause.SUSPECT, "steward", ALL_KINDS, frozenset({name}), draft)


def sweep(crowd: Crowd, draft: Draft) -> None:
    """The idle nodes whose last deep check is the longest ago, as many as may be at once, when no user's job waits."""
    rules = draft.want.deep
    if crowd.jobs or any(run.is_open for run in draft.deeps.values()):
        return
    due = [name for name in crowd.idle if _may_sweep(name, draft) and not _had(name, rules.sweep_period_s, draft)]
    chosen = sorted(due, key=lambda name: (_last(name, draft), len(name), name))[: crowd.room()]
    if chosen:
        new_run(DeepCause.SWEEP, "steward", ALL_KINDS, frozenset(chosen), draft)


def _may_sweep(name: NodeName, draft: Draft) -> bool:
    view = draft.seen.agents.get(name)
    return view is not None and view.connected and draft.cases.open_of(name) is None


def _had(name: NodeName, within_s: float, draft: Draft) -> bool:
    """A deep check of it goes on, or was over (whatever it said) or begun so lately."""
    return any(name in run.nodes and (run.is_open or draft.now < run.asked + within_s) for run in draft.deeps.values())


def _last(name: NodeName, draft: Draft) -> float:
    return max((run.asked for run in draft.deeps.values() if name in run.nodes), default=0.0)


# A new deep check, remembered.

SOON_S = 0.05


def new_run(
    cause: DeepCause,
    who: str,
    kinds: frozenset[DeepKind],
    nodes: frozenset[NodeName],
    draft: Draft,
    *,
    waiter: str = "",
) -> DeepRun:
    """The new check waits for its nodes; plans carry it on."""
    run = DeepRun(
        id=f"d{draft.next_case}",
        cause=cause,
        who=who,
        kinds=kinds,
        nodes=nodes,
        asked=draft.now,
        entered=draft.now,
        waiter=waiter,
    )
    draft.next_case += 1
    draft.wake(draft.now + SOON_S)
    draft.deeps.keep(run)
    words = ", ".join(sorted(kind.value for kind in kinds))
    draft.tell("deep.asked", f"deep check {run.id} ({words}) of {len(nodes)} nodes: {cause.value}, by {who}")
    return run
