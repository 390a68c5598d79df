"""Many agents that fall silent at once: one incident, in which a node is repaired only if it is surely gone."""

from collections.abc import Mapping
from dataclasses import replace

from steward.model.events import Level
from steward.model.ids import NodeName
from steward.model.memory import Incident
from steward.model.node_names import fold
from steward.policy.draft import Draft
from steward.policy.facts.gone import (
    count_reached,
    is_late,
    is_reached,
    most_are_reached,
    open_silence,
    why_confirmed_gone,
)
from steward.policy.facts.incidents import AGENTS, close_in_time, limit, without_acknowledged
from steward.policy.facts.serving import belongs_to_slot, is_being_verified
from steward.policy.facts.verdict import (
    Standing,
    has_left,
    is_awaited,
    missed_since,
    monitored_but_unheard,
    standing,
    went_with_host,
)
from steward.policy.traits import Trait, is_away_on_purpose

SPAN_S = 30.0
"""Agents that fall silent this close together have a common cause."""


def follow_silence(draft: Draft) -> None:
    """Open, extend and end the incident of silent agents.

    The incident has only nodes that fell silent together, and stays open until each node's fate is known.
    """
    note_unanswered(draft)
    _note_agents_back(draft)
    fallen = _silent_nodes(draft)
    silent = frozenset(name for name in fallen if not _is_known_gone(name, draft))
    together = close_in_time(fallen, SPAN_S, limit(draft))
    incident = open_silence(draft)
    if incident is not None:
        waits = ((incident.nodes | together) & silent) | _still_to_come(incident, draft)
        _extend_or_end(_with_known_gone(incident, waits, draft), waits, together, draft)
    elif waits := together & silent:
        _begin(together, waits, draft)


def _silent_nodes(draft: Draft) -> Mapping[NodeName, float]:
    """Return the nodes whose agent is late or lost, with the time when it was last heard or should have been.

    A node that is away on purpose does not count, nor one whose agent said that its host shuts down, nor one that is
    silent because its machine was ended or is not made yet. A node that was lost with others counts even when it is
    under repair.
    """
    found = {}
    for node in monitored_but_unheard(draft):
        known = draft.seen.nodes[node]
        if is_away_on_purpose(known) or (belongs_to_slot(known, draft) and not is_being_verified(node, draft)):
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
        # before its machine is ended and while it is verified, a repaired node has no reason to be silent
        elif not draft.cases.expects_no_agent(node):
            found[node] = at
    return without_acknowledged(AGENTS, found, draft)


def _lost_with_others(node: NodeName, draft: Draft) -> float | None:
    """Return when the incident began in which this node, now under repair, was lost; None if there is none."""
    incident = draft.incidents.get(AGENTS)
    if incident is None or node not in incident.known_gone or draft.cases.lost(node) is None:
        return None
    # the start of the incident is by our own clock, which may have been set; nodes that an outage takes soon after the
    # first ones count as silent together with this node
    return incident.since


def _is_known_gone(name: NodeName, draft: Draft) -> bool:
    """Return whether the node is known to be gone."""
    return draft.cases.lost(name) is not None or bool(why_confirmed_gone(draft.seen.nodes[name], draft))


def _begin(nodes: frozenset[NodeName], waits: frozenset[NodeName], draft: Draft) -> None:
    """Open the incident and say so."""
    text = _text(f"{len(nodes)} of {len(draft.seen.nodes)} agents went silent at once", waits, draft)
    draft.incidents[AGENTS] = Incident(
        kind=AGENTS, since=draft.now, nodes=nodes, fate_unknown=waits, known_gone=nodes - waits, text=text
    )
    draft.tell("incident.opened", f"{text} ({fold(nodes)})", level=Level.ERROR)


def _still_to_come(incident: Incident, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes that were waited for when the head restarted, and whose agents still have time to come."""
    nodes = draft.seen.nodes
    return frozenset(name for name in incident.fate_unknown if name in nodes and is_awaited(name, draft))


def _with_known_gone(incident: Incident, waits: frozenset[NodeName], draft: Draft) -> Incident:
    """Return the incident with its nodes that are gone brought up to date."""
    left = incident.nodes - waits
    # an agent that is heard under the name of a gone node is most likely a new machine, and no part of the incident
    heard = left.intersection(draft.overview.heard)
    gone = incident.known_gone.union(name for name in left - heard if not is_awaited(name, draft))
    return replace(incident, nodes=incident.nodes - (heard & incident.known_gone), known_gone=gone)


def _extend_or_end(incident: Incident, waits: frozenset[NodeName], together: frozenset[NodeName], draft: Draft) -> None:
    """Extend the incident, or end it when no node is waited for any more."""
    # if fewer nodes than the limit are gone or away, the incident ends after the grace; each is then judged by itself
    few = len(waits | incident.known_gone) < limit(draft)
    easing = (incident.below_limit_since if incident.below_limit_since is not None else draft.now) if few else None
    until = easing + draft.want.repair.agents_grace_s if easing is not None and waits else draft.now
    draft.wake(until)
    nodes, text = incident.nodes | together, _text(incident.text.partition(";")[0], waits, draft)
    if not waits or (few and draft.now >= until):
        took = draft.now - incident.since
        draft.tell("incident.over", f"{AGENTS}: over after {took:.0f} s; {len(waits)} still away")
        nodes = waits = frozenset()
    over = None if nodes else draft.now
    followed = replace(incident, nodes=nodes, fate_unknown=waits, text=text, below_limit_since=easing, over=over)
    draft.incidents[AGENTS] = followed


def _note_agents_back(draft: Draft) -> None:
    """Note, before nodes are judged, that an agent is heard again: the others get a while to follow."""
    incident = open_silence(draft)
    views = (draft.seen.agents.get(node) for node in (incident.fate_unknown if incident is not None else ()))
    if incident is not None and any(view is not None and view.is_heard for view in views):
        draft.incidents[AGENTS] = replace(incident, heard_again_at=draft.now)


def _text(what: str, waits: frozenset[NodeName], draft: Draft) -> str:
    """Return the text of the incident, with the reason why it stays open."""
    heard, missing = count_reached(draft)
    reached = f"{heard} of {heard + missing} nodes are reached"
    if not heard and waits and all(has_left(name, draft) for name in waits):
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


def note_unanswered(draft: Draft) -> None:
    """Remember since when the slurmd of a lost node does not answer; forget it once slurmd or the agent is reached."""
    unheard = draft.ground.agents.having(Trait.UNHEARD)
    for name in sorted(draft.overview.remembered("silent_since")):
        view = draft.seen.agents.get(name)
        if view is not None and (name not in draft.seen.nodes or is_reached(view, draft)):
            draft.nodes.note(name, silent_since=None)
    for name in sorted(unheard):
        node = draft.seen.nodes.get(name)
        if node is None or is_reached(draft.seen.agents[name], draft):
            continue
        if draft.nodes.of(name).silent_since is None and standing(node, draft).standing is Standing.LOST:
            draft.nodes.note(name, silent_since=draft.now)
