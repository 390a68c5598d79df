"""Ask the second witness about silent nodes."""

from steward.model.action import ProbeNode
from steward.model.case import CaseStep
from steward.model.ids import JobId, Key, NodeName
from steward.model.node import Node
from steward.model.repair_policy import WITNESS_FRESH_S
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.gone import (
    AGREE,
    has_jobs,
    held_nodes,
    most_are_reached,
    open_silence,
    peers_of,
    why_confirmed_gone,
)
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.facts.verdict import Standing, Verdict, monitored_but_unheard, standing

LOOKED_AT = (Standing.LATE, Standing.SILENT, Standing.LOST, Standing.AGENT_ONLY)
"""Standings in which the witness is asked. With a late agent, the answer is there when the silence becomes a loss."""
DIES_AFTER_S = 0.05
"""How soon a slurmd that still answers is looked at again: on a dying machine it may outlive the agent by a moment.

The wait for each later look is the time for which the agent has been gone.
"""
PROBE_OFTEN_S = 60.0
"""After this long without its agent a node is looked at ten times less often."""
LOOKS_AT_ONCE = 256
"""How many nodes other agents are asked about while the head reaches no majority: more would keep the head too busy."""


def probe_silent(draft: Draft) -> None:
    """Ask the second witness about every node whose agent is late or gone, unless a fresh answer is known."""
    incident = open_silence(draft)
    many = incident.nodes if incident is not None else frozenset()
    # of many nodes that fell silent at once, look only at those of jobs whose shims wait, and at one of each job that
    # may be resumed, or at all its nodes if that may bring the job back: nothing depends on the others
    asked_about = _nodes_to_look_at(draft) if many else set()
    for node in map(draft.seen.nodes.__getitem__, monitored_but_unheard(draft)):
        is_passed_over = node.name in many and node.name not in asked_about
        if not is_passed_over and not belongs_to_slot(node, draft):
            _probe(node, draft, is_of_many=node.name in many)


def _nodes_to_look_at(draft: Draft) -> set[NodeName]:
    """Return the nodes to look at while many are silent."""
    asked = {name for ask in draft.seen.asks for name in _nodes_of(ask.job, draft)}
    unheard = frozenset(draft.overview.unheard)
    running = {id for name in unheard for id in draft.overview.running_on.get(name, ())} & draft.jobs.keys()
    jobs = sorted(running.union(jobs_needing_attention(draft)))
    for quiet in filter(None, (held_nodes(id, draft) & unheard for id in jobs)):
        by_peers = len(asked) + len(quiet) <= LOOKS_AT_ONCE and len(peers_of(min(quiet), draft)) >= AGREE
        asked |= quiet if by_peers or most_are_reached(draft) else {min(quiet)}
    return asked


def _nodes_of(job: JobId, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of a job; empty if Slurm does not know it."""
    known = draft.seen.jobs.get(job)
    return known.nodes if known else frozenset()


def _probe(node: Node, draft: Draft, *, is_of_many: bool) -> None:
    """Ask for a look at the node, if one is needed. `is_of_many`: the node fell silent with others."""
    verdict = standing(node, draft)
    if verdict.standing is Standing.LOST:
        note_lost(node.name, verdict.since or draft.now, draft)
    case = draft.cases.in_work(node.name)
    is_in_repair = case is not None and case.step not in (CaseStep.VERIFY, CaseStep.RETURN)
    if verdict.standing not in LOOKED_AT or is_in_repair or why_confirmed_gone(node, draft):
        return
    key = Key(f"probe:{node.name}")
    every = _look_every_s(verdict, draft.asked_at(key), draft, is_of_many=is_of_many)
    peers = peers_of(node.name, draft) if is_of_many and has_jobs(node.name, draft) else frozenset()
    draft.wish(ProbeNode(key=key, why=verdict.why, node=node.name, peers=peers), every)


def _look_every_s(verdict: Verdict, last: float | None, draft: Draft, *, is_of_many: bool) -> float:
    """Return how many seconds after the last look, at `last`, to look again."""
    since = verdict.since if verdict.since is not None else draft.now
    every = WITNESS_FRESH_S * (1 if draft.now - since < PROBE_OFTEN_S else 10)
    if is_of_many:
        return every / 2  # the looks at all nodes must be fresh in the same plan
    if verdict.standing is not Standing.AGENT_ONLY:
        return every
    return min(every, max(DIES_AFTER_S, (last or since) - since))


def note_lost(node: NodeName, since: float, draft: Draft) -> None:
    """Remember when the node was last found lost."""
    if (draft.nodes.of(node).lost_at or 0.0) < since:
        draft.nodes.note(node, lost_at=draft.now)
