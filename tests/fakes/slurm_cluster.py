"""The cluster behind the fake Slurm: nodes, jobs and a first-fit scheduler, and what users, admins and faults do to it.

Time is a number that the test moves with `tick`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase, Reason
from steward.model.partition import PartitionState
from steward.ports import PortError
from tests.fakes.slurm_places import FakePartitions, FakeReservations

_REQUEUE_DELAY_S = 121.0
"""How long Slurm keeps a requeued job ineligible (cred_expire + 1)."""
_TOP_PRIORITY = 4294901760
USERS_HOLD, REQUEUED_HELD = "JobHeldUser", "job requeued in held state"
HOLDS = (USERS_HOLD, REQUEUED_HELD)


@dataclass(kw_only=True)
class FakeCluster:
    """`refuse` is raised by each call of the port until it is None again. A job takes one whole node after another."""

    node_table: dict[NodeName, Node] = field(default_factory=dict)
    job_table: dict[JobId, Job] = field(default_factory=dict)
    now: float = 1000.0
    refuse: PortError | None = None
    next_id: int = 1
    pinned: dict[JobId, NodeName] = field(default_factory=dict)
    """Jobs that run on this node or not at all."""
    silent: set[NodeName] = field(default_factory=set)
    """Nodes whose slurmd does not answer."""
    divided: FakePartitions = field(default_factory=FakePartitions)
    reserved: FakeReservations = field(default_factory=FakeReservations)
    signals: list[tuple[JobId, str]] = field(default_factory=list)
    leaked: dict[NodeName, str] = field(default_factory=dict)
    """GRES that slurmctld counts as used, by node."""
    longest: int | None = None
    """MaxTime of every partition, in minutes."""

    def register(self, name: str, *, feature: str) -> None:
        """A dynamic node comes, drained, without a reason."""
        node = NodeName(name)
        self.node_table[node] = replace(
            next(iter(self.node_table.values())),
            name=node,
            base=NodeBase.IDLE,
            flags=frozenset({"DRAIN", "DYNAMIC_NORM"}),
            reason=None,
            features=frozenset({feature}),
        )
        shown = self.divided.shown(self.node_table).values()
        partitions = frozenset(partition.name for partition in shown if node in partition.nodes)
        self.node_table[node] = replace(self.node_table[node], partitions=partitions)

    def tick(self, seconds: float = 1.0) -> None:
        """Time passes: slurmds answer, eligible jobs start on nodes that are free for them."""
        self.now += seconds
        for name, node in self.node_table.items():
            flags = node.flags - {"NOT_RESPONDING"} | ({"NOT_RESPONDING"} if name in self.silent else set())
            self.node_table[name] = replace(node, flags=flags, responding=name not in self.silent)
        for job in sorted(self.job_table.values(), key=lambda job: -job.priority):
            if job.is_pending and (job.eligible or 0.0) <= self.now and job.reason not in HOLDS:
                self._start(job)

    def submit(
        self,
        *,
        name: str = "job",
        on: str = "",
        requeue: bool = True,
        hold: bool = False,
        exclude: Iterable[str] = (),
        array: tuple[int, int] | None = None,
        user_id: int = 0,
        partition: str = "main",
        time_limit_s: float | None = None,
    ) -> JobId:
        """A batch job of one node; `on` pins it; `array` is (array's job id, index)."""
        job = Job(
            id=JobId(self.next_id),
            name=name,
            state=JobState.PENDING,
            user_id=user_id,
            reason=USERS_HOLD if hold else "None",
            requeue=requeue,
            excluded=frozenset(NodeName(n) for n in exclude),
            array_job_id=JobId(array[0]) if array else None,
            array_task=array[1] if array else None,
            partition=partition,
            node_count=1,
            submitted=self.now,
            eligible=self.now,
            time_limit_s=time_limit_s,
            priority=0 if hold else _TOP_PRIORITY - self.next_id,
        )
        self.next_id += 1
        self.job_table[job.id] = job
        if on:
            self.pinned[job.id] = NodeName(on)
        return job.id

    def finish(self, job: JobId, exit_status: int = 0) -> None:
        """The script ended with this raw wait status."""
        state = JobState.FAILED if exit_status else JobState.COMPLETED
        reason = {0: "None"}.get(exit_status, "RaisedSignal" if exit_status & 0x7F else "NonZeroExitCode")
        self._change(job, state=state, exit_status=exit_status, reason=reason, ended=self.now)

    def cancel(self, job: JobId) -> None:
        self.end(job, JobState.CANCELLED)

    def end(self, job: JobId, state: JobState) -> None:
        self._change(job, state=state, ended=self.now)

    def requeue_held(self, job: JobId) -> None:
        """By a person: back in the queue and held."""
        self._back_to_pending(job)
        self._change(job, reason=REQUEUED_HELD)

    def forget(self, job: JobId) -> None:
        """MinJobAge is over."""
        del self.job_table[job]

    def set_reason(self, node: NodeName, text: str, *, user: str = "admin", flags: Iterable[str] = ()) -> None:
        old = self.node_table[node]
        keep = old.flags - ({"DRAIN", "FAIL"} if flags else set())
        reason = Reason(text=text, user=user, at=self.now)
        self.node_table[node] = replace(old, flags=keep | set(flags), reason=reason)

    def go_down(self, node: NodeName, text: str, *, user: str = "slurm") -> None:
        """DOWN keeps DRAIN; jobs on it are requeued, or end as NODE_FAIL when they may not be."""
        old = self.node_table[node]
        reason = Reason(text=text, user=user, at=self.now)
        self.node_table[node] = replace(old, base=NodeBase.DOWN, reason=reason)
        for job in [job for job in self.job_table.values() if job.is_active and node in job.nodes]:
            if job.requeue:
                self._back_to_pending(job.id)
            else:
                self._change(job.id, state=JobState.NODE_FAIL, ended=self.now)

    def resume(self, node: NodeName) -> None:
        old = self.node_table[node]
        flags = old.flags - {"DRAIN", "FAIL"} | {"NOT_RESPONDING"}
        self.node_table[node] = replace(old, base=NodeBase.IDLE, flags=flags, reason=None, responding=False)

    def shown_nodes(self) -> dict[NodeName, Node]:
        """As Slurm shows them."""
        return {name: self._dressed(node) for name, node in self.node_table.items()}

    def _answer(self) -> None:
        if self.refuse is not None:
            raise self.refuse

    def _dressed(self, node: Node) -> Node:
        """IDLE nodes with a job on them read ALLOCATED."""
        busy = any(job.is_active and node.name in job.nodes for job in self.job_table.values())
        return replace(node, base=NodeBase.ALLOCATED) if busy and node.base is NodeBase.IDLE else node

    def _start(self, job: Job) -> None:
        if job.deep_check in self.reserved.table:
            self._start_deep(job)
            return
        partition = self.divided.shown(self.node_table).get(job.partition)
        if partition is not None and partition.state is not PartitionState.UP:
            self._change(job.id, reason="PartitionDown")
            return
        here = next((node.name for node in self.suiting(job) if node.base is NodeBase.IDLE), None)
        if here is None:
            self._change(job.id, reason="Resources")
            return
        self._change(
            job.id,
            state=JobState.RUNNING,
            reason="None",
            nodes=frozenset({here}),
            batch_host=here,
            started=self.now,
            ended=None,
        )

    def suiting(self, job: Job, through: str = "") -> list[Node]:
        """The nodes in service on which the job may run, busy ones among them; those of reservation `through` too."""
        partition, known = self.divided.shown(self.node_table).get(job.partition), self.reserved.shown(self.now)
        opened = known[through].nodes if through in known else frozenset()
        return [
            n
            for n in self.shown_nodes().values()
            if n.is_schedulable
            and (n.name in opened or not self.reserved.keeps(n.name, job.reservation, self.now))
            and n.name not in job.excluded
            and self.pinned.get(job.id, n.name) == n.name
            and (partition is None or n.name in partition.nodes)
        ]

    def _start_deep(self, job: Job) -> None:
        """On every node of its reservation, or not yet."""
        nodes = self.reserved.table[job.partition].nodes
        seen = self.shown_nodes()
        if all(seen[name].is_schedulable and seen[name].base is NodeBase.IDLE for name in nodes):
            host = min(nodes)
            self._change(job.id, state=JobState.RUNNING, reason="None", nodes=nodes, batch_host=host, started=self.now)
        else:
            self._change(job.id, reason="Resources")

    def _back_to_pending(self, job: JobId) -> None:
        self._change(
            job,
            state=JobState.PENDING,
            reason="BeginTime",
            restarts=self.job_table[job].restarts + 1,
            nodes=frozenset(),
            batch_host=None,
            started=None,
            ended=None,
            eligible=self.now + _REQUEUE_DELAY_S,
        )

    def _change(self, job: JobId, **changes: object) -> None:
        self.job_table[job] = replace(self.job_table[job], **changes)  # type: ignore[arg-type]
