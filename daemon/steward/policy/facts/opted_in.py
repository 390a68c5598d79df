"""Reports of nodes on jobs that opted in."""

from steward.model.ask import OptedIn
from steward.model.ids import NodeName
from steward.model.job import Job, other_parts
from steward.policy.draft import Draft


def nodes_of_parts(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of the other parts of a heterogeneous job."""
    return frozenset(node for other in other_parts(job, draft.seen.jobs) for node in other.nodes)


def counts(word: OptedIn, draft: Draft) -> bool:
    """Return whether a report on a job that opted in counts: it is not from a node that the job does not have."""
    job = draft.seen.jobs.get(word.job)
    return job is None or not word.told_by or _was_there(word, job, draft)


def _was_there(word: OptedIn, job: Job, draft: Draft) -> bool:
    """Return whether a reporting node is, or may have been, a node of the job."""
    if job.is_active:
        return bool(word.told_by & nodes_of_run(job, draft))
    # a job that waits again was on nodes that Slurm does not show any more
    return job.restarts > 0 or not job.is_pending


def nodes_of_run(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return all nodes that the job's present run had, and the nodes of its other parts."""
    mem = draft.jobs.get(job.id)
    host = frozenset({job.batch_host} if job.batch_host is not None else ())
    remembered = mem.nodes | mem.parts if mem is not None else frozenset()
    return job.nodes | host | remembered | nodes_of_parts(job, draft)
