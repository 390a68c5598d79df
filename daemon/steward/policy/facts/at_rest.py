"""Remembered jobs that need attention.

A job is at rest if it runs as remembered or is over, and nothing was ever decided, kept or noted for it. No stage of
the plan has anything to do for such a job, so thousands of them cost next to nothing.
"""

from collections.abc import Sequence

from steward.model.ask import OptedIn
from steward.model.health import Incarnation
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.ledger import Ending, Run
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.booted import jobs_on_booted_nodes, script_boot
from steward.policy.facts.standing_still import jobs_seen_still
from steward.policy.traits import Trait

_AtRest = dict[JobId, tuple[JobMemory, Job | None, tuple[Run, ...], Incarnation | None, Sequence[OptedIn]]]


def jobs_needing_attention(draft: Draft) -> list[JobId]:
    """Return the ids of the jobs that are not at rest, sorted; jobs that this plan has changed so far are included."""
    if draft.found.jobs_needing_attention is None:
        draft.found.jobs_needing_attention = _find_needing_attention(draft)
    return sorted((draft.found.jobs_needing_attention | draft.jobs.touched) & draft.jobs.keys())


def _find_needing_attention(draft: Draft) -> frozenset[JobId]:
    """Return the jobs that are not at rest, including those of which an agent reports progress."""
    jobs, ledger, hosts = draft.seen.jobs, draft.ledger, draft.ground.agents.facts
    told = draft.overview.opted_in
    # the jobs at rest are kept from plan to plan while the settings are the same
    known = draft.ground.once(_none_at_rest, (draft.want.resume,))
    found = {one.job for name in draft.ground.agents.having(Trait.TELLING) for one in draft.seen.agents[name].progress}
    found |= jobs_seen_still(draft) | jobs_on_booted_nodes(draft)
    for id, mem in draft.jobs.items():
        job, runs = jobs.get(id), ledger.get(id, ())
        host = hosts.get(job.batch_host) if job is not None and job.batch_host is not None else None
        words, before = told.get(id, ()), known.get(id)
        # a job that was at rest stays so while its records are the same objects
        is_same = before is not None and before[0] is mem and before[1] is job and before[2] is runs
        if before is not None and is_same and before[3] is host and before[4] == words:
            continue
        if _is_at_rest(job, mem, runs, host, draft):
            known[id] = (mem, job, runs, host, words)
        else:
            known.pop(id, None)
            found.add(id)
    if len(known) > len(draft.jobs):
        for id in known.keys() - draft.jobs.keys():
            del known[id]
    return frozenset(found)


def _none_at_rest() -> _AtRest:
    return {}


def _is_at_rest(job: Job | None, mem: JobMemory, runs: tuple[Run, ...], host: Incarnation | None, draft: Draft) -> bool:
    """Return whether the job is at rest, judged from its own records and what runs on its batch host now."""
    if mem.attempts or mem.pending_from is not None or len(runs) > 1:
        return False
    if mem.kept is not None or mem.lent is not None or mem.raised is not None:
        return False
    if mem.hang is not None or mem.suspension is not None:
        return False
    if any(run.decided is not None or run.opted_at != mem.opted_at for run in runs):
        return False
    if mem.ended is not None:
        return _is_over(job, mem, runs)
    has_booted = host is not None and mem.script_boot not in (None, host.boot)
    if job is None or not runs or has_booted or script_boot(job, mem, draft) not in (None, mem.script_boot):
        return False
    return _just_runs(job, mem, runs[0], draft)


def _is_over(job: Job | None, mem: JobMemory, runs: tuple[Run, ...]) -> bool:
    """Return whether the job and its recorded runs are over."""
    if any(run.ending is not Ending.OVER for run in runs):
        return False
    return job is None or (job.is_over and all(job.restarts == restart for restart in (mem.restarts, *_restarts(runs))))


def _restarts(runs: tuple[Run, ...]) -> tuple[int, ...]:
    return tuple(run.restart for run in runs)


def _just_runs(job: Job, mem: JobMemory, run: Run, draft: Draft) -> bool:
    """Return whether the job runs as remembered and none of its options asks for an action."""
    if job.state is not JobState.RUNNING or job.is_completing or job.het_job_id is not None:
        return False
    if (job.restarts, job.started, job.nodes) != (mem.restarts, mem.started, mem.nodes) or mem.end_text:
        return False
    if run.ending is not None or run.restart != job.restarts or not job.nodes <= run.nodes:
        return False
    has_script = job.batch_host is None or job.batch_host in job.nodes
    has_signal = bool(draft.want.resume.checkpoint_signal) and job.time_limit_s is not None
    return job.requeue and not mem.no_requeue and has_script and not has_signal
