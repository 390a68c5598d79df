"""The fault that a node's newest deep check found."""

from steward.model.case import Trigger
from steward.model.deep import DeepKind, DeepResult, DeepRun
from steward.model.health import Advice, Outcome
from steward.model.ids import NodeName
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.verdict import Fault, mode_of

CHECKS = {DeepKind.STRESS: "deep.stress", DeepKind.CONNECTIVITY: "deep.connectivity"}


def deep_fault(node: NodeName, draft: Draft) -> Fault | None:
    """Return the fault that the node's newest deep check found; None if there is none, or a repair or reboot since."""
    runs = [r for r in draft.deeps.values() if node in r.results and r.ended is not None]
    last = max(runs, key=lambda r: (r.ended or 0.0, r.id), default=None)
    if last is None or last.ended is None or last.is_for_return:
        return None
    if last.results[node] is not DeepResult.FAILED or _was_renewed(node, last.ended, draft):
        return None
    check = CHECKS[_failed_kind(last, node)]
    if mode_of(check, draft) != "drain":
        return None
    why = Why(rule="node.deep", text=f"deep check {last.id} failed on {node}", evidence=(last.why.get(node, ""),))
    return Fault(trigger=Trigger.DEGRADED, check=check, rung=Advice.REPLACE, why=why, at=last.ended)


def failed_deep(draft: Draft) -> frozenset[NodeName]:
    """Return the nodes that failed any remembered deep check."""
    said = (run.results.items() for run in draft.deeps.values() if not run.is_for_return)
    return frozenset(node for results in said for node, result in results if result is DeepResult.FAILED)


def _was_renewed(node: NodeName, at: float, draft: Draft) -> bool:
    """Return whether the node was rebooted, replaced or repaired after this time."""
    known, record = draft.seen.nodes.get(node), draft.slots.get(node)
    if known is not None and known.boot_time is not None and known.boot_time > at:
        return True
    if record is not None and record.launched is not None and record.launched > at:
        return True
    return any(case.opened >= at and not case.is_open for case in draft.cases.of(node))


def _failed_kind(run: DeepRun, node: NodeName) -> DeepKind:
    """Return the kind that failed on the node: by its own failed measure, or else by the first reason given."""
    own = [one for one in run.measures if one.node == node and one.partner is None]
    if len(run.kinds) == 1:
        return next(iter(run.kinds))
    if any(one.outcome is Outcome.FAILED for one in own):
        return DeepKind.STRESS
    first = run.why.get(node, "")
    paired = any(first.startswith(one.check) for one in run.measures if one.kind is DeepKind.CONNECTIVITY)
    return DeepKind.CONNECTIVITY if paired else DeepKind.STRESS
