"""Which facts hold for a run now: one small question for each fact of the table."""

from collections.abc import Callable, Mapping

from steward.model.elastic import Activity, Cause, Phase
from steward.policy.elastic.scene import Scene
from steward.policy.elastic.table import Fact, deadline


def _over(scene: Scene) -> bool:
    return scene.is_over or (scene.word is not None and scene.word.state is Activity.ENDED)


def _lost(scene: Scene) -> bool:
    """Whether nodes of the run are lost; in DRAINING only those of the generation that is to come count."""
    if scene.run.phase is Phase.DRAINING:
        return any(scene.is_lost(node) for node in scene.run.to)
    return bool(scene.lost)


def _gives(scene: Scene) -> bool:
    target = scene.best()
    if not target:
        return False
    if scene.run.phase is Phase.DRAINING:
        return scene.run.is_patient and scene.is_pressed and bool(scene.members - target)
    return bool(scene.members - target) and (bool(scene.members - scene.here) or len(scene.members) > scene.most)


def _stepped(scene: Scene) -> bool:
    return scene.is_running and scene.word is not None and scene.word.generation >= scene.run.ordered


def _formed(scene: Scene) -> bool:
    if scene.word is None:
        return False
    before = max(scene.run.generation, scene.run.ordered - 1)
    return scene.word.generation > before and scene.word.state in (Activity.FORMING, Activity.RUNNING)


def _went_on(scene: Scene) -> bool:
    """Whether the run's coordinator goes on as before: nothing was really lost, and nothing will come of a change that
    was ordered and not begun."""
    run, word = scene.run, scene.word
    if scene.lost or not scene.is_running or word is None:
        return False
    return word.generation < run.ordered or (word.generation, word.members) == (run.generation, run.members)


def _is_not_worth_waiting(scene: Scene) -> bool:
    """Whether a growth waits for a save that no rank has begun, while others need the nodes or one of them went."""
    run = scene.run
    is_growth = run.phase is Phase.DRAINING and run.cause is Cause.GROW
    return is_growth and not scene.saves and (scene.is_pressed or not scene.best() - scene.members)


def _late(scene: Scene) -> bool:
    until = deadline(scene.run, scene.rules, saves=scene.saves)
    if _is_not_worth_waiting(scene):
        return True
    if scene.run.phase is Phase.DRAINING and scene.run.cause is Cause.ASKED and scene.is_saving:
        return False
    if scene.run.phase is not Phase.FAULTED:
        return until is not None and scene.draft.now >= until
    target = scene.best()
    if not target:
        return False
    is_coming = any(not nodes <= scene.ready and not any(map(scene.is_lost, nodes)) for nodes in scene.staying.values())
    is_full = len(target) >= len(scene.members)
    return is_full or not is_coming or (until is not None and scene.draft.now >= until)


def can_grow(scene: Scene) -> bool:
    """More nodes are ready than it has, and nothing speaks against a pause now."""
    run = scene.run
    if not scene.draft.want.elastic.enabled or run.paused or scene.draft.now < run.cool_until:
        return False
    if not scene.is_running or not run.steerable:
        return False
    return len(scene.best()) > len(scene.members)


def _settled(scene: Scene) -> bool:
    is_full = len(scene.best()) >= scene.rules.spec.sizes[-1]
    return can_grow(scene) and (is_full or _late(scene)) and growing(scene) < scene.draft.want.elastic.growths_at_once


def growing(scene: Scene) -> int:
    """Runs that change their size now, cluster-wide: a save of many at once is a burden for the file system."""
    return sum(1 for run in scene.draft.elastic.values() if run.is_changing)


QUESTIONS: Mapping[Fact, Callable[[Scene], bool]] = {
    Fact.OVER: _over,
    Fact.QUEUED: lambda scene: scene.is_queued,
    Fact.LOST: _lost,
    Fact.GIVES: _gives,
    Fact.STEPPED: _stepped,
    Fact.FORMED: _formed,
    Fact.WENT_ON: _went_on,
    Fact.HEALED: lambda scene: not scene.lost,
    Fact.LATE: _late,
    Fact.READY: can_grow,
    Fact.SETTLED: _settled,
    Fact.ALONE: lambda scene: not can_grow(scene),
    Fact.COOL: lambda scene: scene.draft.now >= scene.run.cool_until,
}
