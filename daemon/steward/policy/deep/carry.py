"""Move each deep check on as far as the picture allows."""

from collections.abc import Callable
from dataclasses import replace

from steward.model.action import ReleaseNodes, ReserveNodes, SubmitDeep
from steward.model.deep import DEEP_PREFIX, DeepCause, DeepKind, DeepResult, DeepRun, DeepState, runner_argv, slurm_name
from steward.model.ids import Key, NodeName
from steward.model.job import JobState
from steward.model.why import Why
from steward.policy.deep.judge import Judged
from steward.policy.deep.outcome import DEEP_TABLE, DeepFact, DeepScene, tell_result, with_all_results, with_results
from steward.policy.draft import Draft
from steward.policy.facts.crowd import Crowd, free_nodes, nodes_to_give_up, nodes_to_take
from steward.policy.facts.doubts import nodes_to_deep_check
from steward.policy.guards.deep_start import ask_suspects, ask_sweep, is_awaited, is_unproved
from steward.policy.state_machine import StateMachine

MOST_PASSES = 8
"""How often one plan tries to move all deep checks."""
RELEASE_AGAIN_S = 1.0
RUNS_KEPT = 500
KEPT_S = 30 * 86400.0
_BY_URGENCY = (DeepCause.LAUNCH, DeepCause.ON_START, DeepCause.ASKED, DeepCause.SUSPECT, DeepCause.SWEEP)
SUBMIT_AGAIN_S = 15.0
LAUNCH_ARGV = ("/bin/true",)
"""The command of a launch test, which only shows whether a job's script and a step can begin and end."""
SPARE_S = 300.0
"""How long after the latest end of its deep check a reservation ends by itself: a dead head keeps no nodes for ever."""


def follow_deeps(draft: Draft) -> None:
    """Start the deep checks that are due, move the open ones, most urgent first, and release unused reservations."""
    if not draft.paused:
        _start_due(draft)
        carry_deeps(draft)


def carry_deeps(draft: Draft) -> None:
    """Move the open deep checks, most urgent first, and release unused reservations."""
    if draft.paused:
        return
    for _ in range(MOST_PASSES):
        if not _move_all(draft):
            break
    _release(draft)
    _prune(draft)


def _start_due(draft: Draft) -> None:
    rules = draft.want.deep
    if not rules.enabled or not draft.may_touch_nodes:
        return
    if rules.suspects and _may_have_suspects(draft) and (doubts := nodes_to_deep_check(draft)):
        ask_suspects(doubts, Crowd(draft), draft)
    if rules.sweep_period_s:
        ask_sweep(Crowd(draft), draft)


def _may_have_suspects(draft: Draft) -> bool:
    """Return whether any node may be suspect."""
    # cheap to tell: a cluster without findings and repairs has no suspects
    return bool(draft.remedies) or bool(draft.overview.finding)


def _move_all(draft: Draft) -> bool:
    """Move each open deep check once, and return whether any moved."""
    # a deep check that moved may have left nodes for which another one waits
    states = {id: run.state for id, run in draft.deeps.items()}
    for id in sorted(draft.deeps, key=lambda id: _urgency(draft.deeps[id])):
        if draft.deeps[id].is_open:
            _move(draft.deeps[id], draft)
    return states != {id: run.state for id, run in draft.deeps.items()}


def _urgency(run: DeepRun) -> tuple[int, float, str]:
    return (_BY_URGENCY.index(run.cause), run.asked, run.id)


def _move(run: DeepRun, draft: Draft) -> None:
    moved = _DEEPS.move(DeepScene(run=run, crowd=Crowd(draft), draft=draft))
    if moved is not None:
        wish_for(moved)


def _release(draft: Draft) -> None:
    """Release the reservations of ours that no deep check needs, including those left by a head that died."""
    if not draft.may_clear_strays:
        return
    used = {slurm_name(run.token) for run in draft.deeps.values() if run.has_nodes}
    starting = {run.id: run for run in draft.deeps.values() if run.is_for_return}
    for name in sorted(draft.seen.reservations):
        run = starting.get(name.removeprefix(DEEP_PREFIX).rpartition("-")[0])
        if draft.seen.reservations[name].is_ours and name not in used and not (run and _must_be_held(run, draft)):
            why = Why(rule="deep.release", text=f"no deep check needs the nodes of {name} any more")
            draft.wish(ReleaseNodes(key=Key(f"release:{name}"), why=why, name=name), RELEASE_AGAIN_S)


def _must_be_held(run: DeepRun, draft: Draft) -> bool:
    """Return whether the run's reservation must keep users' jobs off a new machine that has not passed (yet)."""
    nodes = (draft.seen.nodes.get(name) for name in run.nodes if is_unproved(name, run, draft))
    return is_awaited(run, draft) and any(node is not None and not node.is_drain for node in nodes)


def _prune(draft: Draft) -> None:
    over = sorted((run for run in draft.deeps.values() if run.ended is not None), key=lambda run: run.ended or 0.0)
    old = [run for run in over if draft.now >= (run.ended or 0.0) + KEPT_S]
    for run in {each.id: each for each in (*old, *over[: max(0, len(over) - RUNS_KEPT)])}.values():
        draft.deeps.forget(run.id)


def _enter(scene: DeepScene, fact: DeepFact, state: DeepState) -> DeepScene:
    run, draft = scene.run, scene.draft
    text = f"deep check {run.id}: {run.state.value} -> {state.value}: {fact.value}"
    text += f" ({scene.job_end})" if fact in (DeepFact.INTERRUPTED, DeepFact.ENDED) else ""
    after = draft.deeps.keep(entered(scene, fact, state))
    draft.tell(f"deep.{state.value}", text)
    return DeepScene(run=after, crowd=Crowd(draft), draft=draft)


def _noted(scene: DeepScene) -> DeepScene:
    run = noted(scene)
    if run.state is DeepState.WAITING:
        run = scene.draft.deeps.keep(with_lost_nodes_settled(run, scene))
    return replace(scene, run=run)


def noted(scene: DeepScene) -> DeepRun:
    """Return the deep check; if nodes of it are free, or its job is over, with the time when that was first seen."""
    run, draft = scene.run, scene.draft
    knows_reservations = draft.seen.reservations_at > 0
    waits = run.state is DeepState.WAITING and run.free is None and knows_reservations
    if waits and free_nodes(run, scene.crowd, draft):
        return draft.deeps.keep(replace(run, free=draft.now))
    if run.state is DeepState.RUNNING and run.job_over is None and scene.is_job_over:
        return draft.deeps.keep(replace(run, job_over=draft.now))
    return run


def with_lost_nodes_settled(run: DeepRun, scene: DeepScene) -> DeepRun:
    """Return the waiting deep check, with a result for each node that it gives up."""
    skipped = nodes_to_give_up(run, scene.crowd, scene.draft)
    if not skipped:
        return run
    said = {name: Judged(result=DeepResult.SKIPPED, why=why) for name, why in skipped.items()}
    after = with_results(run, said)
    for name in sorted(said):
        tell_result(after, name, scene.draft)
    return after


def entered(scene: DeepScene, fact: DeepFact, state: DeepState) -> DeepRun:
    """Return the deep check after it moved by `fact` to `state`."""
    run, draft = scene.run, scene.draft
    if state is DeepState.DONE:
        return replace(with_all_results(scene, fact), state=state, entered=draft.now, waiter=_waiter(run, draft))
    if fact is DeepFact.READY:
        run = _limited_to(run, nodes_to_take(run, scene.crowd, draft), draft)
    moved = replace(run, state=state, entered=draft.now)
    if fact is DeepFact.STARTED:
        job = scene.job
        return replace(moved, job=job.id if job else None, started=draft.now)
    if state is DeepState.WAITING:
        return replace(moved, tries=run.tries + 1, job=None, started=None, free=None, job_over=None)
    return moved


def _waiter(run: DeepRun, draft: Draft) -> str:
    """Return the token of the slot or repair that waited for the finished deep check; empty if none does any more."""
    # without a waiter the result is not reused: a slot or repair that comes back has the node checked anew
    return run.waiter if not run.is_for_return or is_awaited(run, draft) else ""


def _limited_to(run: DeepRun, nodes: frozenset[NodeName], draft: Draft) -> DeepRun:
    """Return the deep check with just these nodes; the others get a new deep check, which waits for its turn."""
    rest = run.nodes - run.results.keys() - nodes
    if rest:
        number = 1 + sum(other.startswith(f"{run.id.split('-')[0]}-") for other in draft.deeps)
        id = f"{run.id.split('-')[0]}-b{number}"
        draft.deeps.keep(replace(run, id=id, nodes=rest, results={}, why={}, entered=draft.now, free=None))
    kinds = run.kinds if len(nodes) > 1 else run.kinds - {DeepKind.CONNECTIVITY}
    if kinds != run.kinds:
        draft.tell("deep.alone", f"deep check {run.id}: {min(nodes)} is measured alone: no second node is free")
    return replace(run, nodes=nodes | run.results.keys(), kinds=kinds)


def wish_for(scene: DeepScene) -> None:
    """Ask for the reservation, or the job, that the deep check needs now."""
    if scene.run.state is not DeepState.RESERVED:
        return
    if scene.reservation is None:
        _reserve(scene)
    elif scene.job is None:
        _submit(scene)


def _reserve(scene: DeepScene) -> None:
    run, draft = scene.run, scene.draft
    rules = draft.want.deep
    why = Why(rule="deep.reserve", text=f"deep check {run.id} ({run.cause.value}) needs its nodes for itself")
    action = ReserveNodes(
        key=Key(f"reserve:{run.token}"),
        why=why,
        name=scene.name,
        nodes=scene.nodes,
        seconds=rules.start_timeout_s + rules.budget_s + SPARE_S,
    )
    draft.wish(action, draft.want.repair.retry_s)


def _submit(scene: DeepScene) -> None:
    run, draft = scene.run, scene.draft
    rules = draft.want.deep
    argv = runner_argv(rules.runner, run.token, run.kinds, rules.budget_s, draft.want.agent_socket)
    action = SubmitDeep(
        key=Key(f"submit:{run.token}"),
        why=Why(rule="deep.submit", text=f"deep check {run.id} has its nodes"),
        name=scene.name,
        nodes=scene.nodes,
        argv=LAUNCH_ARGV if run.cause is DeepCause.LAUNCH else argv,
        seconds=rules.budget_s + OVERTIME_S,
        output=rules.output,
    )
    draft.wish(action, SUBMIT_AGAIN_S)


# One question for each fact of a deep check's table, answered from the picture.

MOST_TRIES = 2
"""How often a deep check is tried if its job is lost (slurmctld was reconfigured, a person cancelled the job)."""
CLEANS_UP_S = 1.0
"""How long after its job a launch test waits for the epilog: if the epilog fails, Slurm drains the node."""
TELLING_S = 5.0
"""How long after its job a deep check waits for the agents to report its measures."""
OVERTIME_S = 60.0
"""How long after the runner's budget Slurm ends the job; the runner ends by itself within its budget."""


def _called_off(scene: DeepScene) -> bool:
    run, draft = scene.run, scene.draft
    if run.is_for_return and not is_awaited(run, draft):
        return True
    is_off = not draft.want.deep.enabled and run.cause is not DeepCause.LAUNCH
    return run.state is DeepState.WAITING and (is_off or run.nodes <= run.results.keys())


def _ready(scene: DeepScene) -> bool:
    return scene.draft.seen.reservations_at > 0 and bool(nodes_to_take(scene.run, scene.crowd, scene.draft))


def _yielded(scene: DeepScene) -> bool:
    if scene.run.is_for_return:
        return False
    known = (scene.draft.seen.nodes.get(name) for name in scene.nodes)
    return any(node is not None and scene.crowd.needed(node) for node in known)


def _started(scene: DeepScene) -> bool:
    job = scene.job
    return job is not None and (not job.is_pending or job.is_held_by_slurm)


def _reported(scene: DeepScene) -> bool:
    reports = scene.reports
    if scene.run.cause is DeepCause.LAUNCH:
        return False  # a launch test measures nothing: the end of its job is the result
    return all(name in reports and reports[name].is_done for name in scene.nodes)


def _over(scene: DeepScene) -> bool:
    """Return whether the deep check's job is over or missing, and the agents had the time to report."""
    run, draft = scene.run, scene.draft
    if not scene.is_job_over:
        return False
    told_s = CLEANS_UP_S if run.cause is DeepCause.LAUNCH else TELLING_S
    at = (draft.now if run.job_over is None else run.job_over) + told_s
    draft.wake(at)
    return draft.now >= at


def _interrupted(scene: DeepScene) -> bool:
    job, reports = scene.job, scene.reports
    if scene.run.cause is DeepCause.LAUNCH:
        return False
    went_well = job is not None and job.state is JobState.COMPLETED
    return not went_well and scene.run.tries + 1 < MOST_TRIES and not reports and _over(scene)


def _late(scene: DeepScene) -> bool:
    rules, run = scene.draft.want.deep, scene.run
    limit = rules.start_timeout_s if run.state is DeepState.RESERVED else rules.budget_s + OVERTIME_S
    scene.draft.wake(run.entered + limit)
    return scene.draft.now >= run.entered + limit


QUESTIONS: dict[DeepFact, Callable[[DeepScene], bool]] = {
    DeepFact.CALLED_OFF: _called_off,
    DeepFact.READY: _ready,
    DeepFact.YIELDED: _yielded,
    DeepFact.STARTED: _started,
    DeepFact.REPORTED: _reported,
    DeepFact.INTERRUPTED: _interrupted,
    DeepFact.ENDED: _over,
    DeepFact.LATE: _late,
}

_DEEPS = StateMachine(
    table=DEEP_TABLE, step_of=lambda scene: scene.run.state, questions=QUESTIONS, enter=_enter, noted=_noted
)
