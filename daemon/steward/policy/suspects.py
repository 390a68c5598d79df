"""Nodes that something speaks against without proof: a deep check at their next idle moment shall tell."""

from steward.model.health import Finding, Scope, Severity
from steward.model.ids import NodeName
from steward.policy.correlate import in_incident
from steward.policy.draft import Draft
from steward.policy.slot_cases import is_between
from steward.policy.verdict import mode_of

AGAIN_S = 7 * 86400.0
_REBOOTED = "slurm.rebooted"


def suspects(draft: Draft) -> dict[NodeName, str]:
    """Node -> why it should be looked into. Never a node under repair, on its way in or out, or somebody else's; never
    for a fault that many have at once. A suspicion alone takes no node out of service."""
    found = {}
    for node in draft.sorted_nodes():
        if draft.open_case(node.name) is not None or is_between(node, draft) or node.is_foreign:
            continue
        if why := _doubt(node.name, draft) or _rebooted_again(node.name, draft):
            found[node.name] = why
    return found


def _doubt(node: NodeName, draft: Draft) -> str:
    view = draft.seen.agents.get(node)
    if view is None or not view.connected:
        return ""
    doubts = sorted((f for f in view.findings if _is_doubt(f, node, draft)), key=lambda f: (f.check, f.at, f.text))
    return f"check {doubts[0].check}: {doubts[0].text}" if doubts else ""


def _is_doubt(finding: Finding, node: NodeName, draft: Draft) -> bool:
    if not finding.is_bad or finding.severity is not Severity.SUSPECT or finding.scope is Scope.CLUSTER:
        return False
    return mode_of(finding.check, draft) == "drain" and not in_incident(node, f"check:{finding.check}", draft)


def _rebooted_again(node: NodeName, draft: Draft) -> str:
    """A machine that reboots by itself twice in a week passed its checks after the first time."""
    kept = (r for many in draft.remedies.values() for r in many if r.node == node and r.check == _REBOOTED)
    times = {r.case for r in kept if r.at > draft.now - AGAIN_S}
    return f"rebooted unexpectedly {len(times)} times in a week" if len(times) > 1 else ""
