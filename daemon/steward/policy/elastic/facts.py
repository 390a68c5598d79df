"""The facts about an elastic run: one question for each fact of the table, answered from the picture."""

from collections.abc import Callable, Mapping

from steward.model.elastic import Activity, Cause, RunPhase
from steward.policy.elastic.scene import RunScene
from steward.policy.elastic.table import RunFact, deadline

GROWTHS_AT_ONCE = 4
"""A run starts to grow only while fewer runs than this change their size."""


def _over(scene: RunScene) -> bool:
    return scene.is_over or (scene.word is not None and scene.word.state is Activity.ENDED)


def _lost(scene: RunScene) -> bool:
    """Return whether nodes of the run are lost; in DRAINING only nodes of the next generation count."""
    if scene.run.phase is RunPhase.DRAINING:
        return any(scene.is_lost(node) for node in scene.run.ordered_members)
    return bool(scene.lost)


def _gives(scene: RunScene) -> bool:
    target = scene.best()
    if not target:
        return False
    if scene.run.phase is RunPhase.DRAINING:
        return scene.run.is_patient and scene.is_pressed and bool(scene.members - target)
    return bool(scene.members - target) and (bool(scene.members - scene.here) or len(scene.members) > scene.most)


def _stepped(scene: RunScene) -> bool:
    return scene.is_running and scene.word is not None and scene.word.generation >= scene.run.ordered


def _formed(scene: RunScene) -> bool:
    if scene.word is None:
        return False
    before = max(scene.run.generation, scene.run.ordered - 1)
    return scene.word.generation > before and scene.word.state in (Activity.FORMING, Activity.RUNNING)


def _went_on(scene: RunScene) -> bool:
    """Return whether the run continues as before: no node was really lost, and no ordered change has begun."""
    run, word = scene.run, scene.word
    if scene.lost or not scene.is_running or word is None:
        return False
    return word.generation < run.ordered or (word.generation, word.members) == (run.generation, run.members)


def _is_not_worth_waiting(scene: RunScene) -> bool:
    """Return whether a growth waits for a save that no rank has begun, while its new nodes are needed or gone."""
    run = scene.run
    is_growth = run.phase is RunPhase.DRAINING and run.cause is Cause.GROW
    return is_growth and not scene.saves and (scene.is_pressed or not scene.best() - scene.members)


def _late(scene: RunScene) -> bool:
    until = deadline(scene.run, scene.rules, saves=scene.saves)
    if _is_not_worth_waiting(scene):
        return True
    if scene.run.phase is RunPhase.DRAINING and scene.run.cause is Cause.ASKED and scene.is_saving:
        return False
    if scene.run.phase is not RunPhase.FAULTED:
        return until is not None and scene.draft.now >= until
    target = scene.best()
    if not target:
        return False
    is_coming = any(not nodes <= scene.ready and not any(map(scene.is_lost, nodes)) for nodes in scene.staying.values())
    is_full = len(target) >= len(scene.members)
    return is_full or not is_coming or (until is not None and scene.draft.now >= until)


def can_grow(scene: RunScene) -> bool:
    """Return whether more nodes are ready than the run has, and the run may pause now."""
    run = scene.run
    if not scene.draft.want.elastic.enabled or run.paused or scene.draft.now < run.cool_until:
        return False
    if not scene.is_running or not run.steerable:
        return False
    return len(scene.best()) > len(scene.members)


def _settled(scene: RunScene) -> bool:
    is_full = len(scene.best()) >= scene.rules.spec.sizes[-1]
    return can_grow(scene) and (is_full or _late(scene)) and growing(scene) < GROWTHS_AT_ONCE


def growing(scene: RunScene) -> int:
    """Return how many runs change their size now."""
    # limited by `GROWTHS_AT_ONCE`: the saves of many runs at once would overload the file system
    return sum(1 for run in scene.draft.elastic.values() if run.is_changing)


QUESTIONS: Mapping[RunFact, Callable[[RunScene], bool]] = {
    RunFact.OVER: _over,
    RunFact.QUEUED: lambda scene: scene.is_queued,
    RunFact.LOST: _lost,
    RunFact.GIVES: _gives,
    RunFact.STEPPED: _stepped,
    RunFact.FORMED: _formed,
    RunFact.WENT_ON: _went_on,
    RunFact.HEALED: lambda scene: not scene.lost,
    RunFact.LATE: _late,
    RunFact.READY: can_grow,
    RunFact.SETTLED: _settled,
    RunFact.ALONE: lambda scene: not can_grow(scene),
    RunFact.COOL: lambda scene: scene.draft.now >= scene.run.cool_until,
}
