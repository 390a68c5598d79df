"""Answers about the same picture that many steps of a plan need, each worked out once, when it is first asked for.

Answers that depend on records alone are kept for the next plan (`fact_cache.py`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from steward.model.ask import Ask, OptedIn
from steward.model.ids import JobId, NodeName
from steward.model.instance import Instance
from steward.model.job import Job
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.observed import Observed
from steward.model.reservation import Reservation
from steward.policy.fact_cache import FactCache
from steward.policy.leaks import leaks
from steward.policy.traits import OfDeepCheck, Trait, Within

K = TypeVar("K")


class Overview:
    """Answers about one picture, and about the memory with which the plan began; they stay the same during a plan."""

    def __init__(self, seen: Observed, memory: Memory, ground: FactCache, now: float) -> None:
        self._seen, self._remembered, self._ground, self._now = seen, memory.nodes, ground, now
        self._of_partitions: dict[str, frozenset[NodeName]] = {}
        self._idle_of: dict[str, frozenset[NodeName]] = {}
        self._free_among: dict[frozenset[NodeName], frozenset[NodeName]] = {}
        self._priorities_of: dict[str, Sequence[int]] = {}

    def remembered(self, what: str) -> frozenset[NodeName]:
        """Return the nodes whose memory has a value in this field."""
        known = self._ground.once(_none_remembered, (self._remembered,))
        if what not in known:
            known[what] = frozenset(name for name, mem in self._remembered.items() if getattr(mem, what) is not None)
        return known[what]

    @cached_property
    def unheard(self) -> Sequence[NodeName]:
        """Return the nodes without an agent that is connected and punctual, by name."""
        nodes, agents = self._ground.nodes, self._ground.agents
        of = (nodes.keys_stamp, agents.keys_stamp, agents.stamp(Trait.UNHEARD))
        return self._ground.once(Overview._find_unheard, of, self)

    def _find_unheard(self) -> Sequence[NodeName]:
        nodes = self._seen.nodes.keys()
        return sorted((nodes & self._ground.agents.having(Trait.UNHEARD)) | (nodes - self._seen.agents.keys()))

    @cached_property
    def heard(self) -> Sequence[NodeName]:
        """Return the nodes with an agent that is connected and punctual, by name."""
        of = (self._ground.nodes.keys_stamp, self.unheard)
        return self._ground.once(Overview._find_heard, of, self)

    def _find_heard(self) -> Sequence[NodeName]:
        return sorted(self._seen.nodes.keys() - set(self.unheard))

    def with_reason(self, *traits: Trait) -> Sequence[Node]:
        """Return the nodes whose reason has one of these traits, by name."""
        # nodes with any other reason, thousands of them at some sites, are not looked at
        names = set[NodeName]().union(*map(self._ground.nodes.having, traits))
        return [self._seen.nodes[name] for name in sorted(names)]

    @cached_property
    def finding(self) -> Sequence[NodeName]:
        """Return the nodes whose agents report a finding, by name; Slurm may not know them."""
        return sorted(self._ground.agents.having(Trait.FINDING))

    @cached_property
    def idle(self) -> frozenset[NodeName]:
        """Return the nodes on which Slurm would start a job now."""
        idle = self._ground.once(Overview._find_idle, (self._ground.nodes.stamp(Trait.IDLE),), self)
        return idle.difference(self.leaks) if self.leaks else idle

    def _find_idle(self) -> frozenset[NodeName]:
        return frozenset(self._ground.nodes.having(Trait.IDLE))

    @cached_property
    def leaks(self) -> Mapping[NodeName, str]:
        """Return idle node -> the GRES that Slurm counts as used although no job is there (`leaks.py`)."""
        return leaks(self._seen)

    @cached_property
    def waiting(self) -> Sequence[Job]:
        """Return the users' jobs that would start if nodes were free, by id."""
        queued = self._ground.once(Overview._find_queued, (self._ground.jobs.stamp(Trait.QUEUED),), self)
        return [job for job in queued if (job.eligible or 0.0) <= self._now]

    def _find_queued(self) -> Sequence[Job]:
        return self._jobs_with(Trait.QUEUED)

    @cached_property
    def waiting_alike(self) -> Sequence[Sequence[Job]]:
        """Return the waiting jobs in lists of equal partitions, node count and excluded nodes."""
        found: defaultdict[tuple[str, int, frozenset[NodeName]], list[Job]] = defaultdict(list)
        for job in self.waiting:
            found[job.partition, job.node_count, job.excluded].append(job)
        return list(found.values())

    @cached_property
    def waiting_ids(self) -> frozenset[JobId]:
        return frozenset(job.id for job in self.waiting)

    def priorities_of(self, partitions: str) -> Sequence[int]:
        """Return the priorities of the jobs that wait for one or more of these partitions, lowest first."""
        if partitions not in self._priorities_of:
            parts = set(partitions.split(","))
            found = [each for names, many in self._priorities.items() if parts & set(names.split(",")) for each in many]
            self._priorities_of[partitions] = sorted(found)
        return self._priorities_of[partitions]

    @cached_property
    def _priorities(self) -> Mapping[str, Sequence[int]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for job in self.waiting:
            found[job.partition].append(job.priority)
        return found

    @cached_property
    def failed_alone(self) -> Sequence[Job]:
        """Return the jobs of one node that failed and ended, by id."""
        return self._jobs_with(Trait.FAILED_ALONE)

    @cached_property
    def active(self) -> Sequence[Job]:
        """Return the jobs that run or are suspended, by id."""
        return self._jobs_with(Trait.ACTIVE)

    @cached_property
    def completing(self) -> Sequence[Job]:
        """Return the jobs that are over and COMPLETING, by id."""
        return self._jobs_with(Trait.COMPLETING)

    def _jobs_with(self, trait: Trait) -> Sequence[Job]:
        return [self._seen.jobs[id] for id in sorted(self._ground.jobs.having(trait))]

    @cached_property
    def asks(self) -> Mapping[JobId, Sequence[Ask]]:
        """Return job -> the questions about it that wait for an answer."""
        found: defaultdict[JobId, list[Ask]] = defaultdict(list)
        for ask in self._seen.asks:
            found[ask.job].append(ask)
        return dict(found)

    @cached_property
    def running_on(self) -> Mapping[NodeName, Sequence[JobId]]:
        """Return node -> the jobs that run or are suspended there."""
        return self._ground.once(Overview._find_running, (self._ground.jobs.stamp(Trait.ACTIVE),), self)

    def _find_running(self) -> Mapping[NodeName, Sequence[JobId]]:
        found: defaultdict[NodeName, list[JobId]] = defaultdict(list)
        for job in self.active:
            for node in job.nodes:
                found[node].append(job.id)
        return dict(found)

    @cached_property
    def opted_in(self) -> Mapping[JobId, Sequence[OptedIn]]:
        """Return job -> the reports of nodes that it opted in with `--auto-resume`."""
        return self._ground.once(Overview._find_opted_in, (self._seen.opted_in,), self)

    def _find_opted_in(self) -> Mapping[JobId, Sequence[OptedIn]]:
        found: defaultdict[JobId, list[OptedIn]] = defaultdict(list)
        for word in self._seen.opted_in:
            found[word.job].append(word)
        return dict(found)

    def nodes_of(self, partitions: str) -> frozenset[NodeName]:
        """Return the nodes of these partitions, written as in a job: `a,b`."""
        if partitions not in self._of_partitions:
            parts, nodes = set(partitions.split(",")), self._ground.nodes
            found = [nodes.having(each) for each in nodes.kinds(Within) if parts & each.partitions]
            self._of_partitions[partitions] = frozenset().union(*found)
        return self._of_partitions[partitions]

    @cached_property
    def nodes(self) -> frozenset[NodeName]:
        """Return all nodes that Slurm knows."""
        return frozenset(self._seen.nodes)

    def free_among(self, nodes: frozenset[NodeName]) -> frozenset[NodeName]:
        """Return those of these nodes that are in service and have no job."""
        if nodes not in self._free_among:
            self._free_among[nodes] = (nodes & self._ground.nodes.having(Trait.FREE)).difference(self.leaks)
        return self._free_among[nodes]

    def idle_of(self, partitions: str) -> frozenset[NodeName]:
        """Return the idle nodes of these partitions."""
        if partitions not in self._idle_of:
            self._idle_of[partitions] = self.idle & self.nodes_of(partitions)
        return self._idle_of[partitions]

    @cached_property
    def held_by(self) -> Mapping[NodeName, frozenset[str]]:
        """Return node -> the reservations that have it now."""
        found: defaultdict[NodeName, set[str]] = defaultdict(set)
        for each in self._reservations:
            for node in each.nodes if each.starts <= self._now else ():
                found[node].add(each.name)
        return {node: frozenset(names) for node, names in found.items()}

    @cached_property
    def coming(self) -> Sequence[Reservation]:
        """Return the reservations that have not begun yet."""
        return [each for each in self._reservations if each.starts > self._now]

    @cached_property
    def _reservations(self) -> Sequence[Reservation]:
        return [each for each in self._seen.reservations.values() if self._now < each.ends]

    @cached_property
    def hot(self) -> frozenset[NodeName]:
        """Return the nodes in reservations of hot spares."""
        return frozenset(node for each in self._seen.reservations.values() if each.hot_group for node in each.nodes)

    def deep_jobs(self, name: str) -> Sequence[Job]:
        """Return the jobs of the deep check of that name, by id."""
        return [self._seen.jobs[id] for id in sorted(self._ground.jobs.having(OfDeepCheck(name)))]

    def instances_with(self, token: str) -> Sequence[Instance]:
        """Return the instances that were launched for this token, including those that are gone."""
        return self._instances_by_token.get(token, ())

    @cached_property
    def _instances_by_token(self) -> Mapping[str, Sequence[Instance]]:
        return self._ground.once(_by_token, (self._seen.instances,), self._seen.instances.values())

    def instances_of(self, node: NodeName) -> Sequence[Instance]:
        """Return the instances that the provider lists for a node, by id, including those that are gone."""
        return self._instances_by_node.get(node, ())

    @cached_property
    def reclaimed(self) -> frozenset[NodeName]:
        """Return the nodes whose every instance is being reclaimed by the provider, or was."""
        return self._ground.once(Overview._find_reclaimed, (self._seen.instances,), self)

    def _find_reclaimed(self) -> frozenset[NodeName]:
        return frozenset(node for node, many in self._instances_by_node.items() if all(one.interrupted for one in many))

    @cached_property
    def _instances_by_node(self) -> Mapping[NodeName, Sequence[Instance]]:
        return self._ground.once(_by_node, (self._seen.instances,), self._seen.instances.values())


def _none_remembered() -> dict[str, frozenset[NodeName]]:
    return {}


def _by_token(instances: Iterable[Instance]) -> Mapping[str, Sequence[Instance]]:
    return _grouped(instances, lambda one: one.token)


def _by_node(instances: Iterable[Instance]) -> Mapping[NodeName, Sequence[Instance]]:
    return _grouped(instances, lambda one: one.node)


def _grouped(instances: Iterable[Instance], key: Callable[[Instance], K]) -> dict[K, list[Instance]]:
    found: defaultdict[K, list[Instance]] = defaultdict(list)
    for instance in sorted(instances, key=lambda one: one.id):
        found[key(instance)].append(instance)
    return dict(found)
