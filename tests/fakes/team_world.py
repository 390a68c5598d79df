"""The cluster in memory with teams: a Slurm that holds jobs to the limits of their QOS, and preempts where it can.

Jobs take whole nodes of four GPUs each. Accounts and QOS are those of the fake accounting.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from steward.model.accounting import Capabilities
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, parse_tres
from steward.model.resume_mode import ResumeMode
from tests.builders.quota import G6, WEAK, tres
from tests.fakes.accounting import FakeAccounting
from tests.fakes.sim_slurm import SimSlurm
from tests.fakes.world import World

GPU = "gres/gpu"


@dataclass(slots=True)
class TeamSlurm(SimSlurm):
    """`accounting` knows the limits. `asked`: when it began to preempt a job."""

    now: float = 0.0
    accounting: FakeAccounting = field(init=False)
    asked: dict[JobId, float] = field(default_factory=dict)
    lists: dict[JobId, str] = field(default_factory=dict)
    """The QOS that a job has when it waits; a running one shows the one that it runs in."""
    found: dict[JobId, str] = field(default_factory=dict)
    """In which QOS of its list a job may start, or did in this round."""

    def __post_init__(self) -> None:
        self.accounting = FakeAccounting(cluster=self)

    @property
    def job_table(self) -> dict[JobId, Job]:
        return self.jobs

    def shown(self, now: float) -> dict[JobId, Job]:
        """A priority that was set directly stays."""
        shown = SimSlurm.shown(self, now)
        own = {id: self.jobs[id].priority for id in shown}
        return {id: job if job.priority >= own[id] else replace(job, priority=own[id]) for id, job in shown.items()}

    def schedule(self, now: float, free: Iterable[NodeName]) -> list[JobId]:
        self.now, free = now, set(free)
        self._end_graces()
        began = SimSlurm.schedule(self, now, free)
        for id in began:
            job = self.jobs[id]
            self.lists[id] = job.qos
            self.jobs[id] = replace(job, allocated=job.requested, qos=self.found[id], eligible=None)
        self.found.clear()
        left = len([name for name in free if self.nodes[name].is_schedulable])
        self._preempt(left - sum(len(self.jobs[id].nodes) for id in began))
        return began

    def _takes(self, name: NodeName, job: Job) -> bool:
        """A QOS of its list has room, too."""
        if not SimSlurm._takes(self, name, job) or (qos := self._open(job)) is None:
            return False
        self.found[job.id] = qos
        return True

    def _open(self, job: Job) -> str | None:
        gpus, known = _size(job), self.accounting
        team = known.teams.get(job.account)
        most = team.limits.get(GPU) if team is not None else None
        if most is not None and self._use(account=job.account) + gpus > most:
            return None
        for name in job.qos.split(","):
            limit = known.qos[name].limits.get(GPU) if name in known.qos else None
            if limit is None or self._use(qos=name) + gpus <= limit:
                return name
        return None

    def _use(self, *, qos: str = "", account: str = "") -> int:
        active = [job for job in self.jobs.values() if job.is_active]
        if account:
            return sum(_size(job) for job in active if job.account == account)
        return sum(_size(job) for job in active if self.found.get(job.id, job.qos) == qos)

    def _preempt(self, free: int) -> None:
        """For each job that only nodes are lacking for: the lowest QOS first, then the newest."""
        if not self.accounting.can.preempts:
            return
        free += sum(len(self.jobs[id].nodes) for id in self.asked)
        for job in [job for job in self.jobs.values() if job.is_pending and self.now >= self.runs[job.id].begin]:
            name = self._open(job)
            if name is None or name not in self.accounting.qos:
                continue
            for victim in self._victims(self.accounting.qos[name].preempts):
                if free < job.node_count:
                    self.asked[victim.id] = self.now
                    free += len(victim.nodes)
            free -= job.node_count

    def _victims(self, qos: frozenset[str]) -> list[Job]:
        known = self.accounting
        found = [j for j in self.jobs.values() if j.is_active and j.qos in qos and j.id not in self.asked]
        spared = known.can.exempt_priority if known.can.marks else float("inf")
        found = [job for job in found if job.priority <= spared]
        return sorted(found, key=lambda job: (known.qos[job.qos].priority, -job.id))

    def _end_graces(self) -> None:
        for id, since in list(self.asked.items()):
            job = self.jobs[id]
            if not job.is_active:
                del self.asked[id]
            elif self.now >= since + self.accounting.qos[job.qos].grace_s:
                del self.asked[id]
                self.requeue(id, job.excluded, self.now)

    def nudge(self, id: JobId, exclude: frozenset[NodeName], now: float, delay_s: float = 0.0) -> str:
        error = SimSlurm.nudge(self, id, exclude, now, delay_s)
        if not error:
            self.jobs[id] = replace(self.jobs[id], eligible=self.runs[id].begin)
        return error

    def _back_to_queue(self, job: Job, now: float) -> None:
        """Slurm gives it the time of that as its time of submission."""
        SimSlurm._back_to_queue(self, job, now)
        qos, eligible = self.lists.pop(job.id, job.qos), self.runs[job.id].begin
        self.jobs[job.id] = replace(self.jobs[job.id], qos=qos, allocated="", submitted=now, eligible=eligible)


@dataclass(slots=True)
class TeamWorld(World):
    """`submit_for` is `sbatch -A team`."""

    slurm: TeamSlurm = field(default_factory=TeamSlurm)

    @staticmethod
    def teams_of(nodes: int, *teams: str, can: Capabilities = WEAK) -> "TeamWorld":
        world = TeamWorld()
        made = World.of(nodes)
        world.machines, world.now = made.machines, made.now
        shape = {"gres": G6.gres, "cpus": G6.cpus, "memory_mb": G6.memory_mb, "features": frozenset({G6.name})}
        world.slurm.nodes = {name: replace(node, **shape) for name, node in made.slurm.nodes.items()}  # type: ignore[arg-type]
        world.slurm.accounting.can = can
        for team in teams:
            world.slurm.accounting.add_account(team)
        return world

    @property
    def accounting(self) -> FakeAccounting:
        return self.slurm.accounting

    def submit_for(self, team: str, nodes: int, *, works_s: float, mode: ResumeMode | None = None) -> JobId:
        id = self.submit(nodes, mode=mode, works_s=works_s)
        qos = self.accounting.teams[team].default_qos or "normal"
        asked = tres(4 * nodes, nodes, nodes)
        self.slurm.jobs[id] = replace(self.slurm.jobs[id], account=team, qos=qos, requested=asked, priority=0)
        return id


def _size(job: Job) -> int:
    return parse_tres(job.requested).get(GPU, 0)
