"""A run in the current picture: its jobs, its coordinator's last report, its nodes, and which of them are lost."""

from dataclasses import dataclass
from functools import cached_property

from steward.model.elastic import Activity, ElasticRun, ElasticWord, Replica
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.policy.draft import Draft
from steward.policy.facts.blame import culprits, users_own
from steward.policy.facts.run_rules import RunRules
from steward.policy.facts.verdict import Standing, slurm_misses, standing

_GONE = (Standing.LOST,)


@dataclass(kw_only=True)
class RunScene:
    """A run in the current picture.

    `jobs` are its replica jobs that Slurm shows, by token; `rivals` is how many of its nodes other jobs need.
    """

    run: ElasticRun
    rules: RunRules
    base: Job | None
    jobs: dict[str, Job]
    word: ElasticWord | None
    rivals: int
    draft: Draft

    @property
    def is_over(self) -> bool:
        """Return whether the base job has ended and is cleaned up, or is not in Slurm any more."""
        if self.base is None:
            return self.draft.seen.job_at(self.run.id) > self.run.begun
        return not (self.base.is_active or self.base.is_pending or self.base.is_completing) or self._is_reused

    @property
    def _is_reused(self) -> bool:
        """Return whether Slurm gave the base job's number to another user's job."""
        return self.base is not None and self.base.user_id != self.run.uid

    @property
    def is_queued(self) -> bool:
        """Return whether the base job was requeued."""
        return self.base is not None and (self.base.is_pending or self.base.restarts > self.run.restart)

    @property
    def is_ending(self) -> bool:
        """Return whether the base job has ended but its nodes still clean up, so that it may yet be requeued."""
        return self.base is not None and self.base.is_completing and not self.base.is_active

    @cached_property
    def base_nodes(self) -> frozenset[NodeName]:
        """Return the nodes of the running base job; empty if it does not run."""
        return self.base.nodes if self.base is not None and self.base.is_active else frozenset()

    @cached_property
    def avoided(self) -> frozenset[NodeName]:
        """Return the nodes that the run's user excludes, and those blamed for failures of the base job."""
        # not the whole exclude list of the base job: a node that Steward excluded may be repaired by now
        if self.base is None:
            return frozenset()
        memory = self.draft.jobs.get(self.base.id)
        if memory is None:
            return self.base.excluded
        return users_own(self.base, memory) | culprits(memory, self.draft)

    @cached_property
    def staying(self) -> dict[str, frozenset[NodeName]]:
        """Return the nodes, by token, of the replica jobs that run and stay."""
        return {
            one.token: self.jobs[one.token].nodes
            for one in self.run.replicas
            if one.token in self.jobs and one.ending is None and self._stays(self.jobs[one.token])
        }

    def _stays(self, job: Job) -> bool:
        going = self.word.leaving if self.word is not None else frozenset()
        evicted = self.draft.quota_jobs.get(job.id)
        yields = evicted is not None and evicted.yielding is not None
        return job.is_active and not job.is_completing and not (job.nodes & going) and not yields

    @cached_property
    def lost(self) -> frozenset[NodeName]:
        """Return the members of the running generation that are lost."""
        return frozenset(node for node in self.members if self.is_lost(node))

    @property
    def members(self) -> frozenset[NodeName]:
        """Return the members of the running generation."""
        return self.word.members if self.word is not None else self.run.members

    def is_lost(self, name: NodeName) -> bool:
        """Return whether the node is lost: no job can use it."""
        node, view = self.draft.seen.nodes.get(name), self.draft.seen.agents.get(name)
        if node is None or node.is_down:
            return True
        return standing(node, self.draft).standing in _GONE or slurm_misses(node, view, self.draft)

    def is_sound(self, name: NodeName) -> bool:
        """Return whether the node is in service, not lost, and without an open repair."""
        node = self.draft.seen.nodes.get(name)
        if node is None or self.is_lost(name) or node.is_drain:
            return False
        return self.draft.cases.open_of(name) is None

    @cached_property
    def here(self) -> frozenset[NodeName]:
        """Return the nodes that may be members: the base job's, and those of replicas that stay."""
        return self.base_nodes.union(*self.staying.values())

    @cached_property
    def nodes(self) -> frozenset[NodeName]:
        """Return the nodes of all jobs of the run, including jobs that are about to end."""
        return self.base_nodes.union(*(job.nodes for job in self.jobs.values() if not job.is_over))

    def taken_before(self, token: str) -> frozenset[NodeName]:
        """Return the nodes of the base job and of older replica jobs than this one."""
        mine = self.jobs[token]
        first = (job.nodes for job in self.jobs.values() if not job.is_over and job.id < mine.id)
        return self.base_nodes.union(*first)

    @cached_property
    def ready(self) -> frozenset[NodeName]:
        """Return the nodes whose launchers wait to join, or take part already."""
        joined = (self.word.joined | self.word.members) if self.word is not None else frozenset()
        newly = frozenset(node for node in joined - self.members if self.is_sound(node))
        return (newly | (joined & self.members)) & self.here - self.lost

    @property
    def most(self) -> int:
        """Return the largest size allowed now: the size requested by a person, less the nodes that other jobs need."""
        sizes = self.rules.spec.sizes
        wished = sizes[-1] if self.run.wish is None else self.rules.spec.fitting(self.run.wish)
        beyond = max(len(self.here) - len(self.base_nodes) - self.rivals, 0) if self.rivals else sizes[-1]
        return max(min(wished, self.rules.spec.fitting(self.run.base + beyond)), self.run.base)

    def best(self) -> frozenset[NodeName]:
        """Return the members for the largest possible size, current ones first; empty if even the base is not ready."""
        size = min(self.rules.spec.fitting(len(self.ready)), self.most)
        if not self.base_nodes <= self.ready or size < self.run.base:
            return frozenset()
        others = self.ready - self.base_nodes
        order = sorted(others, key=lambda node: (node not in self.members, self._started(node), node))
        return self.base_nodes | frozenset(order[: size - len(self.base_nodes)])

    def _started(self, node: NodeName) -> float:
        """Return when the node's job started; `best` keeps the nodes of older jobs first."""
        return min((job.started or 0.0 for job in self.jobs.values() if node in job.nodes), default=0.0)

    @property
    def is_running(self) -> bool:
        """Return whether the run makes steps."""
        return self.word is not None and self.word.state is Activity.RUNNING

    @property
    def is_saving(self) -> bool:
        """Return whether the coordinator has asked the ranks to save."""
        return self.word is not None and self.word.state is Activity.SAVING

    @property
    def saves(self) -> bool:
        """Return whether the ranks have begun to save for a change of size."""
        return self.word is not None and self.word.begins_to_save

    @property
    def is_pressed(self) -> bool:
        """Return whether other jobs or a team's quota need nodes that the run has, or is about to have."""
        is_told = self.word is not None and bool(self.word.leaving)
        memories = (self.draft.quota_jobs.get(job.id) for job in self.jobs.values() if not job.is_over)
        return is_told or self.rivals > 0 or any(one is not None and one.yielding is not None for one in memories)

    def replica_of(self, job: JobId) -> Replica | None:
        """Return the run's replica with this job; None if there is none."""
        return next((one for one in self.run.replicas if one.job == job), None)
