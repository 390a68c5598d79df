"""What the fake Slurm does for deep checks and for nodes that are kept."""

from collections.abc import Iterable, Mapping, Sequence

from steward.model.ids import JobId, NodeName
from steward.model.reservation import Reservation
from steward.ports import Permanent
from tests.fakes.slurm_cluster import FakeCluster


class FakeDeepJobs(FakeCluster):
    """The part of SlurmPort that has to do with reservations."""

    def reservations(self) -> Mapping[str, Reservation]:
        self._answer()
        return self.reserved.shown(self.now)

    def reserve(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        self._answer()
        self.reserved.make(name, nodes, seconds, self.now)

    def submit_deep(
        self, name: str, nodes: Iterable[NodeName], argv: Sequence[str], seconds: float, output: str
    ) -> None:
        self._answer()
        if name not in self.reserved.shown(self.now):
            raise Permanent(f"there is no reservation {name}")
        if not self._deep_jobs(name):
            self.reserved.submitted[name] = tuple(argv)
            job = self.submit(name=name, partition=name)
            self._change(job, node_count=len(set(nodes)))

    def keep_nodes(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        self._answer()
        self.reserved.keep(name, nodes, seconds, self.now)

    def free_nodes(self, name: str) -> None:
        self._answer()
        self.reserved.free(name)

    def release(self, name: str) -> None:
        self._answer()
        for job in self._deep_jobs(name):
            self.cancel(job)
        self.reserved.drop(name)

    def _deep_jobs(self, name: str) -> list[JobId]:
        return [job.id for job in self.job_table.values() if job.partition == name and not job.is_over]
