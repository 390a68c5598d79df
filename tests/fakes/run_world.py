"""The cluster in memory with one elastic run: a coordinator on its base's batch host, and replica jobs."""

from dataclasses import dataclass, field, replace
from math import inf

from steward.model.action import CancelReplica
from steward.model.agent_action import Action, ResizeRun, SubmitReplica
from steward.model.elastic import Activity, ElasticWord, replica_comment
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.observed import AgentView
from tests.fakes.world import World
from tests.fakes.world_cluster import USER

SAVES_S, FORMS_S, LOST_S, BEGINS_S = 1.5, 1.5, 1.0, 10.0
BASE = JobId(1)


@dataclass(slots=True)
class Coordinator:
    """What it knows; a new one has its members from a file."""

    restart: int
    state: Activity = Activity.WAITING
    generation: int = 0
    members: frozenset[NodeName] = frozenset()
    to: frozenset[NodeName] = frozenset()
    to_generation: int = 0
    due: float = inf
    """When the ranks have saved, or make their first step."""
    away_until: float = 0.0


@dataclass(slots=True)
class RunWorld(World):
    """`submit` the base first. `going` are replica jobs that Slurm preempts: each ends when the run goes on without."""

    spec: str = "4"
    one: Coordinator | None = None
    going: set[JobId] = field(default_factory=set)

    @staticmethod
    def run_of(nodes: int, spec: str) -> "RunWorld":
        made = World.of(nodes)
        return RunWorld(machines=made.machines, now=made.now, slurm=made.slurm, spec=spec)

    def replicas(self) -> list[Job]:
        """Those that are not over."""
        return [job for job in self.slurm.jobs.values() if job.comment and not job.is_over]

    def kill_coordinator(self) -> None:
        """The agent starts it anew; what was asked of it is forgotten, the generation is not."""
        if (one := self.one) is not None:
            one.away_until, one.due, one.to_generation = self.now + BEGINS_S, inf, one.generation
            one.state = Activity.RUNNING if one.generation else Activity.WAITING

    # The ports

    def agents(self) -> dict[NodeName, AgentView]:
        views, base = World.agents(self), self.slurm.jobs.get(BASE)
        host = base.batch_host if base is not None and base.is_active else None
        if base is not None and self.one is not None and host is not None and host in views:
            views[host] = replace(views[host], elastic=(self._word(base, self.one),))
        return views

    def _word(self, base: Job, one: Coordinator) -> ElasticWord:
        return ElasticWord(
            steerable=True,
            run=BASE,
            restart=one.restart,
            uid=USER,
            node=base.batch_host or NodeName(""),
            spec=self.spec,
            state=one.state,
            generation=one.generation,
            members=one.members,
            joined=frozenset(self._here(base)),
            leaving=frozenset(self._leaving()),
            at=self.now,
        )

    def _leaving(self) -> set[NodeName]:
        return {node for job in self.replicas() if job.id in self.going for node in job.nodes}

    def _here(self, base: Job) -> set[NodeName]:
        jobs = [base, *(job for job in self.replicas() if job.is_active)]
        return {node for job in jobs for node in job.nodes if self.is_alive(node)}

    def apply(self, action: Action) -> str:
        match action:
            case ResizeRun() | SubmitReplica():
                machine = self.machines.of(action.node)
                if machine is None or not machine.agent_speaks(self.now):
                    return "its agent is not connected"
                self._resize(action) if isinstance(action, ResizeRun) else self._submit(action)
            case CancelReplica():
                if self.now < self.slurm_hangs_until:
                    return "retry: slurmctld does not answer"
                if self.slurm.jobs[action.job].is_over:
                    return "it is over"
                self.slurm.cancel(action.job, self.now)
            case _:
                return World.apply(self, action)
        return ""

    def _resize(self, order: ResizeRun) -> None:
        one = self.one
        if one is None or self.now < one.away_until or order.generation <= max(one.generation, one.to_generation):
            return
        one.state, one.to, one.to_generation = Activity.SAVING, order.members, order.generation
        one.due = self.now + (SAVES_S if order.grace_s else 0.0)

    def _submit(self, order: SubmitReplica) -> None:
        """Nothing where there is a job with that comment."""
        comment = replica_comment(order.run, order.token)
        if any(job.comment == comment for job in self.slurm.jobs.values()):
            return
        id = self.submit(order.nodes, mode=None, works_s=inf, requeue=False)
        self.slurm.jobs[id] = replace(self.slurm.jobs[id], comment=comment, excluded=order.exclude)

    # The clock

    def _tick(self) -> None:
        World._tick(self)
        base = self.slurm.jobs.get(BASE)
        if base is None or not base.is_active or not self._lives_on(base):
            self.one = None
            return
        if self.one is None or self.one.restart != base.restarts:
            self.one = Coordinator(restart=base.restarts, to=base.nodes, to_generation=1, due=self.now + SAVES_S)
        if self.now >= self.one.away_until:
            self._coordinate(base, self.one)

    def _lives_on(self, base: Job) -> bool:
        return base.batch_host is not None and self.is_alive(base.batch_host)

    def _coordinate(self, base: Job, one: Coordinator) -> None:
        gone = one.members - self._here(base)
        going = self._leaving() & one.members
        is_quiet = one.state is Activity.RUNNING
        if is_quiet and (gone or going) and base.nodes <= one.members - gone:
            one.state, one.to, one.to_generation = Activity.SAVING, one.members - gone - going, one.generation + 1
            one.due = self.now + (LOST_S if gone else SAVES_S)
        elif self.now >= one.due and one.state is Activity.FORMING:
            one.state, one.due = Activity.RUNNING, inf
        elif self.now >= one.due:
            one.generation, one.members = one.to_generation, frozenset(one.to & self._here(base))
            one.state, one.due = Activity.FORMING, self.now + FORMS_S
            self._let_go(one)

    def _let_go(self, one: Coordinator) -> None:
        """The launcher of a replica that was told to go is told to leave, and with it its script is done."""
        for job in self.replicas():
            if job.id in self.going and not job.nodes & one.members:
                self.slurm.finish(job.id, JobState.COMPLETED, self.now)
