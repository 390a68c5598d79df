"""Faults with a cause in common: many nodes at once are one incident of the cluster, and no node is touched for it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from steward.model.events import Level
from steward.model.health import Scope
from steward.model.ids import NodeName
from steward.model.memory import Incident
from steward.policy.absence import is_away_on_purpose, there_again
from steward.policy.deep_outcome import deep_fault, failed_deep
from steward.policy.draft import Draft
from steward.policy.slot_cases import is_being_verified, is_between
from steward.policy.slurm_faults import out_by_reason
from steward.policy.verdict import may_act_on, missed_since, mode_of

CHECK, SHARED = "check:", "shared:"
AGENTS = "agents"
"""The incident of many agents that are late or lost at once."""


Found = defaultdict[str, dict[NodeName, float]]
"""Kind of incident -> the nodes that have it -> since when."""


def find_incidents(draft: Draft) -> None:
    """Open, extend and end incidents."""
    _update(AGENTS, away(draft), draft)
    found, least = Found(dict), dict[str, int]()
    _of_findings(found, draft)
    _of_slurm(found, least, draft)
    _of_deeps(found, draft)
    for kind in sorted(found.keys() | _open_kinds(draft)):
        _update(kind, _without_acknowledged(kind, found.get(kind, {}), draft), draft, least.get(kind))


def _of_findings(found: Found, draft: Draft) -> None:
    """Many nodes that fail one check; a finding about a shared thing is an incident from the first node on."""
    for node, view in draft.seen.agents.items():
        for one in view.findings:
            if not (one.is_bad and one.severity.takes_out):
                continue
            if may_act_on(one, draft):
                nodes = found[f"{CHECK}{one.check}"]
                nodes[node] = min(one.at, nodes.get(node, one.at))
            elif one.scope is Scope.CLUSTER and mode_of(one.check, draft) != "off":
                found[f"{SHARED}{one.check}"].setdefault(node, one.at)


def _of_slurm(found: Found, least: dict[str, int], draft: Draft) -> None:
    """Many nodes that Slurm took out of service for one reason; a prolog that fails is soon a bug of the script."""
    for node, row in out_by_reason(draft):
        found[kind := f"{CHECK}{row.check}"][node.name] = node.reason.at if node.reason else draft.now
        least[kind] = min(row.shared_from or limit(draft), limit(draft))


def _of_deeps(found: Found, draft: Draft) -> None:
    """Many nodes that failed a deep check at once: its measures, or what they have in common, are likelier at fault."""
    for node in failed_deep(draft):
        fault = deep_fault(node, draft)
        if fault is not None:
            found[f"{CHECK}{fault.check}"][node] = fault.at


def _open_kinds(draft: Draft) -> set[str]:
    return {kind for kind, one in draft.incidents.items() if one.over is None and kind != AGENTS}


def in_incident(node: NodeName, kind: str, draft: Draft) -> bool:
    incident = draft.incidents.get(kind)
    return incident is not None and incident.over is None and node in incident.nodes


def covers(kind: str, draft: Draft) -> bool:
    """Whether an incident of this kind goes on: no new node is touched for its cause meanwhile."""
    incident = draft.incidents.get(kind)
    return incident is not None and incident.over is None


def limit(draft: Draft) -> int:
    """How many nodes at once are too many to be faults of their own."""
    rules = draft.want.repair
    return max(rules.correlated_min, int(rules.correlated_fraction * max(len(draft.seen.nodes), len(draft.agents))))


def away(draft: Draft) -> dict[NodeName, float]:
    """Nodes whose agent is late or lost and that are under no repair -> when it was last heard, or should have been.

    One that is on its way in or out of an API group is silent because we ended its machine, or made none yet; but
    while it is verified it has nothing to be silent for. One that somebody took away on purpose has a reason, too.
    """
    found = {}
    for node, known in draft.seen.nodes.items():
        if is_away_on_purpose(known) or (is_between(known, draft) and not is_being_verified(node, draft)):
            continue
        view = draft.seen.agents.get(node)
        missed = missed_since(known, draft)
        late = view is not None and view.connected and view.late
        if (missed is None and not late) or draft.case_in_work(node) is not None:
            continue
        heard = view.last_heard if view is not None else 0.0
        found[node] = max(heard, there_again(node, draft) or 0.0) or missed or draft.now
    return _without_acknowledged(AGENTS, found, draft)


def _without_acknowledged(kind: str, found: dict[NodeName, float], draft: Draft) -> dict[NodeName, float]:
    """A person who reset the actions took note of these nodes: each is judged on its own from then on. Nobody did of
    those of an incident that ended by itself."""
    incident = draft.incidents.get(kind)
    if incident is None or incident.over is None:
        return found
    return {n: at for n, at in found.items() if n not in incident.nodes or at > incident.over}


def _span(kind: str, draft: Draft) -> float:
    rules = draft.want.repair
    return rules.correlated_span_s if kind == AGENTS else rules.correlated_window_s


def crowd(times: Iterable[float], span: float) -> int:
    """The most events that lie within any `span` seconds."""
    ordered = sorted(times)
    most = start = 0
    for end, at in enumerate(ordered):
        while at - ordered[start] > span:
            start += 1
        most = max(most, end - start + 1)
    return most


def _update(kind: str, found: dict[NodeName, float], draft: Draft, least: int | None = None) -> None:
    """`least`: so many nodes are an incident, where it is not the usual limit."""
    many = 1 if kind.startswith(SHARED) else least or limit(draft)
    incident = draft.incidents.get(kind)
    if incident is None or incident.over is not None:
        if crowd(found.values(), _span(kind, draft)) >= many:
            _begin(kind, found, draft)
        return
    nodes = incident.nodes | set(found)
    if len(found) >= many:
        draft.incidents[kind] = replace(incident, nodes=nodes, easing=None)
        return
    easing = incident.easing if incident.easing is not None else draft.now
    until = easing if not found else easing + draft.want.repair.agents_grace_s
    draft.wake(until)
    draft.incidents[kind] = replace(incident, nodes=nodes, easing=easing)
    if draft.now >= until:
        draft.tell("incident.over", f"{kind}: over after {draft.now - incident.since:.0f} s; {len(found)} still away")
        draft.incidents[kind] = replace(incident, nodes=frozenset(), easing=easing, over=draft.now)


def _begin(kind: str, found: dict[NodeName, float], draft: Draft) -> None:
    text = f"{len(found)} of {len(draft.seen.nodes)} {_what(kind)}, no node is touched for it"
    draft.incidents[kind] = Incident(kind=kind, since=draft.now, nodes=frozenset(found), text=text)
    draft.tell("incident.opened", text + f" ({', '.join(sorted(found)[:20])})", level=Level.ERROR)


def _what(kind: str) -> str:
    if kind == AGENTS:
        return "agents went silent at once: one cause in common"
    if kind.startswith(SHARED):
        return f"nodes tell of a shared fault ({kind.removeprefix(SHARED)}): a fault of the cluster"
    return f"nodes fail {kind.removeprefix(CHECK)} at once: one cause in common"
