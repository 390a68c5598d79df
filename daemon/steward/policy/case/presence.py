"""Remember which machine is behind each node, and which nodes are away on purpose."""

from collections import defaultdict
from collections.abc import Collection

from steward.model.events import Level
from steward.model.ids import InstanceId, NodeName
from steward.model.memory import Served
from steward.model.node_names import fold
from steward.policy.draft import Draft
from steward.policy.facts.stops import reported_stop, stops_from
from steward.policy.facts.verdict import monitored_but_unheard
from steward.policy.traits import Trait

_LONGEST_NAMES = 200
"""The most characters of node names in an event."""


def remember_agents(draft: Draft) -> None:
    """Remember the incarnation behind each node, and when it last changed.

    A head that starts later then knows which agents are missing, and which nodes have booted meanwhile.
    """
    nodes, agents = draft.ground.nodes, draft.ground.agents
    of = (nodes.keys_stamp, agents.facts_stamp, draft.agents.unchanged)
    if draft.ground.is_done(remember_agents, of):
        return
    new = [
        (name, who) for name, who in agents.facts.items() if name in draft.seen.nodes and draft.agents.get(name) != who
    ]
    for name, who in new:
        if name in draft.agents:
            draft.nodes.note(name, renewed_at=draft.now)
        draft.agents[name] = who
    _tell_twins({who.instance for _, who in new}, draft)
    draft.agents.drop([name for name in draft.agents if name not in draft.seen.nodes])
    if draft.agents.unchanged is not None:
        draft.ground.done(remember_agents, of)


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
    for name in monitored_but_unheard(draft):
        view = draft.seen.agents.get(name)
        if view is not None and view.leaves and not view.connected and draft.nodes.of(name).leave_announced is None:
            draft.nodes.note(name, leave_announced=view.lost_at)
    for name in sorted(draft.overview.remembered("leave_announced")):
        view = draft.seen.agents.get(name)
        if view is not None and view.incarnation is not None and (view.connected or not view.leaves):
            draft.nodes.note(name, leave_announced=None)


def note_absences(draft: Draft) -> None:
    """Note which nodes are away on purpose (power saving, a reboot, maintenance), and when one is back."""
    # an absent node may be silent, and the agent of a node that is back needs a while to come
    away, before = draft.ground.nodes.having(Trait.AWAY), draft.overview.remembered("away_since")
    for name in sorted(away - before):
        draft.nodes.note(name, away_since=draft.now)
    for name in sorted(before - away):
        if name in draft.seen.nodes:
            draft.nodes.note(name, away_since=None, back_at=draft.now)


def remember_served(draft: Draft) -> None:
    """Remember which machine Slurm had in full service: if it is later found to have less, hardware was lost."""
    nodes, agents = draft.ground.nodes, draft.ground.agents
    of = (nodes.keys_stamp, nodes.facts_stamp, nodes.stamp(Trait.UNFIT), agents.facts_stamp, draft.served.unchanged)
    if draft.ground.is_done(remember_served, of):
        return
    unfit = nodes.having(Trait.UNFIT)
    for name, who in agents.facts.items():
        if name not in draft.seen.nodes or name in unfit:
            continue
        served, (size, slurmd) = draft.served.get(name), nodes.facts[name]
        # a size counts once slurmd has registered with it: until then Slurm has not compared them, as after a restart
        # of slurmctld with another slurm.conf
        if slurmd is None:
            continue
        if served is None or (served.instance, served.slurmd_started) != (who.instance, slurmd):
            draft.served[name] = Served(instance=who.instance, size=size, slurmd_started=slurmd)
    if len(draft.served) > len(draft.seen.nodes):
        draft.served.drop([name for name in draft.served if name not in draft.seen.nodes])
    if draft.served.unchanged is not None:
        draft.ground.done(remember_served, of)


def note_stops(draft: Draft) -> None:
    """Remember since when agents say that their hosts shut down, and providers that they reclaim machines."""
    for name in draft.overview.unheard:
        view, since = draft.seen.agents.get(name), reported_stop(name, draft)
        # an agent that was told to end while its host stays up may come back: nothing is kept for it
        if since is not None and view is not None and not view.leaves and stops_from(name, draft) == since:
            draft.nodes.note(name, shutdown_from=since)
    for name in draft.overview.reclaimed - draft.overview.remembered("reclaimed_from"):
        draft.nodes.note(name, reclaimed_from=draft.now)
    for name in draft.overview.remembered("reclaimed_from") - draft.overview.reclaimed:
        if draft.instances_of(name):
            draft.nodes.note(name, reclaimed_from=None)
