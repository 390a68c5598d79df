"""The end of a deep check: each node's result, the baselines learnt from it, and the fault that may follow."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

from steward.model.deep import DeepCause, DeepReport, DeepResult, DeepRun, DeepState, Measure, slurm_name
from steward.model.events import Level
from steward.model.ids import NodeName
from steward.model.job import Job, JobState
from steward.model.reservation import Reservation
from steward.policy.deep.judge import Judged, judge
from steward.policy.deep.usual import with_new_values
from steward.policy.draft import Draft
from steward.policy.facts.crowd import Crowd
from steward.policy.state_machine import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepScene:
    """A deep check with the picture around it, as its state machine sees it."""

    run: DeepRun
    crowd: Crowd
    draft: Draft

    @property
    def name(self) -> str:
        """Return the name of the check's reservation, partition and job; each try has another one."""
        return slurm_name(self.run.token)

    @property
    def reservation(self) -> Reservation | None:
        """Return the reservation that holds all nodes of the check; None until Slurm shows it."""
        found = self.draft.seen.reservations.get(self.name)
        return found if found is not None and found.ends and found.nodes >= self.nodes else None

    @property
    def nodes(self) -> frozenset[NodeName]:
        """Return the nodes of the check that have no result yet."""
        return self.run.nodes - self.run.results.keys()

    @property
    def job(self) -> Job | None:
        """Return the newest job of this try; None if Slurm shows none."""
        return max(self.draft.overview.deep_jobs(self.name), key=lambda job: job.id, default=None)

    @property
    def is_job_over(self) -> bool:
        """Return whether the check's job is over, held by Slurm, or missing."""
        return self.job is None or self.job.is_over or self.job.is_held_by_slurm

    @property
    def job_end(self) -> str:
        """Return how the check's job ended, for people; the exit code is as Slurm writes it (code:signal)."""
        job = self.job
        if job is None:
            return "Slurm has no such job"
        return f"job {job.id}: {job.state.value}, exit code {job.exit_status >> 8}:{job.exit_status & 0x7F}"

    @property
    def reports(self) -> dict[NodeName, DeepReport]:
        """Return the reports of the check's nodes in this try."""
        views = ((name, self.draft.seen.agents.get(name)) for name in sorted(self.nodes))
        told = ((name, report) for name, view in views if view for report in view.deep if report.run == self.run.token)
        return dict(told)


# The table of a deep check: (state, fact) -> state.


class DeepFact(Enum):
    """A fact that the picture shows of a deep check. The value is the sentence that events show."""

    CALLED_OFF = "no node is left to check"
    READY = "its nodes are free, and it is its turn"
    YIELDED = "a user's waiting job needs its nodes"
    STARTED = "its job was started"
    REPORTED = "all its nodes reported everything"
    INTERRUPTED = "its job was lost; the check starts again"
    ENDED = "its job is over"
    LATE = "it took too long"


_ROWS: dict[tuple[DeepState, DeepFact], DeepState] = {
    (DeepState.WAITING, DeepFact.CALLED_OFF): DeepState.DONE,
    (DeepState.WAITING, DeepFact.READY): DeepState.RESERVED,
    (DeepState.RESERVED, DeepFact.CALLED_OFF): DeepState.DONE,
    (DeepState.RESERVED, DeepFact.YIELDED): DeepState.WAITING,
    (DeepState.RESERVED, DeepFact.STARTED): DeepState.RUNNING,
    (DeepState.RESERVED, DeepFact.LATE): DeepState.DONE,
    (DeepState.RUNNING, DeepFact.CALLED_OFF): DeepState.DONE,
    (DeepState.RUNNING, DeepFact.REPORTED): DeepState.DONE,
    (DeepState.RUNNING, DeepFact.YIELDED): DeepState.WAITING,
    (DeepState.RUNNING, DeepFact.INTERRUPTED): DeepState.WAITING,
    (DeepState.RUNNING, DeepFact.ENDED): DeepState.DONE,
    (DeepState.RUNNING, DeepFact.LATE): DeepState.DONE,
}
DEEP_TABLE = Table(_ROWS)


MAX_MEASURES = 400
_LEVELS = {DeepResult.FAILED: Level.WARNING, DeepResult.INCONCLUSIVE: Level.WARNING}


def with_all_results(scene: DeepScene, fact: DeepFact) -> DeepRun:
    """Return the run with a result and a reason for each of its nodes; baselines learn from those that passed."""
    run, draft = scene.run, scene.draft
    measures = tuple(one for report in scene.reports.values() for one in report.measures)
    left = run.nodes - run.results.keys()
    if run.state is not DeepState.RUNNING:
        word = DeepResult.SKIPPED if fact is DeepFact.CALLED_OFF else DeepResult.INCONCLUSIVE
        said = {name: Judged(result=word, why=fact.value) for name in left}
    elif run.cause is DeepCause.LAUNCH:
        said = {name: _judge_launch(name, scene) for name in left}
    else:
        said = _judge_and_learn(run, left, measures, draft)
    done = with_results(run, said)
    for name in sorted(said):
        tell_result(done, name, draft)
    return replace(done, measures=measures[:MAX_MEASURES], ended=draft.now)


def _judge_launch(name: NodeName, scene: DeepScene) -> Judged:
    """Return the result of the launch test: failed if its job did not end well, or Slurm drained the node again."""
    node, job = scene.draft.seen.nodes.get(name), scene.job
    if node is not None and node.is_drain and node.reason is not None:
        return Judged(result=DeepResult.FAILED, why=f"Slurm drained the node again: {node.reason.text}")
    went_well = job is not None and job.state is JobState.COMPLETED and job.exit_status == 0
    return Judged(result=DeepResult.PASSED if went_well else DeepResult.FAILED, why=scene.job_end)


def with_results(run: DeepRun, said: Mapping[NodeName, Judged]) -> DeepRun:
    results = {**run.results, **{name: each.result for name, each in said.items()}}
    why = {**run.why, **{name: each.why for name, each in said.items()}}
    return replace(run, results=MappingProxyType(results), why=MappingProxyType(why))


def _judge_and_learn(
    run: DeepRun, left: frozenset[NodeName], measures: tuple[Measure, ...], draft: Draft
) -> dict[NodeName, Judged]:
    profiles = {name: _profile(name, draft) for name in run.nodes}
    said = judge(left, run.kinds, measures, profiles=profiles, baselines=draft.baselines)
    draft.baselines.update(
        with_new_values(draft.baselines, measures, {n: each.result for n, each in said.items()}, profiles)
    )
    return said


def _profile(name: NodeName, draft: Draft) -> str:
    """Return the profile of a node, from Slurm's description; nodes of one profile are compared."""
    node = draft.seen.nodes.get(name)
    return f"{node.cpus}c-{node.memory_mb // 1024}g{f'-{node.gres}' if node.gres else ''}" if node else ""


def tell_result(run: DeepRun, name: NodeName, draft: Draft) -> None:
    """Write an event about a node's result; of a suspect that passed it says that the suspicion was not confirmed."""
    result, why = run.results[name], run.why[name]
    good = run.cause is DeepCause.SUSPECT and result is DeepResult.PASSED
    text = f"{name}: deep check {run.id}: {'the suspicion was not confirmed' if good else result.value}: {why}"
    level = _LEVELS.get(result, Level.INFO)
    draft.tell(f"deep.{result.value.lower()}", text, level=level, node=name)
