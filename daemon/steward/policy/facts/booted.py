"""Nodes that have booted while a job ran there, as when the head was away and Slurm did not miss them.

Slurm looks for a batch job that is missing on its node when the node registers, and only if the job had run for some
20 s; else it shows the job as running, for half an hour or for ever. What an agent knows of the jobs on its node goes
with the boot, so the head remembers in which boot a script began.
"""

from steward.model.ids import BootId, NodeName
from steward.model.job import Job
from steward.model.resume import JobMemory
from steward.policy.draft import Draft

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
