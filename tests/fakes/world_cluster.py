"""The cluster in memory by itself: jobs come, run, fail and ask, as time passes."""

import itertools
from dataclasses import dataclass, field, replace

from steward.model.ask import Answer, Ask, AskKind, OptedIn
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.node import Node
from steward.model.resume_mode import ResumeMode
from tests.fakes.job_steps import Watches, Word, told_by
from tests.fakes.machine import Machine
from tests.fakes.machines import Machines
from tests.fakes.sim_slurm import Run, SimSlurm

CLEANS_UP_S = 2.0
"""Until then the nodes of what was put back are nobody's."""


@dataclass(slots=True, kw_only=True)
class Preemption:
    """Slurm's own (PreemptMode=REQUEUE): `firsts` are the jobs for which others are put back."""

    firsts: set[JobId] = field(default_factory=set)

    def make_room(self, slurm: SimSlurm, now: float) -> None:
        """For each that waits and lacks nodes, others go until it has enough."""
        for id in sorted(self.firsts):
            job = slurm.jobs[id]
            busy = {name for other in slurm.jobs.values() if other.is_active for name in other.nodes}
            free = [name for name, node in slurm.nodes.items() if node.is_schedulable and name not in busy]
            lacks = job.node_count - len(free) if job.is_pending else 0
            for other in self._others(slurm):
                if lacks > 0:
                    lacks -= len(other.nodes)
                    slurm.requeue(other.id, other.excluded, now)
                    slurm.runs[other.id].completing_until = slurm.runs[id].begin = now + CLEANS_UP_S

    def _others(self, slurm: SimSlurm) -> list[Job]:
        """The youngest first."""
        return [job for id, job in sorted(slurm.jobs.items(), reverse=True) if job.is_active and id not in self.firsts]


START = 1_700_000_000.0
TICK_S = 0.1
NOTICE_S = 0.2
"""How long after a node's death its step fails."""
ON = ResumeMode.parse("1")
USER = 1000


@dataclass(slots=True)
class Cluster:
    """`now` moves by `advance`; faults are methods of its parts."""

    now: float = START
    tick_s: float = TICK_S
    slurm: SimSlurm = field(default_factory=SimSlurm)
    machines: Machines = field(default_factory=Machines)
    asks: dict[AskId, Ask] = field(default_factory=dict)
    opted: dict[JobId, OptedIn] = field(default_factory=dict)
    watches: Watches = field(default_factory=Watches)
    answers: list[tuple[AskId, Answer]] = field(default_factory=list)
    agents_since: float = START - 1000
    set_by: float = 0.0
    """By how much the head's clock was set since agents last told it the ages of their asks."""
    slurm_hangs_until: float = 0.0
    slurm_writes_fail_until: float = 0.0
    """Until then it can be read, and does nothing that it is told."""
    slurm_away: bool = False
    """Its controller starts nothing and hears of nothing; nodes and jobs go on."""
    provider_hangs_until: float = 0.0
    preemption: Preemption = field(default_factory=Preemption)
    last_good: tuple[dict[NodeName, Node], dict[JobId, Job]] | None = None
    ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    # People and programs

    def submit(
        self,
        nodes: int,
        *,
        mode: ResumeMode | None = ON,
        works_s: float = 60.0,
        spare: bool = False,
        bug_after_s: float | None = None,
        requeue: bool = True,
        step_s: float | None = None,
    ) -> JobId:
        """A batch job; `spare`: it was submitted with --no-kill and one node more than its step needs; `step_s`: it
        tells a step every so many seconds."""
        id = JobId(next(self.ids))
        self.slurm.jobs[id] = Job(
            id=id,
            name="$(reboot)",
            state=JobState.PENDING,
            user_id=USER,
            node_count=nodes,
            partition="main",
            submitted=self.now,
            requeue=requeue,
        )
        self.slurm.runs[id] = Run(works_s=works_s, spare=spare, bug_after_s=bug_after_s, step_s=step_s)
        if mode is not None:
            self.opted[id] = OptedIn(job=id, uid=USER, mode=mode, restart=0, at=self.now)
        return id

    def stand_still(self, id: JobId) -> None:
        """Its tasks wait for each other for ever; its own end does not come any more."""
        run = self.slurm.runs[id]
        if run.step_runs and run.still_since is None:
            run.still_since = self.now

    def restart_head(self) -> None:
        """Views, waiting asks and connections are new; agents come back soon. What they say again is stamped anew."""
        self.agents_since = self.now
        self.opted = {id: replace(one, at=self.now) for id, one in self.opted.items()}
        self.asks = {id: replace(ask, at=min(ask.at + self.set_by, self.now)) for id, ask in self.asks.items()}
        self.set_by = 0.0
        self.watches.forget_head()
        self.machines.forget_views()

    # The clock

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until - 1e-9:
            self.now = min(until, self.now + self.tick_s)
            self._tick()

    def _tick(self) -> None:
        self.machines.update_views(self.known(), self.now)
        self._watch_jobs()
        if not self.slurm_away:
            self._control()
        for id in list(self.slurm.jobs):
            self._work(id)
        self._hang_up()

    def _control(self) -> None:
        """What slurmctld does by itself."""
        slurm, now, machines = self.slurm, self.now, self.machines.firsts()
        slurm.hear({name: self._slurmd_of(machines.get(name)) for name in slurm.nodes}, now)
        self.preemption.make_room(slurm, now)
        used = {name for job in slurm.jobs.values() if job.is_active for name in job.nodes}
        for job in slurm.schedule(now, slurm.nodes.keys() - used):
            if job in self.opted:
                self.opted[job] = replace(self.opted[job], restart=slurm.jobs[job].restarts, at=now)

    def _watch_jobs(self) -> None:
        here: dict[NodeName, list[Word]] = {}
        for id, opted in self.opted.items():
            job = self.slurm.jobs[id]
            if job.is_active and opted.restart == job.restarts:
                for node, one in told_by(job, self.slurm.runs[id], opted, self.now).items():
                    here.setdefault(node, []).append(one)
        self.watches.look(self.machines, here, self.now)

    def known(self) -> set[NodeName]:
        """Names that an agent may speak for."""
        return set(self.slurm.nodes)

    def _slurmd_of(self, machine: Machine | None) -> float | None:
        return machine.started if machine and machine.slurmd_speaks(self.now) else None

    def is_alive(self, name: NodeName) -> bool:
        machine = self.machines.of(name)
        return machine is not None and machine.is_up(self.now)

    def is_cut(self, name: NodeName | None) -> bool:
        """Nobody is told how a step there ended, until it is reached again."""
        machine = self.machines.of(name) if name else None
        return machine is not None and machine.cut

    def _work(self, id: JobId) -> None:
        """A running step ends well, by its own bug, or because a node of it died."""
        job, run = self.slurm.jobs[id], self.slurm.runs[id]
        if not job.is_active or not run.step_runs:
            return
        dead = [name for name in job.nodes if not self.is_alive(name)]
        host_lives = job.batch_host is not None and self.is_alive(job.batch_host)
        ran = self.now - run.step_started
        if not host_lives or self.is_cut(job.batch_host):
            return
        if self.slurm_away and not dead:
            return
        if (dead and ran > NOTICE_S) or (run.bug_after_s is not None and ran >= run.bug_after_s and not run.hangs):
            run.step_runs, run.still_since = False, run.still_since or self.now
            self._fail(job, AskKind.STEP)
        elif ran >= run.works_s and not run.hangs:
            self.slurm.finish(id, JobState.COMPLETED, self.now)

    def _fail(self, job: Job, kind: AskKind) -> None:
        """A shim asks, when the job opted in and its node's agent lives; otherwise the failure stands."""
        host = job.batch_host
        machine = self.machines.of(host) if host else None
        if host is None or job.id not in self.opted or machine is None or not machine.agent_lives(self.now):
            self._failure_stands(job, kind)
            return
        ask = Ask(
            id=AskId(f"{host}-boot-{next(self.ids)}"),
            kind=kind,
            job=job.id,
            step="0",
            node=host,
            uid=USER,
            mode=self.opted[job.id].mode,
            attempt=self.slurm.runs[job.id].attempt,
            restart=job.restarts,
            status=256,
            at=self.now,
        )
        self.asks[ask.id] = ask

    def _failure_stands(self, job: Job, kind: AskKind) -> None:
        """The step's end fails the batch script, whose shim asks in turn; the script's end is the job's."""
        if kind is AskKind.STEP:
            self._fail(job, AskKind.BATCH)
        else:
            self.slurm.finish(job.id, JobState.FAILED, self.now)

    def _hang_up(self) -> None:
        """A shim whose job is not this run any more, or whose machine is gone, waits no longer (a frozen one does)."""
        for ask in list(self.asks.values()):
            job = self.slurm.jobs[ask.job]
            if not job.is_active or job.restarts != ask.restart or self.machines.of(ask.node) is None:
                del self.asks[ask.id]
