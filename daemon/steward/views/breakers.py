"""Name the repairs that tripped breakers withhold now. A breaker's text says why it tripped, maybe long ago."""

from collections.abc import Mapping

from steward.model.case import CaseStep
from steward.model.ids import NodeName
from steward.model.memory import Breaker
from steward.model.node import Node
from steward.model.node_names import fold
from steward.model.text import time_left
from steward.policy.case.suspicion import fault_of, is_surely_gone, mark_word, why_withheld
from steward.policy.draft import Draft
from steward.policy.guards.breaker import tripped

Withheld = Mapping[str, tuple[NodeName, ...]]
"""The nodes whose repair each tripped breaker withholds, by the breaker's scope."""


def withheld_repairs(draft: Draft) -> Withheld:
    """Return the repairs that each tripped breaker withholds now."""
    found: dict[str, tuple[NodeName, ...]] = dict.fromkeys(sorted(draft.breakers), ())
    if not found:
        return found
    deep = {name for run in draft.deeps.values() for name in run.results}
    told = {*draft.overview.unheard, *draft.overview.finding, *deep}
    for name, node in sorted(draft.seen.nodes.items()):
        if name in told or node.reason is not None:
            breaker = _holder(node, draft)
            found |= {breaker.scope: (*found[breaker.scope], name)} if breaker is not None else {}
    return found


def _holder(node: Node, draft: Draft) -> Breaker | None:
    """Return the breaker that is the only reason why the node's repair does not begin; None if there is none."""
    case = draft.cases.open_of(node.name)
    if case is not None and case.step is not CaseStep.SUSPECT:
        return None
    fault = fault_of(node, draft)
    if fault is None or is_surely_gone(node, fault, draft):
        return None
    breaker = tripped(node.name, mark_word(fault.check) if case is None else case.check, draft, case)
    if breaker is None or (case is None and why_withheld(node, fault, draft) != breaker.text):
        return None
    return breaker


def now_line(breaker: Breaker, nodes: tuple[NodeName, ...], now: float) -> str:
    """Return what the breaker withholds now, and what ends that."""
    if breaker.next_try is None:
        return breaker.text
    due = f"`steward breaker reset {breaker.scope}` ends that"
    if breaker.trial is not None:
        due = f"it closes when repair {breaker.trial} ends well; {due}"
    elif breaker.next_try > now:
        due = f"a first repair is let through {time_left(breaker.next_try, now)}; {due}"
    else:
        due = f"the next repair is let through as its trial; {due}"
    held = f"withholds the repair of {fold(nodes)} now" if nodes else "withholds nothing now"
    return f"{held}: {due}"
