"""Doubts about a node: signs of a fault without proof, for which a deep check is made."""

from collections import defaultdict
from collections.abc import Mapping

from steward.model.health import Finding, Scope, Severity
from steward.model.ids import CaseId, NodeName
from steward.model.text import times
from steward.policy.draft import Draft
from steward.policy.facts.incidents import in_incident
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.facts.verdict import mode_of

AGAIN_S = 7 * 86400.0
"""Two unexpected reboots within this time make a node suspect."""
_REBOOTED = "slurm.rebooted"


def nodes_to_deep_check(draft: Draft) -> dict[NodeName, str]:
    """Return the nodes that should be deep-checked, with the reason.

    Left out are nodes under repair, on their way in or out, or taken out by a person, and faults that many nodes have
    at once. A suspicion alone takes no node out of service.
    """
    found, again = {}, rebooted_again(draft)
    names = again.keys() | set(draft.overview.finding)
    for node in (draft.seen.nodes[name] for name in sorted(names) if name in draft.seen.nodes):
        why = suspicion_against(node.name, again, draft)
        if why and draft.cases.open_of(node.name) is None and not belongs_to_slot(node, draft) and not node.is_foreign:
            found[node.name] = why
    return found


def suspicion_against(node: NodeName, again: Mapping[NodeName, str], draft: Draft) -> str:
    """Return the suspicion against a node without proof; empty if there is none. `again` is from `rebooted_again`."""
    return _doubt(node, draft) or again.get(node, "")


def _doubt(node: NodeName, draft: Draft) -> str:
    """Return the suspicion that the node's findings raise; empty if they raise none."""
    view = draft.seen.agents.get(node)
    if view is None or not view.connected or not view.findings:
        return ""
    doubts = sorted((f for f in view.findings if _is_doubt(f, node, draft)), key=lambda f: (f.check, f.at, f.text))
    return f"check {doubts[0].check}: {doubts[0].text}" if doubts else ""


def _is_doubt(finding: Finding, node: NodeName, draft: Draft) -> bool:
    """Return whether the finding raises a suspicion."""
    if not finding.is_bad or finding.severity is not Severity.SUSPECT or finding.scope is Scope.CLUSTER:
        return False
    return mode_of(finding.check, draft) == "drain" and not in_incident(node, f"check:{finding.check}", draft)


def rebooted_again(draft: Draft) -> dict[NodeName, str]:
    """Return the nodes that rebooted by themselves twice in a week, with the reason to check them."""
    cases: defaultdict[NodeName, set[CaseId]] = defaultdict(set)
    for remedy in (r for many in draft.remedies.values() for r in many):
        if remedy.check == _REBOOTED and remedy.at > draft.now - AGAIN_S:
            cases[remedy.node].add(remedy.case)
    return {node: f"rebooted unexpectedly {times(len(of))} in a week" for node, of in cases.items() if len(of) > 1}
