"""Ask the second witness about silent nodes, warn of odd reasons and marks, and remember agents and absences."""

from collections import defaultdict
from collections.abc import Collection

from steward.model.action import ProbeNode
from steward.model.case import Step
from steward.model.events import Level
from steward.model.ids import InstanceId, JobId, Key, NodeName
from steward.model.node import Node
from steward.model.node_names import fold
from steward.model.repair_policy import WITNESS_FRESH_S
from steward.model.text import one_line
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.forgotten import returned_by
from steward.policy.facts.gone import (
    AGREE,
    confirmed_gone,
    has_jobs,
    held_nodes,
    most_are_reached,
    note_lost,
    open_silence,
    peers_of,
)
from steward.policy.facts.orphan import is_orphan, way_out
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.facts.verdict import Standing, Verdict, monitored_nodes, standing
from steward.policy.slurm_reasons import near_miss
from steward.policy.traits import Trait

LOOKED_AT = (Standing.LATE, Standing.SILENT, Standing.LOST, Standing.AGENT_ONLY)
"""A look at a late agent is in time for the moment when its silence becomes a loss."""
DIES_AFTER_S = 0.05
"""A dying machine's slurmd may answer a moment longer than its agent: it is looked at again after this time.

From then on it is looked at each time after as long as the agent has been gone.
"""
PROBE_OFTEN_S = 60.0
"""After this long without its agent a node is looked at ten times less often."""
LOOKS_AT_ONCE = 256
"""How many nodes agents are asked about while half or more are silent: thousands would keep the head too busy."""

_LONGEST_NAMES = 200


def note_foreign(draft: Draft) -> None:
    """Say once about reasons that nearly are commands, and about marks without a case."""
    for node in draft.overview.with_reason(Trait.NEARLY_ORDERED, Trait.MARKED):
        meant = near_miss(node)
        text = node.reason.text if node.reason else ""
        short = one_line(text, 80)
        if meant:
            said = f"{node.name}: the reason '{short}' is not a command; write exactly {meant} to have it done"
            draft.tell("node.near_miss", said, once=f"near:{node.name}:{text}", level=Level.WARNING, node=node.name)
        if is_orphan(node, draft) and (way := way_out(node, draft)):
            what = "that case is over: see slurmctld's log for who took it out, then"
            what = what if returned_by(node, draft) else "no repair is open, and nothing gives it back by itself;"
            said = f"{node.name}: carries our mark '{short}', but {what} {way}"
            once = f"orphan:{node.name}:{text}:{way}"
            draft.tell("node.orphan", said, once=once, level=Level.WARNING, node=node.name)


def probe_silent(draft: Draft) -> None:
    """Ask the second witness about every node whose agent is late or gone, unless a fresh answer is known."""
    incident = open_silence(draft)
    many = incident.nodes if incident is not None else frozenset()
    # of many that fell silent at once, only nodes of jobs whose shims wait are looked at, and one for each job that may
    # be resumed, or all if that may bring the job back: nothing else depends on it
    asked_about = _asked_about(draft) if many else set()
    for node in map(draft.seen.nodes.__getitem__, monitored_nodes(draft)):
        is_passed_over = node.name in many and node.name not in asked_about
        if not is_passed_over and not belongs_to_slot(node, draft):
            _probe(node, draft, is_of_many=node.name in many)


def _asked_about(draft: Draft) -> set[NodeName]:
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
    """Ask for a look at the node. `is_of_many`: it fell silent with others."""
    verdict = standing(node, draft)
    if verdict.standing is Standing.LOST:
        note_lost(node.name, verdict.since or draft.now, draft)
    case = draft.cases.in_work(node.name)
    given_up = case is not None and case.step not in (Step.VERIFY, Step.RETURN)
    if verdict.standing not in LOOKED_AT or given_up or confirmed_gone(node, draft):
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
        return every / 2  # all looks are to be fresh in the plan that rules on all
    if verdict.standing is not Standing.AGENT_ONLY:
        return every
    return min(every, max(DIES_AFTER_S, (last or since) - since))


def remember_agents(draft: Draft) -> None:
    """Remember the machine behind each node, so that it is missed if it does not come back after a restart."""
    nodes, agents = draft.ground.nodes, draft.ground.agents
    of = (nodes.keys_stamp, agents.told_stamp, draft.agents.unchanged)
    if draft.ground.is_known("agents", of):
        return
    new = [
        (name, who) for name, who in agents.told.items() if name in draft.seen.nodes and draft.agents.get(name) != who
    ]
    for name, who in new:
        draft.agents[name] = who
    _tell_twins({who.instance for _, who in new}, draft)
    draft.agents.drop([name for name in draft.agents if name not in draft.seen.nodes])
    if draft.agents.unchanged is not None:
        draft.ground.note("agents", of)


def _tell_twins(came: Collection[InstanceId], draft: Draft) -> None:
    """Warn of nodes whose machines have the same id: they are told apart by their names alone."""
    found = defaultdict[InstanceId, list[NodeName]](list)
    for name, who in draft.agents.items() if came else ():
        if who.instance in came:
            found[who.instance].append(name)
    for instance, names in sorted(found.items()):
        if len(names) > 1:
            what = f"{fold(names)[:_LONGEST_NAMES]} have the same machine id {instance}"
            why = (
                "clones of one disk or image, or several nodes on one machine; they are told apart by their names alone"
            )
            remedy = "give each its own (`systemd-machine-id-setup`, or a file named in agent.instance_id_file)"
            text = f"{what}: {why}: {remedy}"
            draft.tell("agent.twins", text, once=f"twins:{instance}", level=Level.WARNING, node=min(names))


def note_leaves(draft: Draft) -> None:
    """Remember which agents were told to end, for a head that starts before they are back."""
    for name in monitored_nodes(draft):
        view = draft.seen.agents.get(name)
        if view is not None and view.leaves and not view.connected and draft.nodes.of(name).left_us is None:
            draft.nodes.note(name, left_us=view.lost_at)
    for name in sorted(draft.overview.remembered("left_us")):
        view = draft.seen.agents.get(name)
        if view is not None and view.incarnation is not None and (view.connected or not view.leaves):
            draft.nodes.note(name, left_us=None)


def note_absences(draft: Draft) -> None:
    """Note which nodes are away on purpose (power saving, a reboot, maintenance), and when one is back."""
    # the silence of an absent node says nothing, and the agent of one that is back needs a while to come
    away, before = draft.ground.nodes.having(Trait.AWAY), draft.overview.remembered("away_since")
    for name in sorted(away - before):
        draft.nodes.note(name, away_since=draft.now)
    for name in sorted(before - away):
        if name in draft.seen.nodes:
            draft.nodes.note(name, away_since=None, back_at=draft.now)
