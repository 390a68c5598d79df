"""Slurm's preemption in the simulated cluster (PreemptMode=REQUEUE): jobs for which others are put back."""

from dataclasses import dataclass, field

from steward.model.ids import JobId
from steward.model.job import Job
from tests.fakes.sim_slurm import SimSlurm

CLEANS_UP_S = 2.0
"""Until then the nodes of what was put back are nobody's."""


@dataclass(slots=True, kw_only=True)
class Preemption:
    """`firsts` are the jobs that make others go."""

    firsts: set[JobId] = field(default_factory=set)

    def make_room(self, slurm: SimSlurm, now: float) -> None:
        """For each that waits and lacks nodes, others go until it has enough."""
        for id in sorted(self.firsts):
            job = slurm.jobs[id]
            busy = {name for other in slurm.jobs.values() if other.is_active for name in other.nodes}
            free = [name for name, node in slurm.nodes.items() if node.is_schedulable and name not in busy]
            lacks = job.node_count - len(free) if job.is_pending else 0
            for other in self._others(slurm):
                if lacks > 0:
                    lacks -= len(other.nodes)
                    slurm.requeue(other.id, other.excluded, now)
                    slurm.runs[other.id].completing_until = slurm.runs[id].begin = now + CLEANS_UP_S

    def _others(self, slurm: SimSlurm) -> list[Job]:
        """The youngest first."""
        return [job for id, job in sorted(slurm.jobs.items(), reverse=True) if job.is_active and id not in self.firsts]
