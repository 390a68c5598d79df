"""The reservations of the fake Slurm, and the jobs of those that are ours."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from steward.adapters.slurm.reservations import kept, ours
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase
from steward.model.reservation import Reservation
from steward.ports import Permanent, Retryable, Stale


@dataclass(kw_only=True)
class FakeReservations:
    """`submitted` are the command lines of deep checks' jobs by reservation."""

    table: dict[str, Reservation] = field(default_factory=dict)
    submitted: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def shown(self, now: float) -> dict[str, Reservation]:
        self.table = {name: each for name, each in self.table.items() if now < each.ends}
        return dict(self.table)

    def make(self, name: str, nodes: Iterable[NodeName], seconds: float, now: float) -> None:
        wanted = frozenset(nodes)
        there = self.shown(now).get(ours(name))
        if there is not None and there.nodes != wanted:
            raise Stale(f"reservation {name} is there for other nodes")
        self.table.setdefault(name, Reservation(name=name, nodes=wanted, starts=now, ends=now + seconds))

    def keep(self, name: str, nodes: Iterable[NodeName], seconds: float, now: float) -> None:
        wanted, there = frozenset(nodes), self.shown(now).get(kept(name))
        if any(wanted & other.nodes for other in self.table.values() if other.name != name):
            raise Retryable("Requested nodes are busy: another reservation has some of them")
        starts = there.starts if there else now
        self.table[name] = Reservation(name=name, nodes=wanted, starts=starts, ends=now + seconds)

    def free(self, name: str) -> None:
        self.table.pop(kept(name), None)

    def keeps(self, node: NodeName, partition: str, now: float) -> bool:
        """Whether a job of this partition must not start on the node."""
        return any(node in each.nodes and name != partition for name, each in self.shown(now).items())

    def drop(self, name: str) -> None:
        self.table.pop(ours(name), None)


class FakeDeepJobs:
    """The part of the fake Slurm that deep checks use; the rest of it is what they stand on."""

    reserved: FakeReservations
    job_table: dict[JobId, Job]
    now: float

    def nodes(self) -> Mapping[NodeName, Node]:
        raise NotImplementedError

    def submit(self, *, name: str = "job", partition: str = "main") -> JobId:
        raise NotImplementedError

    def cancel(self, job: JobId) -> None:
        raise NotImplementedError

    def _answer(self) -> None:
        raise NotImplementedError

    def _change(self, job: JobId, **changes: object) -> None:
        raise NotImplementedError

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

    def _start_deep(self, job: Job) -> None:
        """On every node of its reservation, or not yet."""
        nodes = self.reserved.table[job.partition].nodes
        seen = self.nodes()
        if all(seen[name].is_schedulable and seen[name].base is NodeBase.IDLE for name in nodes):
            host = min(nodes)
            self._change(job.id, state=JobState.RUNNING, reason="None", nodes=nodes, batch_host=host, started=self.now)
        else:
            self._change(job.id, reason="Resources")
