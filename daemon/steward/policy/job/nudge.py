"""Nudges: a job that is back in the queue is made eligible at once, on other nodes, until it runs."""

from dataclasses import replace

from steward.model.action import NudgeJob
from steward.model.ids import Key, NodeName
from steward.model.job import Job
from steward.model.resume import Attempt, Decision, JobMemory, Saved
from steward.model.text import times
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.suspended import ended_suspended
from steward.policy.guards.run_end import credential_safe_at, next_second
from steward.policy.job.decide import RECLAIMED, TURN_OVER
from steward.policy.job.exclude import exclude_list, note_constraints
from steward.policy.job.options import options
from steward.policy.job.rulings import remember_excludes

FIRST_S, GROWTH, MOST_S = 0.3, 1.5, 5.0
"""Within `QUICK_FOR_S`: the pause between the first two nudges, its growth with each nudge, and the longest pause."""
QUICK_FOR_S, SLOW_S = 120.0, 30.0
"""How long nudges are quick, and the pause between nudges after that time."""
BEGINS_LATER = "was given a later start time (scontrol update starttime)"
UNBEGUN = "was put back by Slurm without a run twice, for no fault that is known here (slurmctld's log says why)"
MOST_UNBEGUN = 2
"""After so many runs that never began the job is left to Slurm: a node may die in the moment in which one begins."""
DEFER_AGAIN_S = 5.0
PERSONS_DELAY_S = 180.0
"""A start time this much later than we set was set by a person: Slurm's own delay after a requeue is 121 s."""


def slurms_requeue(mem: JobMemory) -> str:
    """Return the key under which a ruling on Slurm's own requeue of the last run is remembered."""
    return f"restart:{mem.restarts + 1}"


def nudge(job: Job, draft: Draft) -> None:
    """Make the job eligible now and wake Slurm's scheduler, often at first; leave a job that a person holds."""
    mem = note_constraints(job, draft)
    if job.is_completing or job.is_expediting or _is_held_by_person(job, draft) or is_left_to_slurm(mem):
        return
    if begins_later(job, draft):
        _leave_alone(job, mem, draft)
        return
    if draft.now < (begin := not_before(mem, draft)):
        _delay_in_slurm(job, mem, begin, draft)
        return
    if draft.now < (safe := credential_safe_at(job, draft)):
        draft.wake(safe)
        return
    if mem.kept is not None and mem.kept.freed is None and mem.nudges:
        return  # the job cannot start while nodes are kept for it: it is nudged again when they are freed
    exclude = exclude_list(job, mem, draft)
    if not _is_due(job, mem, exclude, draft):
        return
    why = mem.attempts[-1].why if mem.attempts else Why(rule="resume.nudge", text="it was requeued")
    release = job.is_held_by_slurm
    key = _nudge_key(job)
    action = NudgeJob(key=key, why=why, job=job.id, restart=job.restarts, exclude=exclude, release=release)
    if draft.wish(action, 0.0):
        remember_excludes(job, exclude, draft)
        mem = draft.jobs[job.id]
        draft.jobs[job.id] = replace(mem, nudges=mem.nudges + 1, last_nudge=draft.now)
        _is_due(job, draft.jobs[job.id], exclude, draft)  # sets the wake-up for the next nudge


def hold_text(job: Job, draft: Draft) -> str:
    """Return the words that say why the job is held."""
    if ended_suspended(job, draft.jobs[job.id]):
        return f"was suspended when its last run ended, for which Slurm holds it ({job.reason})"
    return f"is held ({job.reason})"


def _is_held_by_person(job: Job, draft: Draft) -> bool:
    """Return whether a person holds the job, and say so once."""
    if not job.is_held:
        return False
    text = f"job {job.shown_id} {hold_text(job, draft)}: it stays where it is until it is released"
    draft.tell("job.held", text, once=f"held:{job.id}:{job.restarts}:{job.reason}", job=job.id)
    return True


def begins_later(job: Job, draft: Draft) -> bool:
    """Return whether a person delayed the job (`scontrol update starttime=`) after we nudged or delayed it."""
    mem, failures = draft.jobs[job.id], draft.seen.failures
    was_hurried = mem.last_nudge > 0.0 or draft.asked_at(_defer_key(job)) is not None
    if not was_hurried or not job.is_pending or _nudge_key(job) in failures or _defer_key(job) in failures:
        return False
    return (job.eligible or 0.0) > max(draft.now, not_before(mem, draft)) + PERSONS_DELAY_S


def _leave_alone(job: Job, mem: JobMemory, draft: Draft) -> None:
    """Leave the job alone until the start time that a person set."""
    # note a nudge: requests to Slurm are forgotten after a day, and the job may start in a week
    if not mem.last_nudge:
        draft.jobs[job.id] = replace(mem, last_nudge=draft.now)
    text = f"job {job.shown_id} {BEGINS_LATER}: it is left alone until then"
    draft.tell("job.begins_later", text, once=f"later:{job.id}:{job.restarts}:{job.eligible}", job=job.id)


def _nudge_key(job: Job) -> Key:
    return Key(f"nudge:{job.id}:{job.restarts}")


def _defer_key(job: Job) -> Key:
    return Key(f"defer:{job.id}:{job.restarts}")


def is_left_to_slurm(mem: JobMemory) -> bool:
    """Return whether the job is not nudged: its budget is used up, or Slurm requeued it before the run began."""
    # Slurm would requeue a job whose run cannot begin again and again, at once after each nudge
    last = mem.last_attempt
    is_used_up = last is not None and last.decision is Decision.STOP and last.decided_for == slurms_requeue(mem)
    return is_left_unbegun(mem) or is_used_up


def is_left_unbegun(mem: JobMemory) -> bool:
    """Return whether so many runs of the job never began that it is left to Slurm's own delay."""
    return len(mem.unbegun) >= MOST_UNBEGUN


def lost_its_place(mem: JobMemory) -> bool:
    """Return whether the job's run was ended for a fault and the next run is to come.

    A job that was requeued by a person, by itself, by Slurm's preemption or at its time limit has lost no place.
    """
    last = mem.last_attempt
    if last is None or not _is_under_way(last) or last.restart != mem.restarts:
        return False
    return last.why.rule not in TURN_OVER


def not_before(mem: JobMemory, draft: Draft) -> float:
    """Return when (Unix s) the pending resume may start after its back-off; 0 for at once."""
    resumes = [a for a in mem.attempts if a.decision is not Decision.STOP and a.why.rule != RECLAIMED]
    if len(resumes) < 2 or not _is_under_way(resumes[-1]) or _has_new_checkpoint(resumes[-2].saved, resumes[-1].saved):
        return 0.0
    return resumes[-2].at + options(mem.mode, draft.want.resume).wait_s(mem.resumes)


def _has_new_checkpoint(before: Saved | None, after: Saved | None) -> bool:
    """Return whether the job wrote a new checkpoint between two resumes: then no back-off is needed."""
    return after is not None and (before is None or after.is_newer_than(before))


def _is_under_way(attempt: Attempt) -> bool:
    """Return whether the ruling is a requeue whose run has not begun yet."""
    return attempt.is_requeue and attempt.running is None


def _delay_in_slurm(job: Job, mem: JobMemory, at: float, draft: Draft) -> None:
    """Delay the job's next run in Slurm until `at`."""
    # without this delay, Slurm would start the job two minutes after the requeue, without its exclude list
    draft.wake(at)
    why = Why(
        rule="resume.backoff",
        text=f"it was resumed {times(mem.resumes)}: it waits before the next run",
        evidence=(f"not before {at - draft.now:.0f} s from now",),
    )
    draft.tell("job.backoff", f"job {job.shown_id}: {why}", once=f"backoff:{job.id}:{job.restarts}", job=job.id)
    key = _defer_key(job)
    # a held job needs no delay
    if job.is_held_by_slurm:
        return
    exclude = exclude_list(job, mem, draft)
    action = NudgeJob(key=key, why=why, job=job.id, restart=job.restarts, exclude=exclude, delay_s=at - draft.now)
    if draft.wish(action, DEFER_AGAIN_S if key in draft.seen.failures else None):
        remember_excludes(job, exclude, draft)


def _is_due(job: Job, mem: JobMemory, exclude: frozenset[NodeName], draft: Draft) -> bool:
    """Return whether to nudge now: once, and again after a change that Slurm does not see by itself."""
    # each nudge costs the job its age in the queue
    freed = mem.kept.freed if mem.kept is not None and mem.kept.freed is not None else 0.0
    began = max(mem.pending_from if mem.pending_from is not None else draft.now, not_before(mem, draft), freed)
    quick = draft.now < began + QUICK_FOR_S
    if (mem.nudges or not quick) and freed <= mem.last_nudge and not _may_help(job, mem, exclude, draft):
        return False
    if quick:
        pause = min(MOST_S, FIRST_S * GROWTH ** min(max(mem.nudges - 1, 0), 30))
        due = max(mem.last_nudge + pause, next_second(mem.last_nudge))
    else:
        due = mem.last_nudge + SLOW_S
    draft.wake(due)
    return draft.now >= due


def _may_help(job: Job, mem: JobMemory, exclude: frozenset[NodeName], draft: Draft) -> bool:
    """Return whether a nudge may help: Slurm has not looked at the job yet, a node returned, or excludes changed."""
    returned = any(c.returned is not None and c.returned > mem.last_nudge for c in draft.cases.values())
    stuck = job.is_held_by_slurm or job.reason in ("BeginTime", "None", "")
    return returned or stuck or exclude != job.excluded
