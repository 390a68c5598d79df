"""Faults with a common cause: open an incident for many nodes at once, extend it and end it."""

from collections import defaultdict
from dataclasses import replace

from steward.model.events import Level
from steward.model.health import Scope
from steward.model.ids import NodeName
from steward.model.memory import Incident
from steward.model.node_names import fold
from steward.policy.draft import Draft
from steward.policy.facts.deep_faults import deep_fault, failed_deep
from steward.policy.facts.incidents import AGENTS, CHECK, SHARED, close_in_time, limit, without_acknowledged
from steward.policy.facts.slurm_faults import out_by_reason
from steward.policy.facts.users_faults import AT_WILL
from steward.policy.facts.verdict import is_awaited, may_act_on, mode_of

Found = defaultdict[str, dict[NodeName, float]]
"""Kind of incident -> node -> since when the node has the fault."""


_WINDOW_S = 300.0
"""The same fault on many nodes within this time counts as one incident."""


def find_incidents(draft: Draft) -> None:
    """Open, extend and end incidents."""
    found, least = Found(dict), dict[str, int]()
    _add_findings(found, draft)
    _add_slurms_own(found, least, draft)
    _add_failed_deep(found, draft)
    for kind in sorted(found.keys() | _open_kinds(draft)):
        _update(kind, without_acknowledged(kind, found.get(kind, {}), draft), draft, least.get(kind))


def _add_findings(found: Found, draft: Draft) -> None:
    """Add nodes by the checks that they fail; a finding about a shared thing is an incident from one node on."""
    for node in draft.overview.finding:
        for one in draft.seen.agents[node].findings:
            if not (one.is_bad and one.severity.takes_out):
                continue
            if may_act_on(one, draft):
                nodes = found[f"{CHECK}{one.check}"]
                nodes[node] = min(one.at, nodes.get(node, one.at))
            elif one.scope is Scope.CLUSTER and mode_of(one.check, draft) != "off":
                found[f"{SHARED}{one.check}"].setdefault(node, one.at)


def _add_slurms_own(found: Found, least: dict[str, int], draft: Draft) -> None:
    """Add nodes by Slurm's reason for taking them out of service; `least` gets the kinds' own limits."""
    for node, row in out_by_reason(draft):
        found[kind := f"{CHECK}{row.check}"][node.name] = node.reason.at if node.reason else draft.now
        all_nodes = max(2, len(draft.seen.nodes))
        # some reasons, such as a failing prolog, have a common cause from fewer nodes on; no limit exceeds the cluster
        least[kind] = min(row.shared_from or limit(draft), limit(draft), all_nodes)


def _add_failed_deep(found: Found, draft: Draft) -> None:
    """Add nodes that failed a deep check."""
    for node in failed_deep(draft):
        # if many fail at once, the measures or a shared thing are likelier at fault
        fault = deep_fault(node, draft)
        if fault is not None:
            found[f"{CHECK}{fault.check}"][node] = fault.at


def _open_kinds(draft: Draft) -> set[str]:
    """Return the kinds of the incidents that go on, without that of silent agents."""
    return {kind for kind, one in draft.incidents.items() if one.over is None and kind != AGENTS}


def note_scouted(kind: str, draft: Draft) -> None:
    """Note that the scout could not be given back: the cause is still there."""
    incident = draft.incidents.get(kind)
    if incident is not None and incident.over is None:
        draft.incidents[kind] = replace(incident, scouted_at=draft.now)


def _given_back(kind: str, incident: Incident, draft: Draft) -> NodeName | None:
    """Return a node of the incident that was repaired and given back since it began; None if there is none."""
    cases = (case for node in sorted(incident.nodes) for case in draft.cases.of(node))
    its = (c for c in cases if f"{CHECK}{c.check}" == kind and c.is_of_reason)
    return next((c.node for c in its if c.returned is not None and c.returned >= incident.since), None)


def _update(kind: str, found: dict[NodeName, float], draft: Draft, least: int | None = None) -> None:
    """Open, extend or end the incident of one kind. `least`: how many nodes make it, if not the usual limit."""
    many = 1 if kind.startswith(SHARED) else least or limit(draft)
    incident = draft.incidents.get(kind)
    if incident is None or incident.over is not None:
        if close_in_time(found, _WINDOW_S, many):
            _begin(kind, found, draft)
        return
    if (back := _given_back(kind, incident, draft)) is not None:
        text = f"{kind}: over, {back} serves again; the others are given back in their turn"
        draft.tell("incident.over", text)
        draft.incidents[kind] = replace(incident, nodes=incident.nodes | set(found), over=draft.now)
        return
    nodes, left = incident.nodes | set(found), found.keys() | _unreported(incident, draft)
    if len(left) >= many:
        draft.incidents[kind] = replace(incident, nodes=nodes, below_limit_since=None)
        return
    easing = incident.below_limit_since if incident.below_limit_since is not None else draft.now
    until = easing if not left else easing + draft.want.repair.agents_grace_s
    draft.wake(until)
    draft.incidents[kind] = replace(incident, nodes=nodes, below_limit_since=easing)
    if draft.now >= until:
        draft.tell("incident.over", f"{kind}: over after {draft.now - incident.since:.0f} s; {len(found)} still away")
        draft.incidents[kind] = replace(incident, nodes=frozenset(), below_limit_since=easing, over=draft.now)


def _unreported(incident: Incident, draft: Draft) -> frozenset[NodeName]:
    """Return the incident's nodes whose agents have not reported yet to a newly started head."""
    here = incident.nodes & draft.seen.nodes.keys()
    return frozenset(name for name in here if is_awaited(name, draft) or _has_not_reported(name, draft))


def _has_not_reported(node: NodeName, draft: Draft) -> bool:
    """Return whether the node's agent is connected and has not reported yet."""
    view = draft.seen.agents.get(node)
    return view is not None and view.connected and not view.reported_at


def _begin(kind: str, found: dict[NodeName, float], draft: Draft) -> None:
    """Open an incident and say so."""
    text = f"{len(found)} of {len(draft.seen.nodes)} {_in_common(kind)}, no node is touched for it"
    draft.incidents[kind] = Incident(kind=kind, since=draft.now, nodes=frozenset(found), text=text)
    draft.tell("incident.opened", text + f" ({fold(found)})", level=Level.ERROR)


def _in_common(kind: str) -> str:
    """Return what the nodes of an incident have in common, in words."""
    if kind.startswith(SHARED):
        return f"nodes report a shared fault ({kind.removeprefix(SHARED)}): a fault of the cluster"
    if kind.removeprefix(CHECK) in AT_WILL:
        return f"nodes were taken out for what a job can bring about ({kind.removeprefix(CHECK)})"
    return f"nodes fail {kind.removeprefix(CHECK)} at once: one cause in common"
