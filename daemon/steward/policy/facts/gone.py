"""Whether a node whose agent is silent is surely gone, although the head itself may be cut off.

If many agents fall silent at once, the head may be cut off. Then a node counts as gone only if the provider, Slurm or
the agent's last message says so. For a node whose jobs are to be brought back, looks at its slurmd count, too: by
agents that are heard, or by the head if it reaches most nodes.
"""

from steward.model.ids import JobId, NodeName
from steward.model.memory import Incident
from steward.model.node import Node
from steward.model.observed import AgentView
from steward.model.witness import PeerWord, Witness
from steward.policy.draft import Draft
from steward.policy.facts.forgotten import bears_old_mark
from steward.policy.facts.incidents import AGENTS, in_incident
from steward.policy.facts.verdict import (
    Standing,
    machine_of,
    missed_since,
    monitored_but_unheard,
    standing,
    went_with_host,
)
from steward.policy.traits import is_away_on_purpose

PEERS = 3
"""How many agents are asked about a silent node."""
AGREE = 2
"""How many of them must find it gone: an agent that lies, or is cut off itself, is not enough."""
SEEN_ALIVE_S = 60.0
"""How long a slurmd that answered at its port counts as reached."""


def open_silence(draft: Draft) -> Incident | None:
    """Return the incident of silent agents; None if there is none or it is over."""
    incident = draft.incidents.get(AGENTS)
    return incident if incident is not None and incident.over is None else None


def why_gone(node: Node, draft: Draft) -> str:
    """Return why we are sure that the lost node is gone; empty if we are not."""
    return why_confirmed_gone(node, draft) or _gone_by_looks(node, draft)


def why_confirmed_gone(node: Node, draft: Draft) -> str:
    """Return how the agent, the provider or Slurm says that the lost node is gone; empty if none of them does."""
    verdict = standing(node, draft)
    if verdict.standing is not Standing.LOST or verdict.since is None:
        return ""
    return _by_agent(node.name, draft) or _by_provider(node, verdict.since, draft) or _by_slurm(node, draft)


def _by_agent(node: NodeName, draft: Draft) -> str:
    view = draft.seen.agents.get(node)
    return "its agent said that its host shuts down" if view is not None and went_with_host(view, draft) else ""


def _by_provider(node: Node, since: float, draft: Draft) -> str:
    """Return the provider's word that the node's machine is gone; empty if there is none."""
    instance = machine_of(node.name, draft.seen.agents.get(node.name), draft)
    listed = draft.seen.listed_at if draft.seen.listed_at is not None else draft.now
    if instance is None or not draft.provider_is_fresh or not instance.state.is_dead or listed < since:
        return ""
    return f"provider: instance {instance.id} is {instance.state.value}"


def _by_slurm(node: Node, draft: Draft) -> str:
    """Return Slurm's own word that the node is DOWN; empty if there is none."""
    # this does not count while the head reaches no node, because slurmctld is then cut off, too; nor for a while after
    # an agent came back, because others may follow
    is_slurms = node.is_down and (node.mark is None or bears_old_mark(node, draft))
    return "Slurm has it DOWN" if is_slurms and count_reached(draft)[0] and _is_calm(0.0, draft) else ""


def _gone_by_looks(node: Node, draft: Draft) -> str:
    """Return why looks at the node's slurmd show that it is gone; empty if they do not.

    They count only for a node that has a job to bring back and has been silent for `agents_grace_s`.
    """
    since = draft.nodes.of(node.name).silent_since
    if since is None or standing(node, draft).standing is not Standing.LOST or not has_jobs(node.name, draft):
        return ""
    words = _looks_of_peers(node.name, draft)
    # if another agent reaches the node, only the head is cut off from it
    if any(word.result is Witness.ALIVE for word in words) or not _is_calm(since, draft):
        return ""
    if len(words) >= AGREE:
        return f"its slurmd does not answer {' nor '.join(sorted(word.by for word in words))} either, which are heard"
    return most_are_reached(draft)


def _looks_of_peers(node: NodeName, draft: Draft) -> list[PeerWord]:
    """Return the recent reports of heard agents on the node's slurmd, made since the node was lost."""
    view = draft.seen.agents.get(node)
    lost_at = view.lost_at if view is not None and view.lost_at is not None else 0.0
    since = max(lost_at, draft.now - SEEN_ALIVE_S)
    return [word for word in (view.peers if view is not None else ()) if word.at > since and _hears(word.by, draft)]


def peers_of(node: NodeName, draft: Draft) -> frozenset[NodeName]:
    """Return up to `PEERS` agents to ask about a node: heard, spread over all nodes, others for each node."""
    heard = draft.overview.heard
    count = len(heard)
    first = sum(map(ord, node))
    return frozenset(heard[(first + place * max(1, count // PEERS)) % count] for place in range(min(PEERS, count)))


def _hears(name: NodeName, draft: Draft) -> bool:
    """Return whether the agent of this node is heard."""
    view = draft.seen.agents.get(name)
    return name in draft.seen.nodes and view is not None and view.is_heard


def _is_calm(since: float, draft: Draft) -> bool:
    """Return whether `agents_grace_s` has passed since the last agent came back, and since this node was lost."""
    incident = open_silence(draft)
    back = incident.heard_again_at if incident is not None and incident.heard_again_at is not None else 0.0
    due = max(since, back) + draft.want.repair.agents_grace_s
    draft.wake(due)
    return draft.now >= due


def has_jobs(node: NodeName, draft: Draft) -> bool:
    """Return whether a run of an opted-in job is on the node, or cleans up there."""
    if any(id in draft.jobs for id in draft.overview.running_on.get(node, ())):
        return True
    if draft.found.cleaning is None:
        ids = (job.id for job in draft.overview.completing if job.id in draft.jobs)
        draft.found.cleaning = frozenset(name for id in ids for name in held_nodes(id, draft))
    return node in draft.found.cleaning


def held_nodes(job: JobId, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes that a job has now; while its lost run cleans up, the nodes of that run."""
    known = draft.seen.jobs.get(job)
    if known is not None and known.is_active:
        return known.nodes
    return draft.jobs[job].nodes if known is not None and known.is_completing else frozenset()


def most_are_reached(draft: Draft) -> str:
    """Return in words that the head reaches most nodes; empty if it does not."""
    heard, missing = count_reached(draft)
    return f"{heard} of {heard + missing} nodes are reached" if heard > missing else ""


def count_reached(draft: Draft) -> tuple[int, int]:
    """Return how many nodes the head reaches (agent heard, or slurmd answered lately), and how many it misses."""
    if draft.found.count_reached is None:
        heard, missing = len(draft.seen.nodes) - len(draft.overview.unheard), 0
        for name in monitored_but_unheard(draft):
            node, view = draft.seen.nodes[name], draft.seen.agents.get(name)
            if view is not None and is_reached(view, draft):
                heard += 1
            elif view is not None and went_with_host(view, draft):
                continue
            elif not is_away_on_purpose(node) and (is_late(view) or missed_since(node, draft) is not None):
                missing += 1
        draft.found.count_reached = heard, missing
    return draft.found.count_reached


def is_late(view: AgentView | None) -> bool:
    """Return whether the agent is connected and its heartbeat is overdue."""
    return view is not None and view.connected and view.late


def is_reached(view: AgentView, draft: Draft) -> bool:
    """Return whether the agent is heard, or slurmd answered since it was lost."""
    if view.connected:
        return not view.late
    look = view.witness
    answers = look is not None and look.result is Witness.ALIVE and draft.now <= look.at + SEEN_ALIVE_S
    return answers and look is not None and look.at >= (view.lost_at or 0.0)


def is_withheld(node: NodeName, draft: Draft) -> bool:
    """Return whether nothing is done about a lost node because it fell silent with many and may not be gone."""
    return in_incident(node, AGENTS, draft) and not why_gone(draft.seen.nodes[node], draft)


def waited_for(draft: Draft) -> frozenset[NodeName]:
    """Return the nodes that fell silent together and whose fate is unknown: no job is started there."""
    incident = open_silence(draft)
    return incident.fate_unknown if incident is not None else frozenset()
