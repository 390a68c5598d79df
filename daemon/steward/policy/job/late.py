"""Overturn rulings when a fault is found after the run's end.

A machine in an orderly shutdown ends its jobs first, and is found lost later; a script's failure is answered at once,
with the evidence known by then. Until `EVIDENCE_AFTER_S` after the end, and as long as Slurm remembers the job, the job
may still be requeued.
"""

from dataclasses import replace

from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.resume import Decision, JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.blame import EVIDENCE_AFTER_S
from steward.policy.facts.stops import stopped_nodes
from steward.policy.facts.verdict import is_awaited
from steward.policy.guards.run_end import end_of
from steward.policy.job.decide import decide
from steward.policy.job.failure import FailureSource, failure_without_ask
from steward.policy.job.launch import broken_end, nodes_that_broke
from steward.policy.job.remember import is_another
from steward.policy.job.rulings import requeue_by


def requeue_on_late_evidence(draft: Draft) -> None:
    """Requeue each ended job whose nodes showed a fault since."""
    for id in _candidates(draft):
        job, mem = draft.seen.jobs.get(id), draft.jobs[id]
        if job is not None and _may_be_overturned(job, mem, draft):
            _judge_again(job, mem, draft)


def _candidates(draft: Draft) -> list[JobId]:
    """Return the jobs that need attention, and those on nodes that were shut down or could not begin a script."""
    stopped = stopped_nodes(draft.now - EVIDENCE_AFTER_S, draft) | nodes_that_broke(draft)
    hit = {id for id, mem in draft.jobs.items() if mem.nodes & stopped} if stopped else set()
    return sorted(hit.union(jobs_needing_attention(draft)))


def _may_be_overturned(job: Job, mem: JobMemory, draft: Draft) -> bool:
    """Return whether the last run ended by itself a short while ago, and no final ruling was made on it."""
    if mem.ended is None or not job.is_over or not job.is_batch or job.restarts != mem.restarts:
        return False
    ended = end_of(mem).over or mem.ended
    if draft.now > ended + EVIDENCE_AFTER_S or is_another(job, mem):
        return False
    # after the head's start, the run's steps are not known until its agents are back
    if any(is_awaited(node, draft) for node in mem.nodes):
        return False
    last = mem.last_attempt if mem.last_attempt and mem.last_attempt.restart == mem.restarts else None
    if job.state is JobState.COMPLETED:
        return last is None or not last.is_requeue
    return job.state is JobState.FAILED and last is not None and last.decision is Decision.STOP and last.open


def _judge_again(job: Job, mem: JobMemory, draft: Draft) -> None:
    """Rule once more on the ended run, and ask for the requeue of its job if the evidence says so."""
    ended = job.ended if job.ended is not None else (end_of(mem).over or draft.now)
    ruling = decide(failure_without_ask(FailureSource.ENDED, job, mem, ended, draft, known=broken_end(job, mem, draft)))
    if ruling.decision is Decision.STOP or ruling.unproven:
        return
    draft.jobs[job.id] = replace(mem, ended=None, end_text="")
    draft.tell("job.overturned", f"job {job.shown_id} was over ({mem.end_text}): {ruling.why}", job=job.id)
    requeue_by(job, f"late:{mem.restarts}", ruling, draft)
