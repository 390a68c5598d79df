"""Carry every deep check on as far as the picture lets it, and give back what Slurm keeps for none."""

from dataclasses import replace

from steward.model.action import ReleaseNodes
from steward.model.deep import DeepCause, DeepRun, DeepState
from steward.model.deep_command import PREFIX, slurm_name
from steward.model.ids import Key
from steward.model.why import Why
from steward.policy.deep.asks import ask_suspects, sweep
from steward.policy.deep.crowd import Crowd
from steward.policy.deep.facts import QUESTIONS
from steward.policy.deep.scene import DeepScene
from steward.policy.deep.start import Start, is_awaited, start_of
from steward.policy.deep.steps import entered, settled, wish_for
from steward.policy.deep.table import TABLE, DeepFact, facts_of
from steward.policy.draft import Draft
from steward.policy.node.suspects import suspects

MOST_MOVES = 2 * len(DeepState)
MOST_PASSES = 8
RELEASE_AGAIN_S = 1.0
RUNS_KEPT = 500
KEPT_S = 30 * 86400.0
_UNPROVED = (Start.WAITS, Start.FAILED)
_FIRST = (DeepCause.ON_START, DeepCause.ASKED, DeepCause.SUSPECT, DeepCause.SWEEP)


def follow_deeps(draft: Draft) -> None:
    """Ask for what is due, move each check by the facts, the most urgent cause first, and release what is left."""
    if not draft.paused:
        _ask(draft)
        carry_deeps(draft)


def carry_deeps(draft: Draft) -> None:
    """The same without asking for more: for what cases and slots asked for since."""
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
    for _ in range(MOST_MOVES):
        scene = DeepScene(run=run, crowd=Crowd(draft), draft=draft)
        if run.state is DeepState.WAITING:
            run = draft.runs.keep(settled(run, scene))
            scene = replace(scene, run=run)
        fact = next((f for f in facts_of(run.state) if QUESTIONS[f](scene)), None)
        if fact is None:
            break
        state = TABLE[run.state, fact]
        text = f"deep check {run.id}: {run.state.value} -> {state.value}: {fact.value}"
        text += f" ({scene.job_end})" if fact in (DeepFact.INTERRUPTED, DeepFact.ENDED) else ""
        run = draft.runs.keep(entered(scene, fact, state))
        draft.tell(f"deep.{state.value}", text)
    wish_for(DeepScene(run=run, crowd=Crowd(draft), draft=draft))


def _release(draft: Draft) -> None:
    """Reservations named as ours that no check has (any more), also those of a head that died."""
    used = {slurm_name(run.token) for run in draft.deeps.values() if run.has_nodes}
    starting = {run.id: run for run in draft.deeps.values() if run.cause is DeepCause.ON_START}
    for name in sorted(draft.seen.reservations):
        run = starting.get(name.removeprefix(PREFIX).rpartition("-")[0])
        if draft.seen.reservations[name].is_ours and name not in used and not (run and _must_be_held(run, draft)):
            why = Why(rule="deep.release", text=f"no deep check needs the nodes of {name} any more")
            draft.wish(ReleaseNodes(key=Key(f"release:{name}"), why=why, name=name), RELEASE_AGAIN_S)


def _must_be_held(run: DeepRun, draft: Draft) -> bool:
    """A new machine that did not pass (yet) is tested again, or goes out of service, before users' jobs reach it."""
    nodes = (draft.seen.nodes.get(name) for name in run.nodes if start_of(name, run.waiter, draft) in _UNPROVED)
    return is_awaited(run, draft) and any(node is not None and not node.is_drain for node in nodes)


def _prune(draft: Draft) -> None:
    over = sorted((run for run in draft.deeps.values() if run.ended is not None), key=lambda run: run.ended or 0.0)
    old = [run for run in over if draft.now >= (run.ended or 0.0) + KEPT_S]
    for run in {each.id: each for each in (*old, *over[: max(0, len(over) - RUNS_KEPT)])}.values():
        draft.runs.forget(run.id)
