"""A new deep check, remembered."""

from steward.model.deep import DeepCause, DeepKind, DeepRun
from steward.model.ids import NodeName
from steward.policy.draft import Draft

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
    draft.runs.keep(run)
    words = ", ".join(sorted(kind.value for kind in kinds))
    draft.tell("deep.asked", f"deep check {run.id} ({words}) of {len(nodes)} nodes: {cause.value}, by {who}")
    return run
