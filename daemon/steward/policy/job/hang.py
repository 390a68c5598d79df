"""Find jobs that hang: no step for much longer than usual, or ranks that do no work (`facts/standing_still.py`).

Of a job with rules of its own for its output, what they say is told, too.

Of every job that is told. Of a job that opted in first the stacks of its tasks are kept and its nodes are checked; then
a ruling as for any failure follows. What its ranks do counts for the ruling only where `hang=` was written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from steward.model.action import CheckNow
from steward.model.agent_action import CollectStacks
from steward.model.events import Level
from steward.model.ids import Key, NodeName
from steward.model.job import Job, JobState
from steward.model.job_report import Progress
from steward.model.job_sight import LogState, LogWord, StepSight
from steward.model.resume import Attempt, Decision, JobMemory, Standstill
from steward.model.resume_policy import CHECK_BUDGET_S
from steward.model.text import ago, capitalized, span
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.blame import HANG
from steward.policy.facts.standing_still import (
    FEWEST_RANKS,
    Still,
    StillKind,
    blamed,
    count_of_ranks,
    jobs_seen_still,
    output_of,
    seen_working,
    slow_ranks,
    stillness,
    words_of_rules,
)
from steward.policy.facts.suspended import continued_at
from steward.policy.job.decide import Ruling, decide
from steward.policy.job.evidence import Evidence
from steward.policy.job.failure import FailureSource, failure_without_ask, last_retry
from steward.policy.job.odd_ranks import node_of_odd_ranks, note_odd_ranks, what_if_it_fails, without_odd_ranks
from steward.policy.job.progress import progress_of
from steward.policy.job.rulings import requeue_by, wish_requeue

PAUSES = 5.0
"""A job hangs if it makes no step for this many times its usual longest pause between two steps."""
AGAIN_S = 5.0
"""Requests for stacks and checks of the same hang are repeated after this time."""
TOGETHER_S = 120.0
TOO_MANY = 3
"""If this many jobs stop within TOGETHER_S of each other, the cause is outside the jobs: a disk, a clock."""


STOPPED_S = 60.0
"""For so long a rank may be stopped by a signal beside others that are not."""
YOUNG_S = 900.0
"""A run is not judged before this age: its start may take as long. One with `hang=SECONDS` is."""
OTHERS_S = 120.0
"""A rank is slow if the others are not seen to be so, too, for so long."""
LOOKS_S = 30.0
"""The shortest time after which a job stands still by what its ranks do: so long two looks of a node may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _HangSigns:
    """The signs of a hang now; another `step` is another hang. `still`: what its ranks do; None: not known, or work."""

    text: str
    step: int | None
    still: Still | None = None


def follow_hangs(draft: Draft) -> None:
    """Follow the hangs of running jobs: rule on those that opted in, and tell of all others; not with `hang=0`."""
    # while some agent of a job's nodes is not heard, the job's hang stays as it was
    for id in jobs_needing_attention(draft):
        job, mem = draft.seen.jobs.get(id), draft.jobs[id]
        if job is None or not _is_watched(job, mem, draft):
            _end_hang(mem, job, draft)
        elif _is_heard(job, draft):
            _judge(job, mem, draft)
    for id in sorted(jobs_seen_still(draft) & draft.seen.jobs.keys()):
        _tell_of_still(draft.seen.jobs[id], draft)
        _tell_of_rules(draft.seen.jobs[id], draft)
        _tell_of_slow_ranks(draft.seen.jobs[id], draft)


def _tell_of_still(job: Job, draft: Draft) -> None:
    """Tell once of a job whose ranks do no work, unless a ruling on it is under way."""
    mem = draft.jobs.get(job.id)
    found = still_for_long(job, mem, draft)
    if found is None or (mem is not None and mem.hang is not None):
        return
    key = f"still:{job.id}:{job.restarts}:{found.kind.value}:{found.odd}"
    text = f"job {job.shown_id} stands still: for {span(draft.now - found.since)} {found.text}"
    draft.tell("job.hang", f"{text}. {_LEFT}", once=key, level=Level.WARNING, job=job.id)


def _tell_of_rules(job: Job, draft: Draft) -> None:
    """Tell once of each rule of the job that cannot be used, or by which it is slow or has a fault."""
    for step, word in words_of_rules(job, draft) if job.state is JobState.RUNNING else ():
        if said := _said_of_rule(step, word):
            key = f"rule:{job.id}:{job.restarts}:{word.rule}:{word.state.value}"
            draft.tell("job.rule", f"job {job.shown_id}: {said}", once=key, level=Level.WARNING, job=job.id)


def _said_of_rule(step: StepSight, word: LogWord) -> str:
    """Return what is told of a rule, as a sentence without its stop; empty for a rule of which nothing is told here."""
    rule = f"its rule '{word.rule}'" if word.rule else "its rules"
    match word.state:
        case LogState.BROKEN:
            return f"{rule} for its output cannot be used: {word.text}"
        case LogState.SLOW:
            return f"by {rule} it is slow: in {output_of(step, word)} {word.text}"
        case LogState.FAULT:
            return f"a line came in {output_of(step, word)} that {rule} calls a fault"
        case _:
            return ""


def _tell_of_slow_ranks(job: Job, draft: Draft) -> None:
    """Tell once of each node of the job on which hardware slows ranks down; nothing is done about it."""
    if job.state is not JobState.RUNNING or not _is_judged(job, draft.jobs.get(job.id), draft):
        return
    for step, text in _said_of_slow_ranks(job, draft):
        key = f"slow:{job.id}:{job.restarts}:{step.node}"
        draft.tell("job.slow", f"job {job.shown_id}: {text}", once=key, level=Level.WARNING, node=step.node, job=job.id)


def _said_of_slow_ranks(job: Job, draft: Draft) -> Iterator[tuple[StepSight, str]]:
    """Yield what is said of each slow rank, as a sentence without its stop; nothing if most ranks are slow."""
    slow = slow_ranks(job, draft)
    if 2 * len(slow) > count_of_ranks(job, draft):
        return
    for step, one in slow:
        # where all are hot, the last of them is seen some looks after the first
        draft.wake(told_at := step.at + OTHERS_S)
        if draft.now < told_at:
            continue
        clock = f" ({one.mhz} MHz, the others on the node {one.others_mhz})" if one.mhz and one.others_mhz else ""
        yield (
            step,
            f"the GPU of rank {one.rank} of step {step.step} ({step.node}, {one.gpu}) has been slowed down by its "
            f"hardware for {span(draft.now - step.at + one.for_s)}: {one.why}{clock}; "
            "ranks that wait for it go no faster",
        )


def slow_lines(job: Job, draft: Draft) -> list[str]:
    """Return the sentences about slow ranks for `steward explain JOB`; empty if none is slow."""
    return [f"{capitalized(text)}." for _, text in _said_of_slow_ranks(job, draft)]


def rule_lines(job: Job, draft: Draft) -> list[str]:
    """Return the sentences about the job's own rules for `steward explain JOB`; empty if it has none."""
    words = words_of_rules(job, draft)
    watched = [
        f"Its output is watched by its own rules ({one.text})." for _, one in words if one.state is LogState.WATCHED
    ]
    said = [f"{capitalized(text)}." for step, one in words if (text := _said_of_rule(step, one))]
    return list(dict.fromkeys([*watched, *said]))


_LEFT = "It is left running, as it did not ask for more (hang=1 or hang=SECONDS in --auto-resume)"


def still_for_long(job: Job, mem: JobMemory | None, draft: Draft) -> Still | None:
    """Return how the job stands still, if that has lasted longer than it may; None for a job that is not watched."""
    if not _is_judged(job, mem, draft) or not _is_heard(job, draft):
        return None
    found = stillness(job, draft)
    if found is None or not _may_hang(found, mem):
        return None
    found = replace(found, since=max(found.since, _went_on_at(job, mem, draft)))
    until = _hangs_from(job, found, mem, draft)
    draft.wake(until)
    return found if draft.now >= until else None


def _may_hang(found: Still, mem: JobMemory | None) -> bool:
    """Return whether the job can be judged by this: one rank alone may be a notebook, unless its own word says not."""
    own_word = mem is not None and mem.mode.on and (mem.mode.hang is not None or not mem.by_default)
    return own_word or found.ranks >= FEWEST_RANKS


def _hangs_from(job: Job, found: Still, mem: JobMemory | None, draft: Draft) -> float:
    """Return from when on the job counts as one that hangs, if it goes on like this (Unix s)."""
    return max(found.since + _limit_s(found, mem, draft), _judged_from(job, found, mem))


def _went_on_at(job: Job, mem: JobMemory | None, draft: Draft) -> float:
    """Return when the job last went on by its own report, or by Slurm's or our doing (Unix s); 0: not known."""
    told = progress_of(job.id, job.nodes, draft, restart=job.restarts)
    times = [at for one in told for at in (one.stepped, one.checkpointed) if at is not None]
    if mem is not None:
        retried = last_retry(mem)
        times += [at for at in (continued_at(mem), retried.at if retried is not None else None) if at is not None]
    return max(times, default=0.0)


def _is_judged(job: Job, mem: JobMemory | None, draft: Draft) -> bool:
    """Return whether the ranks of the job are judged at all; a person's own session is not."""
    rules, own = draft.want.resume, mem.mode.hang if mem is not None and mem.mode.on else None
    wanted = rules.hang and job.partition not in rules.hang_not_in if own is None else own
    runs = job.state is JobState.RUNNING and not job.is_completing and job.is_batch and not job.deep_check
    # while a shim waits, the job has failed and a ruling is under way
    return wanted and runs and job.id not in draft.overview.asks


def _judged_from(job: Job, found: Still, mem: JobMemory | None) -> float:
    """Return from when on the job's ranks are judged (Unix s)."""
    is_asked = mem is not None and mem.mode.hang_s is not None
    judges_start = is_asked or found.kind in (StillKind.IDLE, StillKind.RULE)
    return 0.0 if judges_start else (job.started or 0.0) + YOUNG_S


def _limit_s(found: Still, mem: JobMemory | None, draft: Draft) -> float:
    """Return for how long the job may stand still in this way."""
    rules = draft.want.resume
    if found.limit_s is not None:
        return found.limit_s
    if mem is not None and mem.mode.hang_s is not None:
        return max(mem.mode.hang_s, LOOKS_S)
    own = PAUSES * found.usual_s
    if found.kind is StillKind.IDLE:
        return max(own, rules.hang_quiet_s)
    return min(max(own, STOPPED_S if found.kind is StillKind.STOPPED else rules.hang_least_s), rules.hang_most_s)


def _judge(job: Job, mem: JobMemory, draft: Draft) -> None:
    """Begin, continue or end the job's hang."""
    found = _signs_of_hang(job, mem, draft)
    if mem.hang is not None and not _is_same(mem.hang, mem, found):
        _end_hang(mem, job, draft)
    if found is not None:
        hang = draft.jobs[job.id].hang or _begin(job, found, draft)
        is_common = _stopped_together(hang, draft) >= TOO_MANY
        note_odd_ranks(job, found.still, draft, is_common=is_common)
        _follow(job, hang, found, draft)


def hang_seconds(mem: JobMemory, pace_s: float | None, draft: Draft) -> float:
    """Return after how many seconds without a step this job, at this pace, counts as hanging."""
    rules = draft.want.resume
    if mem.mode.hang_s is not None:
        return mem.mode.hang_s
    if pace_s is None:
        return rules.hang_most_s
    return min(max(PAUSES * pace_s, rules.hang_least_s), rules.hang_most_s)


def hang_line(hang: Standstill, mem: JobMemory, now: float) -> str:
    """Return the sentence about a hang for `steward explain JOB`."""
    what = "its ranks do no work" if hang.step is None else f"it is still at step {hang.step}"
    then = f"it is left running{what_if_it_fails(mem)}" if hang.is_settled else "its nodes are looked at"
    return f"The job stands still: found {ago(hang.since, now)}, {what}; {then}; {_where_stacks_are(hang)}."


def still_line(job: Job, draft: Draft) -> str:
    """Return the sentence about the job's ranks for `steward explain JOB`; empty while they may work."""
    found = stillness(job, draft)
    if found is None:
        return ""
    mem = draft.jobs.get(job.id)
    what = "It stands still" if found.kind is StillKind.RULE else "Its ranks do no work"
    found = replace(found, since=max(found.since, _went_on_at(job, mem, draft)))
    told = f"{what} for {span(draft.now - found.since)}: {found.text}."
    if not _is_judged(job, mem, draft):
        return f"{told} No hang is made of it: this job, or its partition, is not watched for hangs."
    if not _may_hang(found, mem):
        return f"{told} No hang is made of it: a job of one rank may be a notebook."
    left_s = _hangs_from(job, found, mem, draft) - draft.now
    return f"{told} It counts as a hang in {span(left_s)}." if left_s > 0.0 else told


def _where_stacks_are(hang: Standstill) -> str:
    """Return where the stacks of the tasks are kept."""
    return f"what its tasks did: bundles/{hang.name} in the head's state_dir"


def _is_watched(job: Job, mem: JobMemory, draft: Draft) -> bool:
    """Return whether the job is watched for hangs."""
    wanted = draft.want.resume.hang if mem.mode.hang is None else mem.mode.hang
    runs = job.state is JobState.RUNNING and not job.is_completing and job.restarts == mem.restarts
    # while a shim waits, the job has failed and a ruling is under way
    asks = job.id in draft.overview.asks
    return wanted and runs and not asks and mem.mode.on and draft.want.resume.enabled and mem.ended is None


def _is_same(hang: Standstill, mem: JobMemory, found: _HangSigns | None) -> bool:
    """Return whether the signs are those of the known hang."""
    return found is not None and (hang.restart, hang.step) == (mem.restarts, found.step)


def _end_hang(mem: JobMemory, job: Job | None, draft: Draft) -> None:
    """End the hang: the job makes progress again, or ended."""
    if mem.hang is None:
        return
    if job is not None and job.state is JobState.RUNNING and job.restarts == mem.restarts:
        draft.tell("job.hang_over", f"job {draft.shown_id(mem.id)} goes on", job=mem.id)
    draft.jobs[mem.id] = without_odd_ranks(replace(mem, hang=None), draft)


def _is_heard(job: Job, draft: Draft) -> bool:
    """Return whether the agents of all of the job's nodes are heard: any of them could report progress."""
    views = [draft.seen.agents.get(node) for node in job.nodes]
    return bool(views) and all(view is not None and view.is_heard for view in views)


def _signs_of_hang(job: Job, mem: JobMemory, draft: Draft) -> _HangSigns | None:
    """Return the signs of a hang; None while the job makes progress."""
    told = progress_of(job.id, job.nodes, draft, restart=job.restarts)
    stepping = [one for one in told if one.step is not None and one.stepped is not None]
    by_step = _signs_of_no_step(mem, stepping, draft) if stepping else None
    by_sight = _signs_of_ranks(job, mem, stepping, draft)
    if by_step is None or by_sight is None:
        return by_step or by_sight
    return replace(by_sight, text=f"{by_step.text}; {by_sight.text}")


def _signs_of_no_step(mem: JobMemory, told: Sequence[Progress], draft: Draft) -> _HangSigns | None:
    """Return the signs of a hang of a job that reports steps; None while it makes progress."""
    # a newer checkpoint is progress, too; the clock starts anew at a retry, and when a suspended job is continued
    newest = max(told, key=lambda one: (one.stepped or 0.0, one.step or 0))
    pace_s = max((one.pace_s for one in told if one.pace_s is not None), default=None)
    last = max(at for one in told for at in (one.stepped, one.checkpointed) if at is not None)
    retried = last_retry(mem)
    if retried is not None and last <= retried.at:
        last, pace_s = retried.at, None
    last = max(last, continued_at(mem) or 0.0)
    limit_s = hang_seconds(mem, pace_s, draft)
    hang = mem.hang
    # after the decision, the hang lasts until progress is reported: an agent that restarted has lost the usual pace
    is_known = hang is not None and hang.is_settled and hang.step == newest.step and last <= hang.since
    if draft.now < last + limit_s and not is_known:
        draft.wake(last + limit_s)
        return None
    usual = "not known yet" if pace_s is None else f"{pace_s:.1f} s"
    text = f"no step since step {newest.step} for more than {limit_s:.0f} s (its usual longest pause: {usual})"
    return _HangSigns(text=text, step=newest.step)


def _signs_of_ranks(job: Job, mem: JobMemory, stepping: Sequence[Progress], draft: Draft) -> _HangSigns | None:
    """Return the signs of a hang by what the job's ranks do, if a ruling may follow from them; None if there are none.

    A job that did not write `hang=` is ruled on only if it reports no steps and uses nothing at all, or if one of its
    nodes may be the cause.
    """
    step = max(stepping, key=lambda one: (one.stepped or 0.0, one.step or 0)).step if stepping else None
    found, hang = still_for_long(job, mem, draft), mem.hang
    is_idle = found is not None and found.kind is StillKind.IDLE and not stepping
    is_named = found is not None and node_of_odd_ranks(found, job) is not None
    if found is None or not (mem.mode.hang or is_idle or is_named):
        # after the decision, the hang lasts until a rank works: an agent that restarted does not know since when
        is_known = hang is not None and hang.is_settled and hang.is_seen and hang.step == step
        return _HangSigns(text="its ranks do no work", step=step) if is_known and not seen_working(job, draft) else None
    return _HangSigns(text=f"for {span(draft.now - found.since)} {found.text}", step=step, still=found)


def _begin(job: Job, found: _HangSigns, draft: Draft) -> Standstill:
    """Remember a new hang and write its event."""
    mem = draft.jobs[job.id]
    hang = Standstill(
        name=f"{job.id}-{job.restarts}-{'still' if found.step is None else found.step}",
        since=draft.now,
        restart=job.restarts,
        step=found.step,
        is_seen=found.still is not None,
    )
    draft.jobs[job.id] = replace(mem, hang=hang)
    draft.tell("job.hang", f"job {job.shown_id} stands still: {found.text}", level=Level.WARNING, job=job.id)
    return hang


def _follow(job: Job, hang: Standstill, found: _HangSigns, draft: Draft) -> None:
    """Repeat the requeue that was decided for this hang, or decide when stacks and checks are there."""
    prior = _ruling_of(hang, draft.jobs[job.id])
    if prior is not None and prior.is_requeue:
        wish_requeue(job, prior.why, draft)
    elif not hang.is_settled and not _waits(job, hang, found, draft):
        _decide_on_hang(job, hang, found, draft)


def _ruling_of(hang: Standstill, mem: JobMemory) -> Attempt | None:
    """Return the ruling on this hang; None if there is none."""
    # compare `at`, not the time in the key: if the clock was set back, `since` was moved and the key was not
    ours = [a for a in mem.attempts if a.decided_for.startswith(f"{HANG}{hang.name}:") and a.at >= hang.since]
    return ours[-1] if ours else None


def _decided_for(hang: Standstill) -> str:
    """Return the key under which the ruling on this hang is remembered."""
    return f"{HANG}{hang.name}:{hang.since:.0f}"


def _waits(job: Job, hang: Standstill, found: _HangSigns, draft: Draft) -> bool:
    """Return whether to wait for stacks, checks and a new report of progress, within `hang_stacks_s`."""
    until = hang.since + draft.want.resume.hang_stacks_s
    views = [draft.seen.agents[node] for node in sorted(job.nodes)]
    silent = frozenset(view.node for view in views if hang.name not in view.bundles)
    unchecked = frozenset(view.node for view in views if view.checked_at < hang.since)
    # the last report may look old only because our clock was set forward
    unsure = any(one.at < hang.since for one in progress_of(job.id, job.nodes, draft))
    draft.wake(until)
    if draft.now >= until or not (silent or unchecked or unsure):
        return False
    _ask_nodes(job, hang, found, silent, unchecked, draft)
    return True


def _ask_nodes(
    job: Job,
    hang: Standstill,
    found: _HangSigns,
    silent: frozenset[NodeName],
    unchecked: frozenset[NodeName],
    draft: Draft,
) -> None:
    """Ask the nodes for stacks and fresh checks."""
    why = Why(rule="job.hang", text=f"job {job.shown_id} stands still", evidence=(found.text,))
    if silent:
        key, signal = Key(f"stacks:{hang.name}:{hang.since:.0f}"), draft.jobs[job.id].mode.stacks
        order = CollectStacks(
            key=key, why=why, job=job.id, uid=job.user_id, nodes=silent, name=hang.name, signal=signal
        )
        draft.wish(order, AGAIN_S)
    if unchecked:
        key = Key(f"check:{_decided_for(hang)}")
        # repeat an order that an agent did not get; an agent that carries it out already ignores the repetition
        order_s = AGAIN_S if key in draft.seen.failures else None
        draft.wish(CheckNow(key=key, why=why, nodes=unchecked, budget_s=CHECK_BUDGET_S), order_s)


def _decide_on_hang(job: Job, hang: Standstill, found: _HangSigns, draft: Draft) -> None:
    """Rule on the hang: requeue the job, or leave it running and report why."""
    mem = draft.jobs[job.id]
    known = _evidence_of(job, mem, hang, found, draft)
    ruling = decide(failure_without_ask(FailureSource.HANG, job, mem, draft.now, draft, known=known))
    left = _why_left(mem, ruling, hang, draft)
    draft.jobs[job.id] = replace(mem, hang=replace(hang, is_settled=True))
    if left:
        text = f"job {job.shown_id} stands still ({found.text}) and is left running: {left}{what_if_it_fails(mem)}; "
        text += _where_stacks_are(hang)
        draft.tell("job.hang_left", text, level=Level.WARNING, job=job.id)
        return
    why = replace(ruling.why, evidence=(found.text, _where_stacks_are(hang), *ruling.why.evidence)[:10])
    requeue_by(job, _decided_for(hang), replace(ruling, why=why), draft)


def _evidence_of(job: Job, mem: JobMemory, hang: Standstill, found: _HangSigns, draft: Draft) -> tuple[Evidence, ...]:
    """Return the ranks that differ as evidence, where the job asked for that; empty if none differ.

    It blames a node only if all of them are on that one of several. Many jobs that stop together have another cause.
    """
    still = found.still
    if still is None or not mem.mode.hang or _stopped_together(hang, draft) >= TOO_MANY:
        return ()
    node = blamed(still, job.nodes)
    return tuple(
        Evidence(node=one, text=f"{one}: {still.odd}", at=hang.since, blames=one == node)
        for one in sorted(still.suspects)
    )


def _stopped_together(hang: Standstill, draft: Draft) -> int:
    """Return how many jobs stopped at about the time of this one."""
    return sum(m.hang is not None and abs(m.hang.since - hang.since) <= TOGETHER_S for m in draft.jobs.values())


def _why_left(mem: JobMemory, ruling: Ruling, hang: Standstill, draft: Draft) -> str:
    """Return why the job is left running; empty if it is to be resumed."""
    near = _stopped_together(hang, draft)
    if ruling.decision is Decision.STOP:
        return str(ruling.why)
    if not ruling.culprits and near >= TOO_MANY:
        return f"{near} jobs stopped at about the same time: a common cause is likely"
    if not ruling.culprits and hang.is_seen and not mem.mode.hang:
        return "no hardware fault found, and the job did not ask for this (hang=1)"
    return ""
