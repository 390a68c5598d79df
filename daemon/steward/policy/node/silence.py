"""Many agents that fall silent at once: one incident, in which a node is touched only where it is surely gone."""

from collections.abc import Mapping
from dataclasses import replace

from steward.model.events import Level
from steward.model.ids import NodeName
from steward.model.memory import Incident
from steward.model.node_names import fold
from steward.policy.draft import Draft
from steward.policy.groups.serving import is_being_verified, is_between
from steward.policy.node.correlate import AGENTS, crowded, in_incident, limit, without_acknowledged
from steward.policy.node.gone import (
    gone,
    gone_by_word,
    is_late,
    most_are_reached,
    note_unanswered,
    open_silence,
    reach,
)
from steward.policy.node.verdict import has_left, is_awaited, missable, missed_since, went_with_host
from steward.policy.traits import is_away_on_purpose


def follow_silence(draft: Draft) -> None:
    """Open, extend and end the incident of silent agents. It has the nodes that fell silent together, no others, and
    waits for those of them of which nobody knows."""
    note_unanswered(draft)
    _note_who_is_back(draft)
    fallen = away(draft)
    silent = frozenset(name for name in fallen if not _is_known_gone(name, draft))
    together = crowded(fallen, draft.want.repair.correlated_span_s, limit(draft))
    incident = open_silence(draft)
    if incident is not None:
        waits = ((incident.nodes | together) & silent) | _still_to_come(incident, draft)
        _follow(_told_apart(incident, waits, draft), waits, together, draft)
    elif waits := together & silent:
        _begin(together, waits, draft)


def away(draft: Draft) -> Mapping[NodeName, float]:
    """Nodes whose agent is late or lost -> when it was last heard, or should have been.

    One that is under repair, or on its way in or out of an API group, is silent because we ended its machine, or made
    none yet; but before that, and while it is verified, it has nothing to be silent for, and one that was lost with
    others fell silent by itself. One that somebody took away on purpose has a reason, too, as has one whose agent
    said that its host shuts down.
    """
    found = {}
    for node in missable(draft):
        known = draft.seen.nodes[node]
        if is_away_on_purpose(known) or (is_between(known, draft) and not is_being_verified(node, draft)):
            continue
        view = draft.seen.agents.get(node)
        if view is not None and went_with_host(view, draft):
            continue
        missed = missed_since(known, draft)
        if missed is None and not is_late(view):
            continue
        heard = view.last_heard if view is not None else 0.0
        at = max(heard, draft.nodes.of(node).back_at or 0.0) or missed or draft.now
        if (began := _lost_with_others(node, draft)) is not None:
            found[node] = began
        elif not draft.cases.expects_no_agent(node):
            found[node] = at
    return without_acknowledged(AGENTS, found, draft)


def _lost_with_others(node: NodeName, draft: Draft) -> float | None:
    """When the incident began with which this node, now under repair, was lost, by our own clock, which may have been
    set just before. An outage may take more nodes soon after the first ones."""
    incident = draft.incidents.get(AGENTS)
    if incident is None or node not in incident.gone or draft.cases.lost(node) is None:
        return None
    return incident.since


def _is_known_gone(name: NodeName, draft: Draft) -> bool:
    return draft.cases.lost(name) is not None or bool(gone_by_word(draft.seen.nodes[name], draft))


def is_withheld(node: NodeName, draft: Draft) -> bool:
    """Whether nothing is done about a lost node because it fell silent with many, and nobody says that it is gone."""
    return in_incident(node, AGENTS, draft) and not gone(draft.seen.nodes[node], draft)


def waited_for(draft: Draft) -> frozenset[NodeName]:
    """Nodes that fell silent together and of which nobody knows: no job is started there."""
    incident = open_silence(draft)
    return incident.waits if incident is not None else frozenset()


def _begin(nodes: frozenset[NodeName], waits: frozenset[NodeName], draft: Draft) -> None:
    text = _text(f"{len(nodes)} of {len(draft.seen.nodes)} agents went silent at once", waits, draft)
    draft.incidents[AGENTS] = Incident(
        kind=AGENTS, since=draft.now, nodes=nodes, waits=waits, gone=nodes - waits, text=text
    )
    draft.tell("incident.opened", f"{text} ({fold(nodes)})", level=Level.ERROR)


def _still_to_come(incident: Incident, draft: Draft) -> frozenset[NodeName]:
    """Nodes that were waited for when the head was started anew, and whose agents have a while to come."""
    nodes = draft.seen.nodes
    return frozenset(name for name in incident.waits if name in nodes and is_awaited(name, draft))


def _told_apart(incident: Incident, waits: frozenset[NodeName], draft: Draft) -> Incident:
    """With those that turned out to be gone. What is heard under the name of one is most likely a new machine, and no
    part of the incident."""
    left = incident.nodes - waits
    heard = left.intersection(draft.overview.heard)
    gone = incident.gone.union(name for name in left - heard if not is_awaited(name, draft))
    return replace(incident, nodes=incident.nodes - (heard & incident.gone), gone=gone)


def _follow(incident: Incident, waits: frozenset[NodeName], together: frozenset[NodeName], draft: Draft) -> None:
    """The incident is over when nothing is waited for. Where few did not come back each is judged by itself in time;
    that others are gone says nothing of those of which nobody knows."""
    few = len(waits | incident.gone) < limit(draft)
    easing = (incident.easing if incident.easing is not None else draft.now) if few else None
    until = easing + draft.want.repair.agents_grace_s if easing is not None and waits else draft.now
    draft.wake(until)
    nodes, text = incident.nodes | together, _text(incident.text.partition(";")[0], waits, draft)
    if not waits or (few and draft.now >= until):
        took = draft.now - incident.since
        draft.tell("incident.over", f"{AGENTS}: over after {took:.0f} s; {len(waits)} still away")
        nodes = waits = frozenset()
    over = None if nodes else draft.now
    followed = replace(incident, nodes=nodes, waits=waits, text=text, easing=easing, over=over)
    draft.incidents[AGENTS] = followed


def _note_who_is_back(draft: Draft) -> None:
    """Before anybody is judged: where one is heard again, the others have a while to follow."""
    incident = open_silence(draft)
    views = (draft.seen.agents.get(node) for node in (incident.waits if incident is not None else ()))
    if incident is not None and any(view is not None and view.is_heard for view in views):
        draft.incidents[AGENTS] = replace(incident, back=draft.now)


def _text(what: str, waits: frozenset[NodeName], draft: Draft) -> str:
    """With what is waited for."""
    heard, missing = reach(draft)
    reached = f"{heard} of {heard + missing} nodes are reached"
    views = [draft.seen.agents.get(name) for name in waits]
    if not heard and views and all(view is not None and has_left(view, draft) for view in views):
        until = "all of them were told to end: nothing is done until one is heard again or its provider says that it is"
        until += " gone"
    elif not heard:
        until = "the head reaches no node, probably its own network is down: nothing is done until one is heard again"
    elif most_are_reached(draft):
        until = f"{reached}: silent ones with jobs to bring back are taken out after a while, the others when Slurm"
        until += " or the provider says that they are gone"
    else:
        until = (
            f"{reached}, too few to tell who is cut off: a silent one is taken out when Slurm, the provider or agents"
        )
        until += " that are heard say that it is gone"
    return f"{what}; {until}"
