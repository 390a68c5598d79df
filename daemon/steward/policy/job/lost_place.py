"""Jobs that lose their place, the size of the run that was lost, and whether its job asks for more now.

A user may change a waiting job. A job that asks for more than its lost run had waits for its turn like others.
"""

from dataclasses import replace

from steward.model.action import DownNode
from steward.model.ids import JobId
from steward.model.job import Job, parse_tres
from steward.model.resume import JobMemory, RunSize
from steward.policy.draft import Draft

_COMPARED = ("cpu", "mem")
_GRES = "gres/"


def losing_a_node(draft: Draft) -> set[JobId]:
    """Return the remembered jobs that run on a node which this plan takes down."""
    downed = {action.node for action in draft.actions_of(DownNode)}
    return {id for node in downed for id in draft.overview.running_on.get(node, ())} & draft.jobs.keys()


def size_of(job: Job, before: RunSize | None = None) -> RunSize:
    """Return the resources of an active job's run, lost nodes included; `before` is the same run's earlier size."""
    if before is not None:
        return replace(before, limit_s=job.time_limit_s)  # only operators and Steward give a running job more
    return RunSize(
        partition=job.partition,
        nodes=max(job.node_count, len(job.nodes)),
        limit_s=job.time_limit_s,
        tres=job.allocated,
        exclusive=job.exclusive,
    )


def has_grown(job: Job, mem: JobMemory) -> bool:
    """Return whether the job asks for more than its last run had, or has more."""
    had = mem.size
    if had is None:
        return True
    return (
        had.partition not in job.partition.split(",")
        or max(job.node_count, job.most_nodes, len(job.nodes)) > had.nodes
        or (had.limit_s is not None and (job.time_limit_s is None or job.time_limit_s > had.limit_s))
        or (job.exclusive and not had.exclusive)
        or _has_more(job.allocated or job.requested, had.tres)
    )


def _has_more(text: str, before: str) -> bool:
    """Return whether these resources are more CPUs, memory or GRES than before."""
    had = parse_tres(before)
    if not had:
        return False
    return any(
        amount > had.get(name, 0)
        for name, amount in parse_tres(text).items()
        if name.startswith(_GRES) or (name in _COMPARED and name in had)
    )
