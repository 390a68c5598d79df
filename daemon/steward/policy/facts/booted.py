"""Nodes that have booted while a job ran there, as when the head was away and Slurm did not miss them.

Slurm looks for a batch job that is missing on its node when the node registers, and only if the job had run for some
20 s; else it shows the job as running, for half an hour or for ever. What an agent knows of the jobs on its node goes
with the boot, so the head remembers in which boot a script began.
"""

from collections.abc import Mapping
from itertools import takewhile

from steward.model.ids import BootId, JobId, NodeName
from steward.model.job import Job
from steward.model.memory import NodeMemory
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.standing_still import works_nowhere_without

BOOTED = "it has booted since the run began there"


def has_lost_script(job: Job, mem: JobMemory, draft: Draft) -> bool:
    """Return whether the batch host has booted since the script of the job's present run began there."""
    host = job.batch_host
    if mem.script_boot is None or host is None or job.restarts != mem.restarts:
        return False
    boot, view = boot_of(host, draft), draft.seen.agents.get(host)
    if boot in (None, mem.script_boot) or view is None:
        return False
    # the first report comes after all that the agent says of its jobs: a script that began in this boot is told by then
    return view.reported_at > 0.0 and slurmd_begun_since(job.started, host, draft) is not None


RANKS = "ranks:"
"""What a decision about ranks that a boot ended is for, before the restart count of their run."""
SETTLED_S = 60.0
"""How long after a node is back a job's srun has to end by itself, and its agent to see what runs there."""
RECENT_S = 600.0
"""How long after a node is back its jobs are looked at for ranks that its boot ended."""


def jobs_on_booted_nodes(draft: Draft) -> frozenset[JobId]:
    """Return the remembered jobs that run on nodes of which another boot was found lately."""
    before = draft.nodes.unchanged
    boots = _boots(draft.nodes) if before is None else draft.ground.once(_boots, (before,), before)
    recent = takewhile(lambda one: one[0] >= draft.now - RECENT_S, boots)
    return frozenset(id for _, node in recent for id in draft.overview.running_on.get(node, ()) if id in draft.jobs)


def _boots(nodes: Mapping[NodeName, NodeMemory]) -> list[tuple[float, NodeName]]:
    """Return when another boot of a node was found, the newest first."""
    found = ((mem.renewed_at, name) for name, mem in nodes.items() if mem.renewed_at is not None)
    return sorted(found, reverse=True)


def lost_ranks_on(job: Job, mem: JobMemory, draft: Draft) -> NodeName | None:
    """Return a node that has booted during the job's present run and whose ranks the others wait for; None for none.

    srun never ends if it heard the end of its connection to such a node before slurmctld asked it (22.05 to 26.05:
    slurmctld says only of a node that it has DOWN that its tasks are gone).
    """
    if job.is_completing or job.restarts != mem.restarts or (job.started is None or job.started != mem.started):
        return None
    booted = [node for node in job.nodes if has_booted_since(job.started, node, draft)]
    return next((node for node in sorted(booted) if _has_lost_ranks(node, job, mem, draft)), None)


def has_booted_since(started: float | None, node: NodeName, draft: Draft) -> bool:
    """Return whether another boot of the node than the one before was found since, and its slurmd began since."""
    renewed_at = draft.nodes.of(node).renewed_at
    if renewed_at is None or started is None or renewed_at < started:
        return False
    # an agent may come long after a boot, and the run may have begun in it
    return slurmd_begun_since(started, node, draft) is not None


def _has_lost_ranks(node: NodeName, job: Job, mem: JobMemory, draft: Draft) -> bool:
    view, renewed_at = draft.seen.agents.get(node), draft.nodes.of(node).renewed_at or 0.0
    if view is None or not view.connected or view.reported_at <= 0.0 or draft.now < renewed_at + SETTLED_S:
        return False
    answers = [one for one in mem.attempts if one.at >= renewed_at and not one.decided_for.startswith(RANKS)]
    is_answered = bool(answers) or job.id in draft.overview.asks
    return not is_answered and works_nowhere_without(node, job, draft)


def boot_of(node: NodeName, draft: Draft) -> BootId | None:
    """Return the boot of the node whose agent is connected; None if none is."""
    who = draft.ground.agents.facts.get(node)
    return who.boot if who is not None else None


def slurmd_begun_since(started: float | None, node: NodeName, draft: Draft) -> float | None:
    """Return when the node's slurmd began (Unix s), if that was after a run's start; else None."""
    known = draft.seen.nodes.get(node)
    at = known.slurmd_started if known is not None else None
    # both in whole seconds
    return at if at is not None and started is not None and at >= started else None


def script_boot(job: Job, mem: JobMemory, draft: Draft) -> BootId | None:
    """Return the boot in which the script of the job's present run began, as the connected agent of its host told."""
    now = boot_of(job.batch_host, draft) if job.batch_host is not None else None
    words = draft.overview.opted_in.get(job.id, ())
    told = {one for word in words if (word.uid, word.restart) == (mem.uid, job.restarts) for one in word.began_in}
    return now if now is not None and (job.batch_host, now) in told else None
