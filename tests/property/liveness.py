"""The law that something good happens in the end: a job whose nodes are gone runs again."""

from dataclasses import dataclass, field

from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.plan import Plan
from tests.fakes.world import World


@dataclass(slots=True)
class Liveness:
    """An opted-in job whose nodes are gone runs again `within_s` while enough well nodes are there, however many were
    lost at once. A watcher of plans."""

    world: World
    within_s: float
    since: dict[JobId, float] = field(default_factory=dict)
    """Since when a job could run and does not."""

    def __call__(self, seen: Observed, memory: Memory, decided: Plan) -> None:
        now = self.world.now
        for id in self.world.opted:
            job = self.world.slurm.jobs[id]
            if job.is_over or not (self._waits(job) and self._could_run(job)):
                self.since.pop(id, None)
                continue
            waited = now - self.since.setdefault(id, now)
            assert waited <= self.within_s, f"P13: job {id} could run, and does not since {waited:.0f} s: {job}"

    def _waits(self, job: Job) -> bool:
        """A run of it was lost, or some of its nodes are."""
        return bool(job.restarts) if job.is_pending else any(not self.world.is_alive(name) for name in job.nodes)

    def _could_run(self, job: Job) -> bool:
        others = (other for other in self.world.slurm.jobs.values() if other.is_active and other.id != job.id)
        taken = {name for other in others for name in other.nodes}
        return len(self._well() - taken) >= job.node_count

    def _well(self) -> set[NodeName]:
        """Nodes on which a job would run, as far as the world knows."""
        views = self.world.machines.views
        heard = {name for name, view in views.items() if view.connected and not view.findings}
        up = {name for name in heard if self.world.is_alive(name) and not self.world.is_cut(name)}
        return {name for name in up if self.world.slurm.nodes[name].is_schedulable}
