"""The changes to a run's memory when it enters a phase."""

from dataclasses import replace

from steward.model.elastic import Cause, ElasticRun, Replica, RunPhase, SizeChange
from steward.model.events import Level
from steward.model.node_names import fold
from steward.model.text import span
from steward.policy.books import counted, last_change, with_change
from steward.policy.elastic.scene import RunScene
from steward.policy.elastic.table import RunFact
from steward.policy.facts.run_rules import next_backoff


def enter_phase(scene: RunScene, fact: RunFact, to: RunPhase) -> ElasticRun:
    """Return the run in its next phase."""
    run = counted(scene.run, scene.draft.now)
    scene.run = replace(run, phase=to, entered=scene.draft.now, why=fact.value, consumed=_consumed(scene))
    match to:
        case RunPhase.DRAINING:
            return _enter_draining(scene, fact, was=run.phase)
        case RunPhase.REFORMING:
            return _enter_reforming(scene)
        case RunPhase.BACKOFF:
            return _enter_backoff(scene, failed=fact is RunFact.LATE)
        case RunPhase.RUNNING:
            return _enter_running(scene, fact)
        case RunPhase.FAULTED:
            names = ", ".join(
                sorted(scene.lost or (node for node in scene.run.ordered_members if scene.is_lost(node)))[:8]
            )
            _tell("lost", f"lost {names}", scene, Level.WARNING)
        case RunPhase.WAITING | RunPhase.ENDED:
            return _enter_stopped(scene, fact)
        case RunPhase.SETTLING:
            pass
    return scene.run


def _consumed(scene: RunScene) -> int | None:
    """Return the samples that the run has consumed, by its coordinator's last report; None if not known."""
    said = scene.word.consumed if scene.word is not None else None
    return scene.run.consumed if said is None else said


def _enter_draining(scene: RunScene, fact: RunFact, *, was: RunPhase) -> ElasticRun:
    """Order the next generation: the ready nodes, without those that leave."""
    run, target = scene.run, scene.best()
    newest = max(run.ordered, run.generation, scene.word.generation if scene.word else 0)
    cause = _cause(scene, was)
    before, after = len(scene.members), len(target)
    words = {Cause.GROW: "grows", Cause.FAULT: "goes on"}.get(cause, "shrinks")
    why = f"{words} from {before} to {after} nodes: {_reason_of(cause, scene)}"
    _tell("size", why, scene)
    change = SizeChange(at=scene.draft.now, before=before, after=after, cause=cause, why=why, consumed=run.consumed)
    run = replace(run, ordered=newest + 1, ordered_members=target, cause=cause, why=why)
    is_open = was is RunPhase.DRAINING and run.events and run.events[-1].done is None
    return last_change(run, after=after, cause=cause, why=why) if is_open else with_change(run, change)


def _cause(scene: RunScene, was: RunPhase) -> Cause:
    if was is RunPhase.FAULTED:
        return Cause.FAULT
    if was is RunPhase.SETTLING and not scene.members - scene.here and len(scene.best()) > len(scene.members):
        return Cause.GROW
    return leaving_cause(scene)


def leaving_cause(scene: RunScene) -> Cause:
    """Return why members have to leave, the most urgent reason first."""
    if scene.word is not None and scene.word.leaving:
        return Cause.PREEMPTED
    for job in scene.jobs.values():
        memory = scene.draft.quota_jobs.get(job.id)
        if memory is not None and memory.yielding is not None:
            return Cause.RECLAIMED
    if scene.rivals:
        return Cause.RECLAIMED
    if scene.run.wish is not None and len(scene.members) > scene.run.wish:
        return Cause.ASKED
    return Cause.LEFT


def _reason_of(cause: Cause, scene: RunScene) -> str:
    match cause:
        case Cause.GROW:
            return "nodes are idle, have passed their checks and have settled"
        case Cause.FAULT:
            return "a node of the run is lost"
        case Cause.PREEMPTED:
            return "Slurm preempts a replica job"
        case Cause.RECLAIMED:
            return "others need the nodes" if scene.rivals else "a team reclaims its quota"
        case Cause.ASKED:
            return "a person asked for it"
        case _:
            return "a replica job has ended"


def _enter_reforming(scene: RunScene) -> ElasticRun:
    """Take over the generation that the coordinator reports, ordered by Steward or not."""
    run, word = scene.run, scene.word
    if word is None:
        return run
    before = len(run.members)
    if word.generation > run.ordered and word.members != run.members:
        gone = any(scene.is_lost(node) for node in run.members - word.members)
        cause = Cause.FAULT if gone else leaving_cause(scene)
        why = f"formed again without an order, with {len(word.members)} nodes instead of {before}"
        _tell("size", why, scene)
        after, now = len(word.members), scene.draft.now
        change = SizeChange(at=now, before=before, after=after, cause=cause, why=why, consumed=run.consumed)
        run = with_change(run, change)
        run = replace(run, cause=cause)
    return replace(
        run,
        generation=word.generation,
        ordered=max(run.ordered, word.generation) if word.generation >= run.ordered else run.ordered,
        members=word.members,
    )


def _enter_backoff(scene: RunScene, *, failed: bool) -> ElasticRun:
    """Finish the change of size and start the back-off, which is longer if recent growths did not last."""
    run, word, now = scene.run, scene.word, scene.draft.now
    last = run.events[-1] if run.events else None
    if last is not None and last.done is None and not failed and word is not None:
        after, resumed = len(word.members), run.consumed
        run = last_change(run, done=now, saved_s=word.saved_s, up_s=word.up_s, after=after, resumed=resumed)
        run = last_change(run, unsaved=word.unsaved, again=word.again, again_s=word.again_s)
        _tell_slow_save(scene, word.saved_s)
    if word is not None and not failed:
        run = replace(run, generation=word.generation, members=word.members)
    shrank = last is not None and last.after < last.before
    backoff_s = run.backoff_s
    if failed or shrank:
        backoff_s = next_backoff(run, scene.rules, now, failed=failed)
    cool = now + max(scene.rules.snooze_s, backoff_s)
    if failed:
        _tell("late", "made no step at its new size in time", scene, Level.WARNING)
    else:
        cost = _cost(scene, last.cause if last is not None else Cause.START)
        level = Level.WARNING if cost else Level.INFO
        _tell("steps", f"makes steps with {len(run.members)} nodes{cost}", scene, level)
    return replace(run, backoff_s=backoff_s, cool_until=cool)


def _tell_slow_save(scene: RunScene, took_s: float | None) -> None:
    """Warn once that saving took longer than the run's grace, after which an urgent change of size stops ranks."""
    grace_s = scene.rules.grace_s
    if took_s is None or took_s <= grace_s:
        return
    text = (
        f"elastic run {scene.run.id}: from the request until all ranks had saved took {span(took_s)}, longer than its "
        f"grace of {span(grace_s)}: when nodes must be given back, steps may be lost. Submit it with a longer grace="
    )
    scene.draft.tell("elastic.slow_save", text, once=f"slow:{scene.run.id}", job=scene.run.id, level=Level.WARNING)


def _enter_running(scene: RunScene, fact: RunFact) -> ElasticRun:
    run, word, now = scene.run, scene.word, scene.draft.now
    if fact is RunFact.STEPPED and word is not None:
        size = len(word.members)
        why, at = f"starts with {size} nodes", run.consumed
        change = SizeChange(at=now, before=0, after=size, cause=Cause.START, why=why, done=now, resumed=at)
        run = with_change(run, change)
        return replace(
            run, generation=word.generation, ordered=word.generation, members=word.members, cause=Cause.START
        )
    if fact is RunFact.LATE and scene.is_saving:
        return _late_save(scene)
    if fact is RunFact.LATE:  # the coordinator does not answer: the run keeps its size
        backoff_s = next_backoff(run, scene.rules, now, failed=True)
        _tell(
            "unanswered",
            "the change of size was not carried out in time: the run stays at its size",
            scene,
            Level.WARNING,
        )
        return replace(run, backoff_s=backoff_s, cool_until=now + backoff_s, ordered_members=frozenset())
    return run


def _late_save(scene: RunScene) -> ElasticRun:
    """Handle ranks that did not save in time: call off a growth if no rank has begun to save, else keep waiting."""
    run, now = scene.run, scene.draft.now
    waited_s = now - run.events[-1].at if run.events else 0.0
    if run.cause is not Cause.GROW or scene.saves:
        text = f"its ranks have not saved within {span(waited_s)}: its size changes once they have"
        _tell("unsaved", text, scene, Level.WARNING)
        return run
    backoff_s = run.backoff_s if scene.is_pressed else next_backoff(run, scene.rules, now, failed=True)
    if scene.is_pressed:
        why = "others need the nodes"
    elif scene.best() - scene.members:
        why = f"no rank finished a step within {span(waited_s)}; next try in {span(backoff_s)}"
    else:
        why = "the new nodes are gone"
    _tell(
        "called_off",
        f"the growth from {len(scene.members)} to {len(run.ordered_members)} nodes is called off: {why}",
        scene,
    )
    ending = {one.token for one in run.replicas if one.token in scene.jobs and _is_to_end(one, scene)}
    return replace(
        run,
        backoff_s=backoff_s,
        cool_until=run.cool_until if scene.is_pressed else now + backoff_s,
        ordered_members=frozenset(),
        events=run.events[:-1],
        changes=run.changes - 1,
        replicas=tuple(replace(one, ending=now) if one.token in ending else one for one in run.replicas),
    )


def _is_to_end(one: Replica, scene: RunScene) -> bool:
    """Return whether to end the replica: its nodes take no part in the run, and no other job needs nodes."""
    # if other jobs need nodes, only as many replicas as they need are ended, elsewhere
    return not scene.is_pressed and one.ending is None and not scene.jobs[one.token].nodes & scene.members


def _cost(scene: RunScene, cause: Cause) -> str:
    """Return which work the change of size lost, for people; empty if no loss is known."""
    word = scene.word
    if word is None or not (word.again or word.unsaved):
        return ""
    if word.again is not None and word.again_s is not None:
        lost = f"{word.again} step{'s' * (word.again != 1)} ({span(word.again_s)} of work) are made again"
    else:
        lost = "its steps since the last checkpoint are made again (how many is not known)"
    if not word.unsaved or cause is Cause.FAULT:
        return f"; {lost}"
    return f"; {fold(word.unsaved)} had not saved in time: {lost}"


def _enter_stopped(scene: RunScene, fact: RunFact) -> ElasticRun:
    run, now = scene.run, scene.draft.now
    _tell("over" if fact is RunFact.OVER else "queued", fact.value, scene)
    ended = now if fact is RunFact.OVER else None
    return replace(run, members=frozenset(), ordered_members=frozenset(), ended=ended, cool_until=0.0)


def _tell(kind: str, text: str, scene: RunScene, level: Level = Level.INFO) -> None:
    scene.draft.tell(f"elastic.{kind}", f"elastic run {scene.run.id}: {text}", job=scene.run.id, level=level)
