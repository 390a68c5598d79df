"""Faults with a common cause: many nodes at once are one incident of the cluster, and no node is repaired for it."""

from collections.abc import Mapping

from steward.model.case import Case, CaseStep
from steward.model.ids import NodeName
from steward.model.memory import Incident
from steward.policy.draft import Draft
from steward.policy.facts.slurm_faults import is_light_response, out_by_reason

CHECK, SHARED = "check:", "shared:"
SHARE = 0.05
"""The same fault on this share of all nodes at once counts as one incident."""
AGENTS = "agents"
"""The incident of many agents that are late or lost at once."""


def in_incident(node: NodeName, kind: str, draft: Draft) -> bool:
    """Return whether the node is in an incident of this kind that goes on."""
    incident = draft.incidents.get(kind)
    return incident is not None and incident.over is None and node in incident.nodes


def is_going_on(kind: str, draft: Draft) -> bool:
    """Return whether an incident of this kind goes on; meanwhile no new node is repaired for its cause."""
    incident = draft.incidents.get(kind)
    return incident is not None and incident.over is None


SCOUT_FIRST_S, SCOUT_EVERY_S = 10.0, 60.0
"""How long after the incident began the first scout is chosen, and the longest time from one scout to the next."""


def is_scout(node: NodeName, kind: str, draft: Draft) -> bool:
    """Return whether this node is the incident's scout: the one node that is repaired while the incident goes on."""
    # Slurm's reasons stay until their nodes are given back, and the incident goes on while they stay: a scout that
    # serves again shows that the cause is gone
    incident = draft.incidents.get(kind)
    if incident is None or incident.over is not None:
        return False
    of_kind = [c for c in draft.cases.values() if f"{CHECK}{c.check}" == kind and c.is_of_reason]
    tried = [c for c in of_kind if c.is_open and not c.waits_for_person and not _waits_for_jobs(c, draft)]
    if tried:
        return min(tried, key=lambda case: (case.opened, case.id)).node == node
    due = _next_scout_at(incident)
    draft.wake(due)
    return draft.now >= due and node == _next_scout(kind, incident, draft)


def _next_scout_at(incident: Incident) -> float:
    """Return when the next scout is due (Unix s): the longer the incident lasts, the more rarely."""
    last = incident.scouted_at if incident.scouted_at is not None else incident.since
    return last + min(max(last - incident.since, SCOUT_FIRST_S), SCOUT_EVERY_S)


def _next_scout(kind: str, incident: Incident, draft: Draft) -> NodeName | None:
    """Return the node that was tried least often since the incident began; None if there is none."""
    out = ((node.name, row) for node, row in out_by_reason(draft) if f"{CHECK}{row.check}" == kind)
    names = [name for name, row in out if is_light_response(row) and name in incident.nodes]
    names = [name for name in names if draft.cases.open_of(name) is None and not _is_busy(name, draft)]
    return min(names, key=lambda name: (_tries_of(name, incident, draft), len(name), name), default=None)


def _waits_for_jobs(case: Case, draft: Draft) -> bool:
    """Return whether the repair waits for jobs to end on the node."""
    return case.step is CaseStep.RELEASE and _is_busy(case.node, draft)


def _is_busy(name: NodeName, draft: Draft) -> bool:
    """Return whether jobs run on the node."""
    node = draft.seen.nodes.get(name)
    return node is not None and node.is_busy


def _tries_of(node: NodeName, incident: Incident, draft: Draft) -> int:
    """Return how often the node was tried since the incident began."""
    return sum(case.opened >= incident.since for case in draft.cases.of(node))


def limit(draft: Draft) -> int:
    """Return from how many nodes on the same fault at once is one incident."""
    rules = draft.want.repair
    return max(rules.correlated_min, int(SHARE * max(len(draft.seen.nodes), len(draft.agents))))


def without_acknowledged(kind: str, found: dict[NodeName, float], draft: Draft) -> dict[NodeName, float]:
    """Return the faults without those that an ended incident of this kind covered: such nodes are judged one by one."""
    incident = draft.incidents.get(kind)
    if incident is None or incident.over is None:
        return found
    return {n: at for n, at in found.items() if n not in incident.nodes or at > incident.over}


def close_in_time(found: Mapping[NodeName, float], span: float, many: int) -> frozenset[NodeName]:
    """Return the nodes that have the fault within `span` seconds of each other, if they are at least `many`."""
    ordered = sorted(found.items(), key=lambda item: (item[1], item[0]))
    crowd: list[NodeName] = []
    start = taken = 0
    for end, (_, at) in enumerate(ordered):
        while at - ordered[start][1] > span:
            start += 1
        if end - start + 1 >= many:
            crowd += (node for node, _ in ordered[max(start, taken) : end + 1])
            taken = end + 1
    return frozenset(crowd)
