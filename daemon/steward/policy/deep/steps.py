"""What a deep check asks for in each state, and what it remembers when it enters one."""

from dataclasses import replace

from steward.model.action import ReserveNodes, SubmitDeep
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun, DeepState
from steward.model.deep_command import runner_argv
from steward.model.ids import Key, NodeName
from steward.model.why import Why
from steward.policy.deep.facts import OVERTIME_S
from steward.policy.deep.judge import Judged
from steward.policy.deep.nodes import choose, settle
from steward.policy.deep.outcome import finish, tell, with_results
from steward.policy.deep.scene import DeepScene
from steward.policy.deep.start import is_awaited
from steward.policy.deep.table import DeepFact
from steward.policy.draft import Draft

SUBMIT_AGAIN_S = 15.0
SPARE_S = 300.0
"""A reservation ends by itself this long after its deep check must be over: no dead head keeps nodes for ever."""


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
        return replace(moved, tries=run.tries + 1, job=None, started=None)
    return moved


def _waiter(run: DeepRun, draft: Draft) -> str:
    """Nobody's when it was not waited for any longer: who comes back for it has the node checked anew."""
    return run.waiter if run.cause is not DeepCause.ON_START or is_awaited(run, draft) else ""


def _taking(run: DeepRun, nodes: frozenset[NodeName], draft: Draft) -> DeepRun:
    """It goes on with these nodes; those left over are a check of their own that waits for its turn."""
    rest = run.nodes - run.results.keys() - nodes
    if rest:
        number = 1 + sum(other.startswith(f"{run.id.split('-')[0]}-") for other in draft.deeps)
        id = f"{run.id.split('-')[0]}-b{number}"
        draft.runs.keep(replace(run, id=id, nodes=rest, results={}, why={}, entered=draft.now))
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
    action = SubmitDeep(
        key=Key(f"submit:{run.token}"),
        why=Why(rule="deep.submit", text=f"deep check {run.id} has its nodes"),
        name=scene.name,
        nodes=scene.nodes,
        argv=runner_argv(rules.runner, run.token, run.kinds, rules.budget_s, draft.want.agent_socket),
        seconds=rules.budget_s + OVERTIME_S,
        output=rules.output,
    )
    draft.wish(action, SUBMIT_AGAIN_S)
