"""The exclude list of a job: the culprits of its last failures, until they are proved sound."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steward.model.case import Case
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.blame import EXCLUDE_S, culprits, users_own
from steward.policy.facts.gone import waited_for
from steward.policy.facts.slurm_faults import hurt_since_repair

LATE_KILL_S = 90.0
"""slurmctld repeats an unanswered request to a dead node after 60 s (RPC_RETRY_INTERVAL), plus its own pass."""


def exclude_list(job: Job, mem: JobMemory, draft: Draft) -> frozenset[NodeName]:
    """Return the job's whole exclude list: the user's own, the culprits, and nodes that fell silent together.

    Return only the user's own list if too few other nodes exist, or if Slurm cannot meet the constraints.
    """
    user = users_own(job, mem)
    if mem.unexcludable == job.restarts:
        return user
    ours = culprits(mem, draft) | _broke_launch(mem, draft) | told_again_until(mem, draft).keys() | waited_for(draft)
    need, bad = needs(job, mem), user | ours
    # Slurm holds a job whose constraints no set of nodes can meet. A culprit out of service is not used anyway, and
    # once repaired it may serve.
    is_enough = any(len(usable) - len(usable & bad) >= need for usable in _allowed_nodes(job, draft))
    return bad if is_enough else user


def note_constraints(job: Job, draft: Draft) -> JobMemory:
    """Note whether Slurm cannot meet the job's constraints, and return the job's memory."""
    mem = draft.jobs[job.id]
    if job.reason == "BadConstraints" and mem.unexcludable != job.restarts:
        mem = draft.jobs[job.id] = replace(mem, unexcludable=job.restarts)
    return mem


def is_short_without(bad: frozenset[NodeName], job: Job, mem: JobMemory, draft: Draft) -> bool:
    """Return whether too few usable nodes are left for the job without `bad`; its own nodes count as free."""
    need, not_for_it = needs(job, mem), bad | users_own(job, mem)
    return all(_usable_left(there, not_for_it, job, mem, draft) < need for there in _allowed_nodes(job, draft))


def _usable_left(there: frozenset[NodeName], bad: frozenset[NodeName], job: Job, mem: JobMemory, draft: Draft) -> int:
    """Return how many nodes of `there`, free or the job's own, are left without the bad ones."""
    free = draft.overview.free_among(there)
    ending = job.nodes | mem.nodes | _of_replicas(job, draft)
    own = {name for name in ending & there if draft.seen.nodes[name].is_schedulable}
    return len(free) - len(free & bad) + len(own - free - bad)


def _of_replicas(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of the replicas of the job's elastic run, which end together with the job."""
    run = draft.elastic.get(job.id)
    replicas = (draft.seen.jobs.get(one.job) for one in run.replicas if one.job is not None) if run is not None else ()
    return frozenset().union(*(each.nodes for each in replicas if each is not None))


def _allowed_nodes(job: Job, draft: Draft) -> Sequence[frozenset[NodeName]]:
    """Return the nodes that the job may use in each of its partitions, within its reservation."""
    found = [draft.overview.nodes_of(part) if part else draft.overview.nodes for part in job.partitions]
    inside = own_reservation(job, draft)
    return found if inside is None else [inside & nodes for nodes in found]


def own_reservation(job: Job, draft: Draft) -> frozenset[NodeName] | None:
    """Return the nodes of the reservations that the job asked for; None if it asked for none, or none is seen yet."""
    asked = (draft.seen.reservations.get(name) for name in job.reservation.split(","))
    found = [reservation.nodes for reservation in asked if reservation is not None]
    return frozenset().union(*found) if found else None


def needs(job: Job, mem: JobMemory) -> int:
    """Return how many nodes a new run needs: as many as the job asks for, or, if that is not known, as its last had."""
    # resources for the whole job (`-n 64`) may need more nodes than the fewest that Slurm shows
    if job.is_pending and job.node_count and not job.is_total:
        return job.node_count
    return max(1, job.node_count, len(mem.nodes))


def told_again_until(mem: JobMemory, draft: Draft) -> Mapping[NodeName, float]:
    """Return the nodes, lost under `--no-kill`, on which a new run is not safe yet, and until when (Unix s)."""
    # Slurm told the dead node to end its part of the step, got no answer and repeats the kill a minute later: it would
    # reach the new machine of that name, and end the same step of the job's new run
    cases = (case for node in mem.excised for case in draft.cases.of(node))
    killed = (case for case in cases if case.marked is not None and case.trigger.ends_jobs)
    ends = {c.node: (_new_since(c) or c.closed or draft.now) + LATE_KILL_S for c in killed}
    return {node: until for node, until in ends.items() if until > draft.now}


def _new_since(case: Case) -> float | None:
    """Return since when another machine has the lost node's name; None if a spare of another name took over."""
    return None if case.stand_in else case.replaced


def _broke_launch(mem: JobMemory, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes that broke a launch of this job and were not repaired since; Slurm may leave them in service."""
    since = draft.now - EXCLUDE_S
    blamed = {node for attempt in mem.attempts if attempt.at > since for node in attempt.culprits}
    return frozenset(node for node in blamed if mem.id in hurt_since_repair(node, draft))
