"""Carry every deep check on as far as the picture lets it, and give back what Slurm keeps for none."""

from collections.abc import Callable
from dataclasses import replace

from steward.model.action import ReleaseNodes, ReserveNodes, SubmitDeep
from steward.model.deep import DEEP_PREFIX, DeepCause, DeepKind, DeepResult, DeepRun, DeepState, runner_argv, slurm_name
from steward.model.ids import Key, NodeName
from steward.model.job import JobState
from steward.model.why import Why
from steward.policy.deep.crowd import Crowd, choose, free_nodes, settle
from steward.policy.deep.judge import Judged
from steward.policy.deep.outcome import TABLE, DeepFact, DeepScene, finish, tell, with_results
from steward.policy.deep.start import ask_suspects, is_awaited, is_unproved, sweep
from steward.policy.draft import Draft
from steward.policy.node.suspicion import suspects
from steward.policy.state_machine import StateMachine

MOST_PASSES = 8
RELEASE_AGAIN_S = 1.0
RUNS_KEPT = 500
KEPT_S = 30 * 86400.0
_FIRST = (DeepCause.LAUNCH, DeepCause.ON_START, DeepCause.ASKED, DeepCause.SUSPECT, DeepCause.SWEEP)
SUBMIT_AGAIN_S = 15.0
LAUNCH_ARGV = ("/bin/true",)
"""A launch test asks only whether a job's script and a step of it can begin and end."""
SPARE_S = 300.0
"""A reservation ends by itself this long after its deep check must be over: no dead head keeps nodes for ever."""


def follow_deeps(draft: Draft) -> None:
    """Ask for what is due, move each check by the facts, the most urgent cause first, and release what is left."""
    if not draft.paused:
        _ask(draft)
        carry_deeps(draft)


def carry_deeps(draft: Draft) -> None:
    """Carry on the checks that cases and slots asked for since, without asking for more."""
    if draft.paused:
        return
    for _ in range(MOST_PASSES):
        if not _move_all(draft):
            break
    _release(draft)
    _prune(draft)


def _ask(draft: Draft) -> None:
    rules = draft.want.deep
    if not rules.enabled or not draft.may_touch_nodes:
        return
    if rules.suspects and _may_have_suspects(draft) and (doubts := suspects(draft)):
        ask_suspects(doubts, Crowd(draft), draft)
    if rules.sweep_period_s:
        sweep(Crowd(draft), draft)


def _may_have_suspects(draft: Draft) -> bool:
    """Seen quickly: in a cluster without findings and repairs there are none."""
    return bool(draft.remedies) or bool(draft.overview.finding)


def _move_all(draft: Draft) -> bool:
    """Whether something moved: nodes that one check left may be what another waits for."""
    states = {id: run.state for id, run in draft.deeps.items()}
    for id in sorted(draft.deeps, key=lambda id: _urgency(draft.deeps[id])):
        if draft.deeps[id].is_open:
            _move(draft.deeps[id], draft)
    return states != {id: run.state for id, run in draft.deeps.items()}


def _urgency(run: DeepRun) -> tuple[int, float, str]:
    return (_FIRST.index(run.cause), run.asked, run.id)


def _move(run: DeepRun, draft: Draft) -> None:
    moved = _DEEPS.move(DeepScene(run=run, crowd=Crowd(draft), draft=draft))
    if moved is not None:
        wish_for(moved)


def _release(draft: Draft) -> None:
    """Reservations named as ours that no check has (any more), also those of a head that died."""
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
    """A new machine that did not pass (yet) is tested again, or goes out of service, before users' jobs reach it."""
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
        run = scene.draft.deeps.keep(settled(run, scene))
    return replace(scene, run=run)


def noted(scene: DeepScene) -> DeepRun:
    """The check with the times since when what its state waits for is so."""
    run, draft = scene.run, scene.draft
    knows_reservations = draft.seen.reservations_at > 0
    waits = run.state is DeepState.WAITING and run.free is None and knows_reservations
    if waits and free_nodes(run, scene.crowd, draft):
        return draft.deeps.keep(replace(run, free=draft.now))
    if run.state is DeepState.RUNNING and run.job_over is None and scene.is_job_over:
        return draft.deeps.keep(replace(run, job_over=draft.now))
    return run


def settled(run: DeepRun, scene: DeepScene) -> DeepRun:
    """The waiting check without the nodes that it goes on without."""
    skipped = settle(run, scene.crowd, scene.draft)
    if not skipped:
        return run
    said = {name: Judged(result=DeepResult.SKIPPED, why=why) for name, why in skipped.items()}
    after = with_results(run, said)
    for name in sorted(said):
        tell(after, name, scene.draft)
    return after


def entered(scene: DeepScene, fact: DeepFact, state: DeepState) -> DeepRun:
    """The check after it moved by `fact` to `state`."""
    run, draft = scene.run, scene.draft
    if state is DeepState.DONE:
        return replace(finish(scene, fact), state=state, entered=draft.now, waiter=_waiter(run, draft))
    if fact is DeepFact.READY:
        run = _taking(run, choose(run, scene.crowd, draft), draft)
    moved = replace(run, state=state, entered=draft.now)
    if fact is DeepFact.STARTED:
        job = scene.job
        return replace(moved, job=job.id if job else None, started=draft.now)
    if state is DeepState.WAITING:
        return replace(moved, tries=run.tries + 1, job=None, started=None, free=None, job_over=None)
    return moved


def _waiter(run: DeepRun, draft: Draft) -> str:
    """Nobody's when it was not waited for any longer: who comes back for it has the node checked anew."""
    return run.waiter if not run.is_for_return or is_awaited(run, draft) else ""


def _taking(run: DeepRun, nodes: frozenset[NodeName], draft: Draft) -> DeepRun:
    """The check goes on with these nodes; those left over are a check of their own that waits for its turn."""
    rest = run.nodes - run.results.keys() - nodes
    if rest:
        number = 1 + sum(other.startswith(f"{run.id.split('-')[0]}-") for other in draft.deeps)
        id = f"{run.id.split('-')[0]}-b{number}"
        draft.deeps.keep(replace(run, id=id, nodes=rest, results={}, why={}, entered=draft.now, free=None))
    kinds = run.kinds if len(nodes) > 1 else run.kinds - {DeepKind.CONNECTIVITY}
    if kinds != run.kinds:
        draft.tell("deep.alone", f"deep check {run.id}: {min(nodes)} is measured alone, there is no second node")
    return replace(run, nodes=nodes | run.results.keys(), kinds=kinds)


def wish_for(scene: DeepScene) -> None:
    """Ask for what the check needs in its present state."""
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


# The facts that the picture shows of a deep check: one small question for each fact of the table.

MOST_TRIES = 2
"""A check whose job was lost (slurmctld read its configuration anew, a person cancelled it) begins anew so often."""
CLEANS_UP_S = 1.0
"""A launch test's node has this long to say that its epilog failed: Slurm drains it then."""
TELLING_S = 5.0
"""After the end of its job its agents have this long to tell what it found."""
OVERTIME_S = 60.0
"""The runner ends itself within its budget; Slurm ends its job this much later."""


def _called_off(scene: DeepScene) -> bool:
    run, draft = scene.run, scene.draft
    if run.is_for_return and not is_awaited(run, draft):
        return True
    is_off = not draft.want.deep.enabled and run.cause is not DeepCause.LAUNCH
    return run.state is DeepState.WAITING and (is_off or run.nodes <= run.results.keys())


def _ready(scene: DeepScene) -> bool:
    return scene.draft.seen.reservations_at > 0 and bool(choose(scene.run, scene.crowd, scene.draft))


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
        return False  # nobody measures: its job's end tells
    return all(name in reports and reports[name].is_done for name in scene.nodes)


def _over(scene: DeepScene) -> bool:
    """Whether the check's job is over or not to be found, and the agents had the time to report."""
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
    table=TABLE, step_of=lambda scene: scene.run.state, questions=QUESTIONS, enter=_enter, noted=_noted
)
