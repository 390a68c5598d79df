"""What many steps of a plan ask of the same picture, for one job or node after the other: worked out once, when it is
first asked for."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from steward.model.deep_command import PREFIX
from steward.model.ids import JobId, NodeName
from steward.model.instance import Instance
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase
from steward.model.observed import Observed

_WAITS_FOR_NODES = ("None", "Resources", "Priority", "ReqNodeNotAvail", "Reservation")
"""Slurm's reasons of jobs that would start if nodes were free; others wait for a time, a person, a limit or a job."""
FAILED = frozenset({JobState.FAILED, JobState.NODE_FAIL, JobState.BOOT_FAIL})


class Overview:
    """Of one picture at one moment; neither changes."""

    def __init__(self, seen: Observed, now: float) -> None:
        self._seen, self._now = seen, now
        self._of_partitions: dict[str, frozenset[NodeName]] = {}
        self._idle_of: dict[str, frozenset[NodeName]] = {}

    @cached_property
    def idle(self) -> frozenset[NodeName]:
        """Nodes on which Slurm would start a job now."""
        return frozenset(name for name, node in self._seen.nodes.items() if is_idle(node))

    @cached_property
    def waiting(self) -> tuple[Job, ...]:
        """Users' jobs that would start if nodes were free."""
        return tuple(job for job in self._seen.jobs.values() if _waits_for_nodes(job, self._now))

    @cached_property
    def failed_alone(self) -> tuple[Job, ...]:
        """Jobs of one node that failed and ended, by id."""
        jobs = (job for job in self._seen.jobs.values() if job.state in FAILED and len(job.nodes) == 1)
        return tuple(sorted((job for job in jobs if job.ended is not None), key=lambda job: job.id))

    @cached_property
    def running_on(self) -> Mapping[NodeName, Sequence[JobId]]:
        """Node -> the jobs that run there."""
        found: defaultdict[NodeName, list[JobId]] = defaultdict(list)
        for job in self._seen.jobs.values():
            for node in job.nodes if job.is_active else ():
                found[node].append(job.id)
        return found

    def nodes_of(self, partitions: str) -> frozenset[NodeName]:
        """The nodes of a job's partitions, as the job names them: `a,b`."""
        if partitions not in self._of_partitions:
            parts = set(partitions.split(","))
            found = frozenset(name for name, node in self._seen.nodes.items() if parts & node.partitions)
            self._of_partitions[partitions] = found
        return self._of_partitions[partitions]

    def idle_of(self, partitions: str) -> frozenset[NodeName]:
        """Those of them that are idle."""
        if partitions not in self._idle_of:
            self._idle_of[partitions] = self.idle & self.nodes_of(partitions)
        return self._idle_of[partitions]

    def jobs_of(self, partition: str) -> Sequence[Job]:
        """Jobs in exactly this one."""
        return self._jobs_by_partition.get(partition, ())

    @cached_property
    def _jobs_by_partition(self) -> Mapping[str, Sequence[Job]]:
        found: defaultdict[str, list[Job]] = defaultdict(list)
        for job in self._seen.jobs.values():
            found[job.partition].append(job)
        return found

    def instances_with(self, token: str) -> Sequence[Instance]:
        """Launched for this token; gone ones are among them."""
        return self._instances_by_token.get(token, ())

    @cached_property
    def _instances_by_token(self) -> Mapping[str, Sequence[Instance]]:
        found: defaultdict[str, list[Instance]] = defaultdict(list)
        for instance in self._seen.instances.values():
            found[instance.token].append(instance)
        return found


def is_idle(node: Node) -> bool:
    """Slurm would start a job on it now."""
    return node.base is NodeBase.IDLE and node.is_schedulable and not node.is_busy and node.is_powered


def _waits_for_nodes(job: Job, now: float) -> bool:
    is_ready = job.is_pending and not job.partition.startswith(PREFIX) and (job.eligible or 0.0) <= now
    return is_ready and (not job.reason or job.reason.startswith(_WAITS_FOR_NODES))
