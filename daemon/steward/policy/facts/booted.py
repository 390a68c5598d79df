"""Nodes that have booted while a job ran there, as when the head was away and Slurm did not miss them.

Slurm looks for a batch job that is missing on its node when the node registers, and only if the job had run for some
20 s; else it shows the job as running, for half an hour or for ever.
"""

from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.resume import JobMemory
from steward.policy.draft import Draft

BOOTED = "it has booted since the run began there"


def booted_since(job: Job, mem: JobMemory, draft: Draft) -> dict[NodeName, float]:
    """Return the nodes that have booted during the job's present run, each with the start of its slurmd (Unix s).

    Nothing of the run is there any more.
    """
    if job.id not in draft.overview.lost_at_boot or job.restarts != mem.restarts or job.started is None:
        return {}
    words = draft.overview.opted_in[job.id]
    told = {node for one in words if (one.uid, one.restart) == (mem.uid, mem.restarts) for node in one.gone_from}
    began = {name: draft.seen.nodes[name].slurmd_started for name in told if name in draft.seen.nodes}
    # an agent that was away when another job with this number began would speak of the job before
    return {name: at for name, at in began.items() if at is not None and at >= job.started}
