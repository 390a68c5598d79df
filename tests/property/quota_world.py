"""A Slurm in small for quotas: it starts jobs within the limits of their QOS, preempts as it was told, and cleans up.

The head's whole plan is made in it, with its memory, turn after turn; its writes take effect one by one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from steward.model.accounting import Accounting, Capabilities
from steward.model.action import CancelJob, RequeueJob, SetQos, SetTeam
from steward.model.agent_action import Action
from steward.model.desired import QuotaPolicy
from steward.model.ids import JobId
from steward.model.job import Job, JobState, parse_tres
from steward.model.quota import ComputeQuota
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, written
from tests.builders.quota_site import MINE, a_site, runs, settled, waits

GPU = "gres/gpu"
_ROUND_S = 1.0
_NODE_GPUS = 4


@dataclass(slots=True, kw_only=True)
class SlurmWorld:
    """`picture` is what the head sees and remembers. Nodes matter as a sum only: no job is held up by fragments."""

    picture: Picture
    can: Capabilities = LISTS
    next_id: int = 1
    asked: dict[JobId, float] = field(default_factory=dict)
    """When Slurm began to preempt a job."""
    evicted: dict[JobId, list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, quotas: Iterable[ComputeQuota], *, machines: int, can: Capabilities = LISTS) -> "SlurmWorld":
        picture = a_site(can, *quotas, machines=machines)
        rules = QuotaPolicy(grace_s=3.0, patience_s=4.0)
        return cls(picture=settled(replace(picture, want=replace(picture.want, quota=rules))), can=can)

    @property
    def jobs(self) -> Mapping[JobId, Job]:
        return self.picture.seen.jobs

    @property
    def accounting(self) -> Accounting:
        assert self.picture.seen.accounting is not None
        return self.picture.seen.accounting

    @property
    def total(self) -> int:
        return _NODE_GPUS * sum(1 for node in self.picture.seen.nodes.values() if not node.is_drain)

    @property
    def free(self) -> int:
        """What no job has on nodes that take jobs."""
        nodes = self.picture.seen.nodes
        return self.total - sum(size(job) for job in self.running() if not any(nodes[n].is_drain for n in job.nodes))

    def submit(self, team: str, gpus: int) -> JobId:
        id = JobId(self.next_id)
        self.next_id += 1
        self.picture = waits(self.picture, id, team, gpus)
        return id

    def end(self, id: JobId) -> None:
        fields = {"state": JobState.COMPLETED, "nodes": frozenset(), "ended": self.picture.now}
        self.picture = self.picture.change_job(id, **fields)

    def running(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.is_active]

    def waiting(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.is_pending]

    def turn(self, *, dies_after: int | None = None) -> list[Action]:
        """One plan; all of its actions, or as many as a head gets done that dies after its commit. Then Slurm's own
        round."""
        plan = self.picture.plan()
        mine: list[Action] = [action for action in plan.actions if isinstance(action, (*MINE, CancelJob))]
        self.picture = replace(self.picture, memory=plan.memory)
        for action in mine[:dies_after]:
            self._do(action)
        self._slurm()
        self.picture = self.picture.after(_ROUND_S)
        return mine

    def _do(self, action: Action) -> None:
        match action:
            case RequeueJob():
                if self.jobs[action.job].restarts == action.restart:
                    self._requeue(action.job)
            case _:
                self.picture = written(self.picture, [action])

    def _requeue(self, id: JobId) -> None:
        self.evicted.setdefault(id, []).append(self.picture.now)
        self.asked.pop(id, None)
        job = self.jobs[id]
        qos = f"stw-{job.account}-g,stw-{job.account}-b" if self.can.qos_lists else job.qos
        self.picture = self.picture.requeued(id, reason="None", qos=qos)

    def _slurm(self) -> None:
        """Graces end, then those who may start do: the highest QOS first."""
        for id, since in list(self.asked.items()):
            job = self.jobs[id]
            if not job.is_active or self._is_spared(job):
                del self.asked[id]
            elif self.picture.now >= since + self.accounting.qos[job.qos].grace_s:
                self._requeue(id)
        free = [job for job in self.waiting() if (job.eligible or 0.0) <= self.picture.now and not job.is_held]
        for job in sorted(free, key=lambda job: (self._priority(job), job.id)):
            self._try(job)

    def _priority(self, job: Job) -> int:
        known = (self.accounting.qos[name].priority for name in job.qos.split(",") if name in self.accounting.qos)
        return -max(known, default=0)

    def _try(self, job: Job) -> None:
        gpus = size(job)
        for name in sorted(job.qos.split(","), reverse=True):
            qos = self.accounting.qos.get(name)
            if qos is None or self.use(name) + gpus > qos.limits.get(GPU, 10**6):
                continue
            team = self.accounting.of_account(job.account)
            if team is not None and self.use_of(job.account) + gpus > team.limits.get(GPU, 10**6):
                continue
            if gpus <= self.free:
                self._start(job, name)
                return
            if self.can.preempts:
                self._preempt(gpus, qos.preempts)

    def _start(self, job: Job, qos: str) -> None:
        fields: dict[str, Any] = {"qos": qos, "started": self.picture.now, "restarts": job.restarts}
        fields |= {"submitted": job.submitted}
        on = min((f"n{i + 1}" for i in range(len(self.picture.seen.nodes))), key=self._load)
        self.picture = runs(self.picture, job.id, job.account, size(job), on=on, priority=job.priority, **fields)

    def _load(self, node: str) -> tuple[bool, int]:
        taken = sum(size(job) for job in self.running() if node in job.nodes)
        return self.picture.seen.nodes[node].is_drain, taken  # type: ignore[index]

    def _preempt(self, gpus: int, preempts: frozenset[str]) -> None:
        """The lowest QOS first, then the newest, as many as it takes."""
        short = gpus - self.free
        short -= sum(size(self.jobs[id]) for id in self.asked)
        victims = [j for j in self.running() if j.qos in preempts and j.id not in self.asked and not self._is_spared(j)]
        victims.sort(key=lambda j: (self.accounting.qos[j.qos].priority, -(j.started or 0.0)))
        sums = list(accumulate(map(size, victims)))
        if short > 0 and sums and sums[-1] >= short:
            count = next(at for at, each in enumerate(sums) if each >= short) + 1
            self.asked |= {victim.id: self.picture.now for victim in victims[:count]}

    def _is_spared(self, job: Job) -> bool:
        return self.can.marks and job.priority > self.can.exempt_priority

    def use(self, qos: str) -> int:
        return sum(size(job) for job in self.running() if job.qos == qos)

    def use_of(self, team: str) -> int:
        return sum(size(job) for job in self.running() if job.account == team)

    def rest(self, turns: int = 200) -> int:
        """Turn after turn until nothing is written or starts; how many it took."""
        quiet = 0
        for count in range(turns):
            before = self._states()
            actions = self.turn()
            quiet = 0 if actions or self.asked or before != self._states() else quiet + 1
            if quiet > 8:
                return count
        raise AssertionError(f"it does not come to rest: {actions}")

    def _states(self) -> Mapping[JobId, tuple[JobState, str]]:
        return {id: (job.state, job.qos) for id, job in self.jobs.items()}


def size(job: Job) -> int:
    return parse_tres(job.allocated or job.requested).get(GPU, 0)


def limits_between_writes(world: SlurmWorld, actions: Iterable[Action]) -> Iterable[Mapping[str, int]]:
    """What each QOS is limited to before the first write and after each."""
    picture = world.picture
    for action in (None, *(each for each in actions if isinstance(each, SetQos | SetTeam))):
        picture = written(picture, [action]) if action is not None else picture
        assert picture.seen.accounting is not None
        yield {name: qos.limits.get(GPU, 0) for name, qos in picture.seen.accounting.qos.items()}
