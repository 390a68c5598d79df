"""Nodes whose host shuts down in good order, as their agents or providers announced.

Such a host ends its jobs first: by a signal, which a script may answer with any code, or with 0 after it saved. A
provider warns minutes before, and a job that hears of the warning may end itself: an end with 0 then counts as
complete.
"""

from steward.model.ids import NodeName
from steward.policy.draft import Draft
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.traits import is_away_on_purpose

BEFORE_S = 2.0
"""Agent and jobs are told to end at once. The agent's word may take a second, and Slurm tells whole seconds."""
AFTER_S = 1.0
"""A planned shutdown may have waited for the end of the last job: only later ends of jobs are due to it."""
LISTED_S = 60.0
"""Machines are listed now and then: a job may have heard its provider's warning this much earlier."""


def stops_from(node: NodeName, draft: Draft) -> float | None:
    """Return since when (Unix s) a shutdown of the node's host may have ended runs; None: its agent reported none."""
    kept, told = draft.nodes.of(node).shutdown_from, reported_stop(node, draft)
    if kept is None or told is None:
        return told if kept is None else kept
    return told if kept < told - (BEFORE_S + AFTER_S) else kept


def reclaimed_from(node: NodeName, draft: Draft) -> float | None:
    """Return since when (Unix s) runs may have failed because the provider reclaims the node's machine.

    None: no provider said so, or another machine is there.
    """
    at = draft.nodes.of(node).reclaimed_from
    return None if at is None else at - LISTED_S


def stopped_nodes(since: float, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes whose agents reported a shutdown since then (Unix s)."""
    told = [name for name in draft.overview.unheard if reported_stop(name, draft) is not None]
    kept = [name for name, of in draft.nodes.items() if of.shutdown_from is not None and of.shutdown_from >= since]
    return frozenset([*told, *kept])


def reported_stop(node: NodeName, draft: Draft) -> float | None:
    """Return since when a reported shutdown may have ended runs on the node; None: there is no report."""
    view = draft.seen.agents.get(node)
    if view is None or not view.host_ends or view.connected or view.lost_at is None:
        return None
    return view.lost_at + AFTER_S if _is_planned(node, view.lost_at, draft) else view.lost_at - BEFORE_S


def _is_planned(name: NodeName, at: float, draft: Draft) -> bool:
    """Return whether the node is taken away on purpose, after its jobs have ended."""
    node = draft.seen.nodes[name]
    record = draft.slots.get(name)
    instance = draft.instance(record.instance) if record is not None else None
    # a provider that reclaims a machine waits for nothing
    if instance is not None and instance.interrupted:
        return False
    case = draft.cases.in_work(name)
    is_repaired = case is not None and case.opened < at and draft.cases.expects_no_agent(name)
    return is_repaired or is_away_on_purpose(node) or belongs_to_slot(node, draft)
