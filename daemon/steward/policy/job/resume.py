"""Follow the jobs that opted in, and bring back those that were requeued or failed without a waiting shim."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from steward.model.action import AllowRequeue, SignalJob
from steward.model.events import Level
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job, JobState, other_parts
from steward.model.node_names import fold
from steward.model.port_error import is_refusal
from steward.model.resume import Decision, JobMemory, TakenOut
from steward.model.text import times
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.blame import EVIDENCE_AFTER_S
from steward.policy.facts.booted import BOOTED, RANKS, has_lost_script, lost_ranks_on, script_boot
from steward.policy.facts.opted_in import nodes_of_parts
from steward.policy.facts.suspended import suspended_s
from steward.policy.facts.told_to_save import limit_key
from steward.policy.facts.turn_share import has_share
from steward.policy.guards.run_end import asked_since, cleans_up_since, done_since, end_of, over_since
from steward.policy.job.decide import CANCELLED, Ruling, decide, has_cause
from steward.policy.job.evidence import Evidence, fault_of
from steward.policy.job.failure import BY_MACHINE, FailureSource, failure_without_ask
from steward.policy.job.first import end_turn, requeue_out_of_turn, was_put_first
from steward.policy.job.forgotten import is_shown_again, note_shown_again, put_back_again
from steward.policy.job.late import requeue_on_late_evidence
from steward.policy.job.launch import broken_end, broken_launch, is_word_awaited
from steward.policy.job.leaving import forgive_blind_time, note_look
from steward.policy.job.lost_place import has_grown, size_of
from steward.policy.job.nudge import UNBEGUN, is_left_unbegun, nudge, slurms_requeue
from steward.policy.job.options import options
from steward.policy.job.progress import note_saved
from steward.policy.job.remember import is_another
from steward.policy.job.rulings import (
    keep_ruling,
    requeue_by,
    requeue_key,
    standing_promise,
    was_put_back_by_us,
    wish_requeue,
)

LEFT_S = 3.0
"""A node that leaves a running job and shows no fault for this long was given up by the job's user."""
ENDS_OF_USER = 500
"""How many ended runs of one user a plan judges: 25 ms, where 9,000 would hold up the jobs of all others by 0.4 s."""
COMPLETING_SOON_S, COMPLETING_SHORT_S = 0.1, 2.0
"""How often, and for how long, to look at a run that cleans up fast.

A nudge in time lets the job start in the next pass of Slurm's scheduler, a late one only `batch_sched_delay` later.
"""
COMPLETING_LOOK_S = 0.3
COMPLETING_WATCH_S = 60.0


def follow_jobs(draft: Draft) -> None:
    """Bring the memory of each opted-in job up to date, and do what the job's state calls for."""
    _forget_reused_numbers(draft)
    ids = jobs_needing_attention(draft)
    forgive_blind_time(ids, draft)
    later = _for_later_turns(ids, draft)
    for id in later:
        over_since(draft.seen.jobs[id], draft)
    for id in ids:
        if id in later:
            continue
        job = draft.seen.jobs.get(id)
        note_saved(draft.jobs[id], draft)
        if job is not None and job.is_completing:
            _look_soon(job, draft)
        if job is not None:
            _count_unseen(job, draft)
        if job is None:
            _note_forgotten(id, draft)
        elif job.is_active:
            _follow_running(job, draft)
        elif job.is_pending:
            _follow_pending(job, draft)
        elif job.state is not JobState.UNKNOWN and draft.jobs[id].ended is None:
            _follow_ended(job, draft)
    requeue_on_late_evidence(draft)
    note_look(ids, draft)


def _for_later_turns(ids: Sequence[JobId], draft: Draft) -> frozenset[JobId]:
    """Return the ended runs that this plan leaves out: of a user with very many, each second judges another part."""
    # an end is judged again in each turn until no more evidence can come; one user can have thousands at once
    of_user = defaultdict[int, list[JobId]](list)
    for id in ids:
        job = draft.seen.jobs.get(id)
        if job is not None and job.is_over and draft.jobs[id].ended is None:
            of_user[draft.jobs[id].uid].append(id)
    later: list[JobId] = []
    for its in of_user.values():
        parts = math.ceil(len(its) / ENDS_OF_USER)
        if parts > 1:
            draft.wake(draft.now + 1.0)
            later += (id for number, id in enumerate(its) if (number + int(draft.now)) % parts)
    return frozenset(later)


def _forget_reused_numbers(draft: Draft) -> None:
    """Forget the jobs whose numbers Slurm gave to others, which are remembered when they opt in themselves."""
    for id in jobs_needing_attention(draft):
        job = draft.seen.jobs.get(id)
        if job is not None and is_another(job, draft.jobs[id]):
            del draft.jobs[id]


def _look_soon(job: Job, draft: Draft) -> None:
    """Look again soon at a job that cleans up."""
    began = cleans_up_since(job, draft)
    # Slurm sends no notice when a job has cleaned up, and a requeued job then waits for our nudge
    if draft.now < began + COMPLETING_WATCH_S:
        draft.wake(draft.now + (COMPLETING_SOON_S if draft.now < began + COMPLETING_SHORT_S else COMPLETING_LOOK_S))


def _count_unseen(job: Job, draft: Draft) -> None:
    """Charge a resume for each run that came and ended between two looks, because its cause is unknown."""
    mem = draft.jobs[job.id]
    if job.restarts <= mem.restarts + 1:
        return
    runs = range(mem.restarts + 1, job.restarts)
    unseen = sum(not was_put_back_by_us(job.id, restart, draft) for restart in runs)
    if unseen and mem.pending_from is not None and not is_left_unbegun(mem) and _has_not_begun(job, draft):
        mem = _note_unbegun(job, draft)
    if unseen and could_not_begin(job, mem):
        _forget_unbegun_run(job, replace(mem, resumes=mem.resumes + unseen - 1), draft)
    elif mem.nodes:
        draft.jobs[job.id] = replace(mem, restarts=job.restarts - 1, resumes=mem.resumes + unseen)
        if unseen:
            text = f"job {job.shown_id} was started again {times(unseen)} while the head did not look"
            text += ": each counts as a resume"
            draft.tell("job.unseen", text, level=Level.WARNING, job=job.id)


def _has_not_begun(job: Job, draft: Draft) -> bool:
    """Return whether Slurm requeued the job after our nudge without a run that was seen."""
    # Slurm does that if it can make no credential for the job, for example for an unknown user
    # a job that Slurm holds has no delay of Slurm's to wait for
    if not job.is_pending or job.is_held_by_slurm:
        return False
    words = (word for word in draft.overview.opted_in.get(job.id, ()) if word.told_by)
    return not any(word.restart >= job.restarts - 1 for word in words)


def _note_unbegun(job: Job, draft: Draft) -> JobMemory:
    """Count a run that never began, leave the job to Slurm's own delay after too many, and return its memory."""
    mem = draft.jobs[job.id]
    if job.restarts in mem.unbegun:
        return mem
    mem = draft.jobs[job.id] = replace(mem, unbegun=(*mem.unbegun, job.restarts))
    if is_left_unbegun(mem):
        text = f"job {job.shown_id} {UNBEGUN}: it is left to Slurm's own delay"
        draft.tell("job.unbegun", text, once=f"unbegun:{job.id}:{mem.restarts}", level=Level.WARNING, job=job.id)
    return mem


def could_not_begin(job: Job, mem: JobMemory) -> bool:
    """Return whether Slurm holds the job again after our release, because its next run could not begin."""
    return mem.pending_from is not None and job.is_pending and job.is_held_by_slurm


def _forget_unbegun_run(job: Job, mem: JobMemory, draft: Draft) -> None:
    """Make the run that could not begin the job's last run, with unknown nodes."""
    draft.jobs[job.id] = replace(mem, restarts=job.restarts - 1, nodes=frozenset(), pending_from=None)


def _allow_requeue(job: Job, draft: Draft) -> None:
    """Ask Slurm to requeue the job by itself if one of its nodes dies (`Requeue=1`)."""
    if has_share(AllowRequeue, job.user_id, draft):
        why = Why(rule="resume.allow", text="it asked to be resumed, which needs Requeue=1")
        draft.wish(AllowRequeue(key=Key(f"allow:{job.id}:{job.restarts}"), why=why, job=job.id), 60.0)


def _follow_running(job: Job, draft: Draft) -> None:
    """Follow a job that runs."""
    _note_run(job, draft)
    _note_script(job, draft)
    put_back_again(job, draft)
    requeue_out_of_turn(job, draft)
    if not job.requeue and job.is_batch and not draft.jobs[job.id].stays_in_place:
        _allow_requeue(job, draft)
    signal_before_limit(job, draft.jobs[job.id], draft)
    host = job.batch_host if job.is_batch and job.nodes else None
    if host is not None and (why := _why_without_script(job, host, draft)):
        gone = Evidence(node=host, text=f"{host}: {why}", at=draft.now, blames=host not in job.nodes)
        _requeue_broken_run(job, FailureSource.NO_SCRIPT, gone, f"script:{job.restarts}", draft)
    elif node := lost_ranks_on(job, draft.jobs[job.id], draft):
        gone = Evidence(node=node, text=f"{node}: {BOOTED}", at=draft.now, blames=False)
        _requeue_broken_run(job, FailureSource.HANG, gone, f"{RANKS}{job.restarts}", draft)


def _why_without_script(job: Job, host: NodeName, draft: Draft) -> str:
    """Return why the job's script is gone though Slurm shows the job as running; empty if it is not."""
    # with `--no-kill` Slurm takes a dead batch host out of the job, which then runs for ever
    if host not in job.nodes:
        return "its script ran there, and Slurm took it out of the job"
    return BOOTED if has_lost_script(job, draft.jobs[job.id], draft) else ""


def _note_run(job: Job, draft: Draft) -> None:
    """Remember the run that Slurm shows as the job's present run."""
    mem = draft.jobs[job.id]
    if mem.pending_from is None and mem.nodes and job.restarts > mem.restarts:
        _note_requeue(job, mem, draft)  # an expedited requeue may come and go between two looks
        mem = draft.jobs[job.id]
    same_run = mem.started == job.started and mem.restarts == job.restarts
    if is_shown_again(job, mem):
        mem = note_shown_again(job, draft)
    elif mem.pending_from is not None:
        mem = draft.jobs[job.id] = _resumed(job, mem, draft)
    if same_run and _is_as_remembered(job, mem):
        return
    is_out_of_turn = not same_run and was_put_first(job, mem) and has_grown(job, mem)
    nodes = mem.nodes | job.nodes if same_run else job.nodes
    parts = nodes_of_parts(job, draft) | (mem.parts if same_run else frozenset())
    excised = mem.excised | (nodes - job.nodes)
    followed = replace(mem, nodes=nodes, parts=parts, excised=excised, restarts=job.restarts, started=job.started)
    followed = replace(followed, taken_out=_taken_out(nodes - job.nodes, mem.taken_out if same_run else (), draft))
    followed = replace(followed, ended=None, end_text="", no_requeue=mem.no_requeue and not job.requeue)
    size, boot = size_of(job, mem.size if same_run else None), mem.script_boot if same_run else None
    followed = replace(followed, size=size, script_boot=boot)
    if followed != draft.jobs[job.id]:
        draft.jobs[job.id] = followed
    if is_out_of_turn:
        end_turn(job, draft)


def _note_script(job: Job, draft: Draft) -> None:
    """Remember in which boot of its batch host the script of the present run began."""
    mem = draft.jobs[job.id]
    boot = script_boot(job, mem, draft)
    if boot is not None and boot != mem.script_boot:
        draft.jobs[job.id] = replace(mem, script_boot=boot)


def _taken_out(lost: frozenset[NodeName], known: tuple[TakenOut, ...], draft: Draft) -> tuple[TakenOut, ...]:
    """Return the nodes that left the running job, each with the time when that was first seen, and its fault."""
    new = lost - {one.node for one in known}
    left = (*known, *(TakenOut(node=node, at=draft.now) for node in sorted(new)))
    # nodes and jobs are not read at the same moment: a fault may show a little later
    return tuple(replace(one, fault=fault_of(one, draft)) if _is_unexplained(one, draft) else one for one in left)


def _is_unexplained(one: TakenOut, draft: Draft) -> bool:
    """Return whether the node that left has no fault yet, and one may still show."""
    return not one.fault and draft.now <= one.at + LEFT_S


def _is_as_remembered(job: Job, mem: JobMemory) -> bool:
    """Return whether the run has nothing new to remember, the usual case."""
    may_change = mem.ended is not None or bool(mem.end_text) or (mem.no_requeue and job.requeue)
    may_change = may_change or mem.size is None or mem.size.limit_s != job.time_limit_s
    return job.het_job_id is None and job.nodes == mem.nodes and not may_change


def _requeue_broken_run(job: Job, kind: FailureSource, gone: Evidence, decided_for: str, draft: Draft) -> None:
    """Rule on a job that runs on though a part of it is gone: requeue it, or report that it must be cancelled."""
    mem = draft.jobs[job.id]
    if prior := mem.attempt_for(decided_for):
        if prior.is_requeue:
            wish_requeue(job, prior.why, draft)
        return
    ruling = decide(failure_without_ask(kind, job, mem, draft.now, draft, known=(gone,)))
    if ruling.decision is Decision.STOP:
        keep_ruling(job.id, decided_for, ruling, draft)
        what = "its script" if kind is FailureSource.NO_SCRIPT else "some of its ranks"
        text = f"job {job.shown_id} runs without {what} since {gone.node} died; {ruling.why.text}: cancel it"
        draft.tell("job.budget", text, once=f"{decided_for}:{job.id}", level=Level.WARNING, job=job.id)
    else:
        requeue_by(job, decided_for, ruling, draft)


def _resumed(job: Job, mem: JobMemory, draft: Draft) -> JobMemory:
    """Return the memory of a job that runs again, and say so."""
    took = draft.now - mem.pending_from if mem.pending_from is not None else 0.0
    draft.tell("job.resumed", f"job {job.shown_id} runs again after {took:.1f} s on {fold(job.nodes)}", job=job.id)
    attempts = mem.attempts
    if attempts and attempts[-1].is_requeue and attempts[-1].running is None:
        attempts = (*attempts[:-1], replace(attempts[-1], running=draft.now))
    return replace(mem, pending_from=None, unbegun=(), nudges=0, last_nudge=0.0, attempts=attempts)


def _follow_pending(job: Job, draft: Draft) -> None:
    """Follow a job that waits in the queue."""
    mem = draft.jobs[job.id]
    if mem.pending_from is None and (mem.nodes or job.restarts > mem.restarts):
        if is_word_awaited(job, mem, draft):
            return
        _note_requeue(job, mem, draft)
    if draft.jobs[job.id].pending_from is not None and not waits_for_parts(job, draft):
        nudge(job, draft)


def _note_requeue(job: Job, mem: JobMemory, draft: Draft) -> None:
    """Note that the job is back in the queue: by our request, by Slurm after a fault, or by a person."""
    mem = draft.jobs[job.id] = replace(mem, ended=None, end_text="")
    last = mem.last_attempt
    if last is not None and last.is_requeue and last.requeued is None:
        attempts = (*mem.attempts[:-1], replace(last, requeued=draft.now))
        draft.jobs[job.id] = replace(mem, attempts=attempts, pending_from=draft.now, unbegun=())
    else:
        _blame_for_requeue(job, mem, draft)
        draft.jobs[job.id] = replace(draft.jobs[job.id], pending_from=draft.now)
    draft.tell("job.requeued", f"job {job.shown_id} is back in the queue (restart {job.restarts})", job=job.id)


def _blame_for_requeue(job: Job, mem: JobMemory, draft: Draft) -> None:
    """Charge a requeue that Slurm did for a fault; a person's requeue costs the job nothing."""
    failure = failure_without_ask(
        FailureSource.REQUEUED, job, mem, draft.now, draft, known=broken_launch(job, mem, draft)
    )
    if not has_cause(failure):
        return
    ruling = decide(failure)
    keep_ruling(job.id, slurms_requeue(mem), ruling, draft, slurm_did=True)
    if ruling.decision is Decision.STOP:
        text = f"job {job.shown_id} was requeued by Slurm and is left to it: {ruling.why.text}"
        draft.tell("job.budget", text, once=f"budget:{job.id}:{job.restarts}", level=Level.WARNING, job=job.id)


def _follow_ended(job: Job, draft: Draft) -> None:
    """Rule on a job that ended without a waiting shim: requeue it for evidence, or as its options say."""
    is_unseen = job.restarts > (mem := draft.jobs[job.id]).restarts or mem.started is None
    if is_unseen and job.nodes and job.state is not JobState.CANCELLED:
        _note_run(replace(job, state=JobState.RUNNING, reason=""), draft)  # the run was over before we looked
    over, mem = over_since(job, draft), draft.jobs[job.id]
    last = mem.last_attempt
    told_to_stop = last is not None and last.final and not last.is_requeue and last.restart == mem.restarts
    if told_to_stop or not (job.is_batch or job.state in BY_MACHINE):
        _note_end(job.id, f"{job.state.value}", draft)
    elif not job.is_completing or draft.now > over + EVIDENCE_AFTER_S:
        _rule_late(job, mem, over, draft)


def _rule_late(job: Job, mem: JobMemory, over: float, draft: Draft) -> None:
    """Rule on a run that ended; a run that still cleans up is not requeued yet."""
    # a fault must fit the time at which Slurm ended the run; the time to look into the end counts from `over`, when the
    # end was seen
    ended = job.ended if job.ended is not None else over
    ruling = decide(failure_without_ask(FailureSource.ENDED, job, mem, ended, draft, known=broken_end(job, mem, draft)))
    promised = standing_promise(mem, ruling, ended, draft)
    if job.is_completing and (promised is not None or ruling.decision is not Decision.STOP):
        return
    if promised is None:
        _decide_late(job, f"end:{mem.restarts}", ruling, over, draft)
    elif why := _why_given_up(job, draft):
        text = f"{job.state.value}; it should have been resumed and could not be requeued: {why}"
        _note_end(job.id, text, draft, level=Level.WARNING)
    else:
        wish_requeue(job, promised.why, draft)


def _why_given_up(job: Job, draft: Draft) -> str:
    """Return why the requeue is given up: Slurm refused it, or it took too long; empty while it may still come."""
    error, most_s = draft.seen.failures.get(requeue_key(job), ""), EVIDENCE_AFTER_S
    # a refusal counts only if Slurm shows that the job may be requeued
    if job.requeue and is_refusal(error):
        return error
    if draft.asked_at(requeue_key(job)) is None:
        return ""  # it waits for its user's share of a turn
    is_late = draft.now >= asked_since(job, draft) + most_s
    return f"not within {most_s:.0f} s ({error or 'no error'})" if is_late else ""


def _decide_late(job: Job, decided_for: str, ruling: Ruling, over: float, draft: Draft) -> None:
    """Carry out a ruling on an ended run; an open ruling first waits for faults that may still be reported."""
    rules, stops = draft.want.resume, ruling.decision is Decision.STOP
    until = over + (EVIDENCE_AFTER_S if stops else rules.detect_s)
    if ruling.open and draft.now <= until:
        draft.wake(until + 0.1)
    elif stops or draft.now > done_since(job, draft) + EVIDENCE_AFTER_S:
        if stops and ruling.why.rule != CANCELLED:
            keep_ruling(job.id, decided_for, ruling, draft)
        _note_end(job.id, f"{job.state.value}", draft)
    else:
        requeue_by(job, decided_for, ruling, draft)


def _note_forgotten(id: JobId, draft: Draft) -> None:
    """Note that the job is over because Slurm does not know it any more; warn if it should have been requeued."""
    text, promised = "Slurm does not know it any more", draft.jobs[id].promised
    if promised is not None and end_of(draft.jobs[id]).over is not None:
        text += "; it should have been resumed, and Slurm forgot it (MinJobAge) before its requeue"
        _note_end(id, text, draft, level=Level.WARNING)
    else:
        _note_end(id, text, draft)


def _note_end(id: JobId, text: str, draft: Draft, level: Level = Level.INFO) -> None:
    """Note that the job is over, once."""
    mem = draft.jobs[id]
    if mem.ended is None:
        draft.jobs[id] = replace(mem, ended=draft.now, end_text=text, pending_from=None)
        draft.tell("job.ended", f"job {draft.shown_id(id)}: {text}", level=level, job=id)


def waits_for_parts(job: Job, draft: Draft) -> bool:
    """Return whether a requeued job must not begin yet because parts of it still run; requeue left-over parts."""
    # Slurm requeues only the parts of a heterogeneous job that lost a node; a new run beside the others would fail
    parts = other_parts(job, draft.seen.jobs)
    if any(part.is_completing for part in parts):
        draft.wake(draft.now + COMPLETING_LOOK_S)
    elif left := [part for part in parts if part.is_left_over and not _has_begun_anew(part, draft.jobs[job.id])]:
        ids = ", ".join(part.shown_id for part in left)
        why = Why(rule="resume.parts", text="its parts begin together", evidence=(f"left over of the last run: {ids}",))
        text = f"job {job.shown_id}: {why}: all go back into the queue"
        draft.tell("job.parts", text, once=f"parts:{job.id}:{job.restarts}", job=job.id)
        wish_requeue(job, why, draft)
    else:
        return False
    return True


def _has_begun_anew(part: Job, mem: JobMemory) -> bool:
    """Return whether the part began after its job was put back: its leader was read a moment before they began."""
    return part.started is not None and mem.pending_from is not None and part.started > mem.pending_from


def signal_before_limit(job: Job, mem: JobMemory, draft: Draft) -> None:
    """Signal a job that continues after its time limit to save its state, once for each limit."""
    rules = draft.want.resume
    if not rules.checkpoint_signal or job.started is None or job.time_limit_s is None:
        return
    if not job.is_batch or not options(mem.mode, rules).timeout:
        return
    # Slurm's clock stands still while a job is suspended
    at = job.started + job.time_limit_s + suspended_s(mem, draft.now) - rules.checkpoint_before_s
    if draft.now < at:
        draft.wake(at)
        return
    if draft.asked_at(limit_key(job)) is None and not has_share(SignalJob, job.user_id, draft):
        return
    text = (
        f"its time limit is over in {rules.checkpoint_before_s:g} s or less: it may save its state, and goes on after"
    )
    why = Why(rule="resume.checkpoint", text=text, evidence=(f"time limit {job.time_limit_s:g} s",))
    draft.wish(SignalJob(key=limit_key(job), why=why, job=job.id, signal=rules.checkpoint_signal))
