"""Keep the ledger: a line for each run of each job that opted in, with the cause and the times of its end."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from steward.model.case import Case, CaseStep
from steward.model.elastic import SizeChange
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.job_report import Progress
from steward.model.ledger import Ending, Pause, Run
from steward.model.memory import Memory
from steward.model.resume import Attempt, Decision, JobMemory
from steward.model.text import one_line
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.job.progress import progress_of

RUNS_KEPT = 20
"""Runs kept in memory for each job; the store keeps all runs."""
PAUSES_KEPT = 100
SEEN_LATE_S = 2.0
STEPS_EVERY_S, CHECKPOINTS_EVERY_S = 30.0, 5.0
BEFORE_S, AFTER_S = 300.0, 600.0
"""A repair explains a decision if its fault is at most BEFORE_S before the run and AFTER_S after the decision."""
_GO_ON = {
    Decision.RETRY: Ending.RETRIED,
    Decision.REQUEUE: Ending.REQUEUED,
    Decision.WAIT: Ending.REQUEUED,
}


def keep_ledger(draft: Draft) -> None:
    """Bring the ledger of every remembered job up to date."""
    # an elastic job that changes its size may need no other attention
    for id in dict.fromkeys([*jobs_needing_attention(draft), *sorted(draft.elastic.keys() & draft.jobs.keys())]):
        before = draft.ledger.get(id, ())
        after = _brought_up_to_date(before, draft.jobs[id], draft.seen.jobs.get(id), draft)
        if after != before:
            draft.ledger[id] = after
    for id in draft.ledger.keys() - draft.jobs.keys():
        del draft.ledger[id]


def _brought_up_to_date(before: tuple[Run, ...], mem: JobMemory, job: Job | None, draft: Draft) -> tuple[Run, ...]:
    """Return the job's runs, brought up to date."""
    runs = [run for run in before if run.opted_at == mem.opted_at]
    if (
        runs
        and runs[-1].ending is Ending.OVER
        and mem.promised is not None
        and mem.promised.restart == runs[-1].restart
    ):
        runs[-1] = replace(runs[-1], ending=None, end_text="")  # the ruling on its end was overturned
    if runs and runs[-1].ending is None:
        runs = _with_last_updated([*runs[:-1], _with_size_changes(runs[-1], draft)], mem, job, draft)
    elif runs and runs[-1].ending is Ending.REQUEUED:
        runs[-1] = _with_late_decision(runs[-1], mem)
    if job is not None and (job.is_active or _came_and_went(job, runs)) and _is_new(job, runs):
        runs = _with_last_updated(_with_new_run(runs, mem, job, draft), mem, job, draft)
    found = _with_work_done_again(runs)[-RUNS_KEPT:]
    return tuple(_with_repairs(run, next, draft) for run, next in zip_longest(found, found[1:]))


def _with_work_done_again(runs: list[Run]) -> list[Run]:
    """Return the runs, each with the lowest first step of the runs after it: work from that step on is done again."""
    found, lowest = list[Run](), None
    for run in reversed(runs):
        found.append(run if run.again_from == lowest else replace(run, again_from=lowest))
        # a run that begins at step 1 undoes all before it
        lowest = min((at for at in (lowest, run.first) if at is not None), default=None)
    return found[::-1]


def _with_last_updated(runs: list[Run], mem: JobMemory, job: Job | None, draft: Draft) -> list[Run]:
    """Return the runs with the progress, the retries and the end of the last one."""
    runs = _with_retries([*runs[:-1], _with_news(runs[-1], draft)], mem, job)
    return [*runs[:-1], _with_end(runs[-1], mem, job, draft)]


def _with_size_changes(run: Run, draft: Draft) -> Run:
    """Return the run with the finished changes of size of its elastic run."""
    elastic = draft.elastic.get(run.job)
    after = run.pauses[-1].stepped if run.pauses else run.started
    for change in elastic.events if elastic is not None else ():
        if change.before and change.done is not None and change.done > after:
            run = replace(run, pauses=_merged_if_too_many((*run.pauses, _pause(run, change, change.done, after))))
            after = change.done
    return run


def _pause(run: Run, change: SizeChange, stepped: float, after: float) -> Pause:
    """Return one change of size as a pause of the run."""
    stopped = max(stepped - (change.up_s or 0.0), after)
    if change.again_s is not None:
        kept = stopped - change.again_s
    elif change.unsaved and run.checkpointed is not None:
        # without reported steps, the work that is done again begins at the last known checkpoint
        kept = min(run.checkpointed, stopped)
    else:
        kept = stopped
    return Pause(kept=max(kept, after), stopped=stopped, stepped=stepped, steps=change.again)


def _merged_if_too_many(pauses: tuple[Pause, ...]) -> tuple[Pause, ...]:
    """Return the pauses, with the two oldest merged into one of the same length if there are too many."""
    if len(pauses) <= PAUSES_KEPT:
        return pauses
    first, second, *others = pauses
    stopped = second.stopped - (first.stepped - first.stopped)
    kept = stopped - (second.stopped - second.kept) - (first.stopped - first.kept)
    known = [one.steps for one in (first, second) if one.steps is not None]
    steps = sum(known) if known else None
    return (Pause(kept=kept, stopped=stopped, stepped=second.stepped, steps=steps), *others)


def _with_late_decision(run: Run, mem: JobMemory) -> Run:
    """Return the requeued run whose successor has not begun, with a decision that came after Slurm's requeue."""
    # Slurm may requeue a job before any ruling on it, and hide the requeue for a moment
    attempt = _last_attempt(mem, run, (Decision.REQUEUE, Decision.WAIT)) if run.decision is None else None
    if attempt is not None:
        run = _with_ending(run, attempt, run.ended or attempt.at, Ending.REQUEUED)
    return replace(run, eligible=mem.last_nudge) if run.eligible is None and mem.last_nudge else run


def _came_and_went(job: Job, runs: list[Run]) -> bool:
    """Return whether a run after a requeue was over before the head looked."""
    return bool(runs) and job.is_over and job.started is not None and job.started >= (runs[-1].ended or 0.0) - 1.0


def _is_new(job: Job, runs: list[Run]) -> bool:
    """Return whether the job shows a run that is not in the ledger yet."""
    return not runs or (runs[-1].ending is not None and job.restarts > runs[-1].restart)


def _with_new_run(runs: list[Run], mem: JobMemory, job: Job, draft: Draft) -> list[Run]:
    """Return the runs with a new one for the job's present run."""
    told = job.started if job.started is not None else draft.now
    # Slurm shows whole seconds: for a start that we saw, our own clock is more exact
    started = draft.now if job.is_active and draft.now - told < SEEN_LATE_S else told
    run = Run(
        job=mem.id,
        opted_at=mem.opted_at,
        restart=job.restarts,
        uid=mem.uid,
        started=started,
        task_id=job.shown_id if job.array_task is not None else "",
        name=one_line(job.name, 80),
        partition=one_line(job.partition, 80),
        account=one_line(job.account, 80),
        nodes=mem.nodes | job.nodes,
    )
    if runs and runs[-1].eligible is None and runs[-1].ending is Ending.REQUEUED and job.eligible is not None:
        runs = [*runs[:-1], replace(runs[-1], eligible=job.eligible)]
    return [*runs, run]


def _with_news(run: Run, draft: Draft) -> Run:
    """Return the run with the progress that its nodes report."""
    told = _progress(run, draft)
    if told is None:
        return run
    first = run.first_step if run.first_step is not None else _first_step(run, told)
    # rarely, because each change is written to the disk
    saved = told.checkpoint_step != run.checkpoint_step and draft.now >= run.progress_at + CHECKPOINTS_EVERY_S
    if first == run.first_step and not saved and draft.now < run.progress_at + STEPS_EVERY_S:
        return run
    return _with_progress(replace(run, first_step=first, first=_first_number(run, told)), told, draft)


def _with_progress(run: Run, told: Progress, draft: Draft) -> Run:
    """Return the run with this report of its progress."""
    if (told.step, told.stepped, told.checkpoint_step) == (run.step, run.stepped, run.checkpoint_step):
        return run
    return replace(
        run,
        step=told.step,
        stepped=told.stepped,
        checkpoint_step=told.checkpoint_step,
        checkpointed=told.checkpointed,
        progress_at=draft.now,
    )


def _with_last_report(run: Run, draft: Draft) -> Run:
    """Return the run with the last report of its progress."""
    told = _progress(run, draft)
    return run if told is None else _with_progress(replace(run, first=_first_number(run, told)), told, draft)


def _progress(run: Run, draft: Draft) -> Progress | None:
    """Return the report of the run's farthest node; None if no node reports progress."""
    return max(progress_of(run.job, run.nodes, draft, restart=run.restart), key=_progress_order, default=None)


def _progress_order(told: Progress) -> tuple[bool, int, int, NodeName]:
    """Return the sort key of a report of progress."""
    return told.step is not None, told.step or 0, told.checkpoint_step or 0, told.node


def _first_step(run: Run, told: Progress) -> float | None:
    """Return when the run made its first step; None if that is not known."""
    # agents report the first step once for each allocation; a later try counts from its next step
    for at in (told.first_step, told.stepped):
        if at is not None and at >= run.started:
            return at
    return None


def _first_number(run: Run, told: Progress) -> int | None:
    """Return the number of the run's first step; None if that is not known."""
    # a report about an earlier try within the allocation does not count for this one
    is_mine = told.stepped is not None and told.stepped >= run.started
    return told.first if run.first is None and is_mine else run.first


def _with_retries(runs: list[Run], mem: JobMemory, job: Job | None) -> list[Run]:
    """Return the runs, with a new one for each retry in place."""
    for attempt in mem.attempts:
        last = runs[-1]
        mine = attempt.decision is Decision.RETRY and attempt.restart == last.restart
        if not mine or attempt.at <= last.started:
            continue
        nodes = job.nodes if job is not None and job.is_active else last.nodes
        # a retry begins with its answer: the step runs again some 60 ms later
        again = Run(
            job=last.job,
            opted_at=last.opted_at,
            restart=last.restart,
            attempt=last.attempt + 1,
            uid=last.uid,
            started=attempt.at,
            task_id=last.task_id,
            name=last.name,
            partition=last.partition,
            account=last.account,
            nodes=(nodes - attempt.culprits) or last.nodes,
        )
        runs = [*runs[:-1], _with_ending(last, attempt, attempt.at, Ending.RETRIED), again]
    return runs


def _with_end(run: Run, mem: JobMemory, job: Job | None, draft: Draft) -> Run:
    """Return the run with its end if the job or the run is over; else brought up to date."""
    if mem.ended is not None:
        at = job.ended if job is not None and job.ended is not None else mem.ended
        final = _last_attempt(mem, run, (Decision.STOP,)) if "COMPLETED" not in mem.end_text else None
        run = _with_last_report(run, draft)
        return replace(_with_ending(run, final, run.ended or at, Ending.OVER), end_text=mem.end_text)
    if job is None:
        return run
    if job.is_pending or job.restarts > run.restart:
        attempt = _last_attempt(mem, run, (Decision.REQUEUE, Decision.WAIT))
        run = _with_last_report(run, draft)
        return _with_ending(run, attempt, run.ended or _end_not_seen(attempt, mem, job, draft), Ending.REQUEUED)
    if job.is_active:
        return _with_decision_to_stop(run, mem, job)
    return run if run.ended is not None or job.ended is None else replace(run, ended=max(job.ended, run.started))


def _with_decision_to_stop(run: Run, mem: JobMemory, job: Job) -> Run:
    """Return the run that goes on, with a decision to stop as soon as that is known."""
    stop = _last_attempt(mem, run, (Decision.STOP,))
    if stop is not None and stop.final and run.decided != stop.at:
        run = replace(run, decision=stop.decision, why=stop.why, culprits=stop.culprits, decided=stop.at)
    return replace(run, nodes=run.nodes | job.nodes) if run.attempt == 0 and not job.nodes <= run.nodes else run


def _end_not_seen(attempt: Attempt | None, mem: JobMemory, job: Job, draft: Draft) -> float:
    """Return the best known end of a requeued run whose end was not seen."""
    if attempt is not None and attempt.requeued is not None:
        return attempt.requeued
    if mem.pending_from is not None:
        return mem.pending_from
    if attempt is not None:
        return attempt.at
    return min(draft.now, job.started if job.started is not None else draft.now)


def _last_attempt(mem: JobMemory, run: Run, decisions: tuple[Decision, ...]) -> Attempt | None:
    """Return the last of the job's decisions of these kinds on this run; None if there is none."""
    found = (a for a in reversed(mem.attempts) if a.restart == run.restart and a.decision in decisions)
    return next((a for a in found if a.at >= run.started), None)


def _with_ending(run: Run, attempt: Attempt | None, at: float, ending: Ending) -> Run:
    """Return the run with its end and the decision on it."""
    closed = replace(run, ended=max(at, run.started), ending=ending)
    if attempt is None:
        return closed
    return replace(
        closed,
        decision=attempt.decision,
        why=attempt.why,
        culprits=attempt.culprits,
        decided=attempt.at,
        counted=attempt.counted,
    )


def _with_repairs(run: Run, follower: Run | None, draft: Draft) -> Run:
    """Return the run with the times of its culprits' repairs, which may begin after the decision."""
    if run.decided is None or run.marked is not None or not run.was_hit:
        return run
    known = (case for node in sorted(run.culprits) for case in draft.cases.of(node))
    cases = [case for case in known if _explains(case, run, follower)]
    if not cases and run.detected is not None:
        return run
    faults = [case.fault_at for case in cases if case.fault_at is not None]
    detected = [case.detected for case in cases if case.detected is not None]
    marked = [case.marked for case in cases if case.marked is not None]
    return replace(
        run,
        cases=tuple(sorted({case.id for case in cases})),
        cause=cases[0].check if cases else "",
        fault=min(faults, default=None),
        detected=min([*detected, *_told_by_shim(run, draft)], default=None),
        marked=min(marked, default=None),
    )


def _explains(case: Case, run: Run, follower: Run | None) -> bool:
    """Return whether the repair is near enough in time to explain the decision on the run."""
    if follower is not None and case.fault_at is not None and case.fault_at >= follower.started:
        return False
    began = case.fault_at if case.fault_at is not None else case.opened
    decided = run.decided if run.decided is not None else began
    over = case.closed is not None and case.closed < run.started
    return not over and run.started - BEFORE_S <= began <= decided + AFTER_S


def _told_by_shim(run: Run, draft: Draft) -> list[float]:
    """Return when a shim of this run reported that the job had failed."""
    asks = (ask for ask in draft.overview.asks.get(run.job, ()) if ask.restart == run.restart)
    return [draft.asks[ask.id].at for ask in asks if ask.id in draft.asks]


# The lines of the ledger that a commit must write: those that differ from the last commit's. A line's key is permanent.

Line = Run | Case
"""A run of a job, or the repair of a node."""


def changed_lines(before: Memory, after: Memory) -> tuple[Line, ...]:
    """Return the lines that differ from the last commit's, in the order of their begin within each memory."""
    return (*_runs(before, after), *_repairs(before, after))


def key_of(line: Line) -> str:
    """Return the key of a line; two lines with the same key are one line, seen at different times."""
    # case numbers begin anew after the store was lost: the time makes the key unique
    return f"run:{line.key}" if isinstance(line, Run) else f"case:{line.id}.{int(line.opened)}"


def _runs(before: Memory, after: Memory) -> Iterator[Run]:
    """Yield the runs that differ."""
    for job, runs in after.ledger.items() if after.ledger is not before.ledger else ():
        old = before.ledger.get(job, ())
        if runs is not old:
            yield from (run for run in runs if run not in old)


def _repairs(before: Memory, after: Memory) -> Iterator[Case]:
    """Yield the repairs that differ, without suspicions that led to no repair."""
    for id, case in after.cases.items() if after.cases is not before.cases else ():
        old = before.cases.get(id)
        if (
            case is not old
            and case != old
            and (case.marked is not None or case.step not in (CaseStep.SUSPECT, CaseStep.CLOSED))
        ):
            yield case
