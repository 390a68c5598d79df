"""Pick the requested nodes and jobs from a look that read more."""

from collections.abc import Collection, Mapping

from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node


def of_nodes(nodes: Mapping[NodeName, Node], only: Collection[NodeName] | None) -> Mapping[NodeName, Node]:
    """Return the requested nodes; all for None."""
    if only is None:
        return nodes
    return {name: nodes[name] for name in sorted(set(only)) if name in nodes}


def of_jobs(
    jobs: Mapping[JobId, Job], only: Collection[JobId] | None, on: Collection[NodeName] = ()
) -> Mapping[JobId, Job]:
    """Return the requested jobs, and those with one of these nodes; all for None."""
    if only is None:
        return jobs
    named, places = set(only), set(on)
    return {id: job for id, job in jobs.items() if id in named or has_one(job, places)}


def has_one(job: Job, places: Collection[NodeName]) -> bool:
    """Return whether the job has one of these nodes: it runs or cleans up there."""
    return not job.is_over and not job.nodes.isdisjoint(places)
