"""The cluster in memory with what deep checks need: reservations, their jobs, and runners that tell."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from steward.model.action import ReleaseNodes, ReserveNodes, SubmitDeep
from steward.model.agent_action import Action
from steward.model.deep import DEEP_PREFIX, DeepReport, Measure
from steward.model.health import Outcome
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.observed import AgentView
from steward.model.reservation import Reservation
from tests.fakes.sim_slurm import Run, SimSlurm
from tests.fakes.world import World

RUNS_S = 5.0


@dataclass(slots=True)
class DeepSlurm(SimSlurm):
    """Reserved nodes take the job of their reservation only, and that in all states of partitions."""

    reservations: dict[str, Reservation] = field(default_factory=dict)
    deep_nodes: dict[JobId, frozenset[NodeName]] = field(default_factory=dict)

    def schedule(self, now: float, free: Iterable[NodeName]) -> list[JobId]:
        kept = {node for each in self.reservations.values() for node in each.nodes}
        usable = set(free)
        for id, nodes in self.deep_nodes.items():
            job = self.jobs[id]
            fits = all(node in usable and self.nodes[node].is_schedulable for node in nodes)
            if job.is_pending and job.partition in self.reservations and fits:
                self.runs[id].started = self.runs[id].step_started = now
                self.runs[id].step_runs = True
                self.jobs[id] = replace(job, state=JobState.RUNNING, nodes=nodes, batch_host=min(nodes), started=now)
        return SimSlurm.schedule(self, now, usable - kept)


@dataclass(slots=True)
class DeepWorld(World):
    """`bad` are nodes whose memory does not keep its content; `submitted` counts the jobs of each reservation."""

    slurm: DeepSlurm = field(default_factory=DeepSlurm)
    bad: set[NodeName] = field(default_factory=set)
    submitted: dict[str, int] = field(default_factory=dict)
    mute_runner: bool = False
    """Runners start and tell nothing."""
    lose_jobs: int = 0
    """So many jobs of deep checks end as soon as they run, as when slurmctld forgets their partition."""

    @staticmethod
    def deep_of(count: int, spares: int = 0) -> "DeepWorld":
        world = DeepWorld()
        made = World.of(count, spares)
        world.machines, world.now = made.machines, made.now
        world.slurm.nodes = made.slurm.nodes
        return world

    def _tick(self) -> None:
        World._tick(self)
        for id in self.slurm.deep_nodes:
            if self.lose_jobs and self.slurm.jobs[id].is_active:
                self.lose_jobs -= 1
                self.slurm.cancel(id, self.now)

    def agents(self) -> dict[NodeName, AgentView]:
        return {name: replace(view, deep=self._told(name)) for name, view in World.agents(self).items()}

    def reservations(self) -> dict[str, Reservation]:
        return {**World.reservations(self), **self.slurm.reservations}

    def _told(self, node: NodeName) -> tuple[DeepReport, ...]:
        if self.mute_runner:
            return ()
        ran = [job for id, job in self.slurm.jobs.items() if node in self.slurm.deep_nodes.get(id, ()) and job.started]
        mine = [job for job in ran if job.state is not JobState.CANCELLED]
        return tuple(self._report(job, node) for job in mine)

    def _report(self, job: Job, node: NodeName) -> DeepReport:
        is_done = job.state is JobState.COMPLETED
        outcome = Outcome.FAILED if node in self.bad else Outcome.PASSED
        one = Measure(check="memory.pattern", node=node, outcome=outcome, value=1.0, unit="GiB", text="a bit flipped")
        others = sorted(self.slurm.deep_nodes[job.id] - {node})
        pairs = tuple(
            Measure(check="tcp.bandwidth", node=node, outcome=Outcome.PASSED, value=9.0, unit="Gb/s", partner=other)
            for other in others
        )
        measures = (one, *pairs) if is_done else ()
        return DeepReport(run=job.partition.removeprefix(DEEP_PREFIX), node=node, measures=measures, is_done=is_done)

    def apply(self, action: Action) -> str:
        if self.is_deaf_to(action):
            return "slurmctld does not answer"
        match action:
            case ReserveNodes():
                return self._reserve(action)
            case SubmitDeep():
                return self._submit(action)
            case ReleaseNodes():
                return self._release(action.name)
        return World.apply(self, action)

    def _reserve(self, action: ReserveNodes) -> str:
        there = self.slurm.reservations.get(action.name)
        if there is not None:
            return "" if there.nodes == action.nodes else "it is there for other nodes"
        ends = self.now + action.seconds
        made = Reservation(name=action.name, nodes=action.nodes, starts=self.now, ends=ends)
        self.slurm.reservations[action.name] = made
        return ""

    def _submit(self, action: SubmitDeep) -> str:
        if action.name not in self.slurm.reservations:
            return "there is no such reservation"
        if any(job.deep_check == action.name and not job.is_over for job in self.slurm.jobs.values()):
            return ""
        id = JobId(next(self.ids))
        self.slurm.jobs[id] = Job(
            id=id,
            name=action.name,
            state=JobState.PENDING,
            user_id=0,
            node_count=len(action.nodes),
            partition=action.name,
            reservation=action.name,
            submitted=self.now,
            requeue=False,
        )
        self.slurm.runs[id] = Run(works_s=RUNS_S)
        self.slurm.deep_nodes[id] = action.nodes
        self.submitted[action.name] = self.submitted.get(action.name, 0) + 1
        return ""

    def _release(self, name: str) -> str:
        for job in list(self.slurm.jobs.values()):
            if job.partition == name:
                self.slurm.cancel(job.id, self.now)
        self.slurm.reservations.pop(name, None)
        return ""
