"""Put a resumed job first in the queue for its lost place, once a resume and for a short time.

Its nice value is lowered until the job stands before those that wait for the same nodes, and set back when it runs.
Slurm's priority arithmetic overflows: a nice value lower than needed may put a job last (docs/decisions/0022).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from steward.model.action import SetNice
from steward.model.ids import Key
from steward.model.job import Job
from steward.model.resume import Decision, JobMemory, Raised
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.job.decide import OUT_OF_TURN, Ruling
from steward.policy.job.lost_place import has_grown
from steward.policy.job.nudge import lost_its_place
from steward.policy.job.rulings import keep_ruling, wish_requeue

FIRST_FOR_S = 60.0
"""A job with enough free nodes starts within this time, or cannot use them."""
_AGAIN_S = 5.0
_LEAST_PRIORITY = 1
"""The priority that priority/multifactor (the default of 24.11 and 26.05) without weights shows for every job.

A job with a lower priority shows this one, too: its true priority may be lower by one and by its own nice value.
"""
_MOST_PRIORITY = 2**32 - 2
_MOST_NICE = 2**31 - 1 - 4
GROWN = "it asks for more than its last run had: it waits for its turn like others"


def put_first(job: Job, draft: Draft) -> None:
    """Put the job before all waiting jobs of its partition that have lost no place themselves, once a resume."""
    mem = draft.jobs[job.id]
    if not draft.want.resume.first or (mem.raised is not None and mem.raised.restart == mem.restarts):
        return
    before = _nice_to_be_first(job, draft)
    if before is None:
        return
    nice, ahead = before
    draft.jobs[job.id] = replace(mem, raised=Raised(restart=mem.restarts, before=job.nice, nice=nice, at=draft.now))
    text = f"a fault took its place: it goes before {ahead} waiting jobs, for {FIRST_FOR_S:.0f} s at most"
    why = Why(rule="first.raise", text=text, evidence=(f"nice {job.nice} -> {nice}",))
    raised = SetNice(key=Key(f"first:{job.id}:{mem.restarts}"), why=why, job=job.id, nice=nice)
    draft.wish(raised, _AGAIN_S, first=True)  # Slurm schedules as soon as the job's nodes are freed
    draft.tell("job.first", f"job {job.shown_id}: {why}", job=job.id)
    draft.wake(draft.now + FIRST_FOR_S)


def _nice_to_be_first(job: Job, draft: Draft) -> tuple[int, int] | None:
    """Return the nice value that puts the job first, and how many jobs it overtakes; None if nothing is to change."""
    all_there = _priorities_of_others(job.partition, draft)
    ahead = len(all_there) - bisect_left(all_there, job.priority)
    if not ahead or not job.priority:
        return None
    highest = all_there[-1]
    start = min(job.nice, 0) - 1 if job.priority == _LEAST_PRIORITY else job.nice
    nice = start - (highest - job.priority + 1)
    return (nice, ahead) if highest < _MOST_PRIORITY and abs(nice) <= _MOST_NICE else None


def _priorities_of_others(partition: str, draft: Draft) -> Sequence[int]:
    """Return the priorities, the lowest first, of the waiting jobs of the partition that have lost no place."""
    if partition not in draft.found.others:
        found = Counter(draft.overview.priorities_of(partition))
        parts = set(partition.split(","))
        for id in draft.overview.waiting_ids & draft.jobs.keys():
            fellow = draft.seen.jobs[id]
            if lost_its_place(draft.jobs[id]) and parts & set(fellow.partition.split(",")):
                found[fellow.priority] -= 1
        draft.found.others[partition] = sorted(found.elements())
    return draft.found.others[partition]


def was_put_first(job: Job, mem: JobMemory) -> bool:
    """Return whether the job's new run has started in the time for which Steward put the job first."""
    # Steward may restore the nice value in the second in which the job starts: compare times
    raised = mem.raised
    if raised is None or job.started is None or job.restarts != raised.restart + 1:
        return False
    return job.started <= raised.at + FIRST_FOR_S


def end_turn(job: Job, draft: Draft) -> None:
    """Decide to requeue a job that was put first and has started with more resources than its last run had."""
    # its user enlarged it after our last look at it
    why = Why(rule=OUT_OF_TURN, text="it went first in the queue, and was made larger meanwhile: it waits for its turn")
    keep_ruling(job.id, _larger(job), Ruling(decision=Decision.REQUEUE, why=why), draft)


def requeue_out_of_turn(job: Job, draft: Draft) -> None:
    """Ask for the requeue of a run whose turn was ended, until the run is over."""
    prior = draft.jobs[job.id].attempt_for(_larger(job))
    if prior is not None:
        wish_requeue(job, prior.why, draft)


def _larger(job: Job) -> str:
    return f"larger:{job.restarts}"


def restore_turns(draft: Draft) -> None:
    """Restore the nice value of every job that runs or had its time; keep a value that a person set since."""
    for id in jobs_needing_attention(draft):
        mem = draft.jobs[id]
        if mem.raised is not None:
            _restore(mem, mem.raised, draft)


def _is_held(job: Job) -> bool:
    """Return whether the job is held."""
    # Slurm 22.05 turns a new nice value into a priority, which would release the job
    return job.is_pending and not job.priority


def _restore(mem: JobMemory, raised: Raised, draft: Draft) -> None:
    """Restore the job's nice value when the job runs, is over, or did not start in time."""
    job = draft.seen.jobs.get(mem.id)
    if job is None or not (job.is_active or job.is_pending):
        draft.jobs[mem.id] = replace(mem, raised=None)
        return
    grown = job.is_pending and has_grown(job, mem)
    over = job.is_active or raised.restored or grown or draft.now >= raised.at + FIRST_FOR_S
    if not over:
        draft.wake(raised.at + FIRST_FOR_S)
        return
    is_noted = mem.restarts > raised.restart
    if job.is_active and job.nice != raised.nice and is_noted:
        draft.jobs[mem.id] = replace(mem, raised=None)
        return
    draft.jobs[mem.id] = replace(mem, raised=replace(raised, restored=True))
    if job.nice == raised.nice and not job.is_completing and not _is_held(job):
        late = GROWN if grown else "it did not start in time: it waits for its turn like others"
        text = "it runs" if job.is_active else late
        why = Why(rule="first.restore", text=text, evidence=(f"nice {raised.nice} -> {raised.before}",))
        key = Key(f"turn:{job.id}:{raised.restart}")
        draft.wish(SetNice(key=key, why=why, job=job.id, nice=raised.before), _AGAIN_S)
