"""The facts that the picture shows of a deep check: one small question for each fact of the table."""

from collections.abc import Callable

from steward.model.deep import DeepCause, DeepState
from steward.model.job import JobState
from steward.policy.deep.nodes import choose
from steward.policy.deep.scene import DeepScene
from steward.policy.deep.start import is_awaited
from steward.policy.deep.table import DeepFact

MOST_TRIES = 2
"""A check whose job was lost (slurmctld read its configuration anew, a person cancelled it) begins anew so often."""
TELLING_S = 5.0
"""After the end of its job its agents have this long to tell what it found."""
OVERTIME_S = 60.0
"""The runner ends itself within its budget; Slurm ends its job this much later."""


def _called_off(scene: DeepScene) -> bool:
    run, draft = scene.run, scene.draft
    if run.cause is DeepCause.ON_START and not is_awaited(run, draft):
        return True
    return run.state is DeepState.WAITING and (not draft.want.deep.enabled or run.nodes <= run.results.keys())


def _ready(scene: DeepScene) -> bool:
    return scene.draft.seen.reservations_at > 0 and bool(choose(scene.run, scene.crowd, scene.draft))


def _yielded(scene: DeepScene) -> bool:
    if scene.run.cause is DeepCause.ON_START:
        return False
    known = (scene.draft.seen.nodes.get(name) for name in scene.nodes)
    return any(node is not None and scene.crowd.needed(node) for node in known)


def _started(scene: DeepScene) -> bool:
    job = scene.job
    return job is not None and not job.is_pending


def _reported(scene: DeepScene) -> bool:
    reports = scene.reports
    return all(name in reports and reports[name].is_done for name in scene.nodes)


def _over(scene: DeepScene) -> bool:
    """Its job is over or not to be found, and its agents had the time to tell."""
    job, draft = scene.job, scene.draft
    if job is not None and not job.is_over:
        return False
    at = draft.first_seen(f"deep-over:{scene.run.token}") + TELLING_S
    draft.wake(at)
    return draft.now >= at


def _interrupted(scene: DeepScene) -> bool:
    job, reports = scene.job, scene.reports
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
