"""A whole cluster in memory: Slurm, provider, agents and shims, on a clock that only moves when it is told to."""

import itertools
from dataclasses import dataclass, field, replace

from steward.model.action import (
    Action,
    AllowRequeue,
    AnswerAsk,
    CheckNow,
    CommentJob,
    DownNode,
    DrainNode,
    ExtendLimit,
    FreeNodes,
    KeepNodes,
    LaunchInstance,
    LetGo,
    MendNode,
    NudgeJob,
    ProbeNode,
    RebootInstance,
    RequeueJob,
    ReturnNode,
    SetFeature,
    SetNice,
    TerminateInstance,
)
from steward.model.ask import Answer, Ask, AskKind, OptedIn
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase
from steward.model.observed import Freshness, Observed
from steward.model.resume_mode import ResumeMode
from tests.fakes.machines import Machine, Machines
from tests.fakes.sim_slurm import Run, SimSlurm

START = 1_700_000_000.0
TICK_S = 0.1
NOTICE_S = 0.2
"""How long after a node's death its step fails."""
ON = ResumeMode.parse("1")
USER = 1000

IN_SLURM = (
    *(DrainNode, DownNode, ReturnNode, RequeueJob, NudgeJob, CommentJob),
    *(ExtendLimit, SetNice, KeepNodes, FreeNodes),
)
"""What a slurmctld that does not answer does not do."""


@dataclass(slots=True)
class World:
    """`now` moves by `advance`; faults are methods; `seen` is the picture; `apply` is what the ports would do."""

    now: float = START
    tick_s: float = TICK_S
    slurm: SimSlurm = field(default_factory=SimSlurm)
    machines: Machines = field(default_factory=Machines)
    asks: dict[AskId, Ask] = field(default_factory=dict)
    opted: dict[JobId, OptedIn] = field(default_factory=dict)
    answers: list[tuple[AskId, Answer]] = field(default_factory=list)
    agents_since: float = START - 1000
    slurm_hangs_until: float = 0.0
    slurm_away: bool = False
    """Its controller starts nothing and hears of nothing; nodes and jobs go on."""
    provider_hangs_until: float = 0.0
    last_good: tuple[dict[NodeName, Node], dict[JobId, Job]] | None = None
    ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @staticmethod
    def of(count: int, spares: int = 0) -> "World":
        """Nodes n1..; with spares s1.. the machines of all are fixed."""
        world = World()
        world.machines.fixed = spares > 0
        names = [f"n{i}" for i in range(1, count + 1)] + [f"s{i}" for i in range(1, spares + 1)]
        for name in map(NodeName, names):
            machine = world.machines.add(name, "", world.now - 100, boot_s=0.0)
            node = Node(name=name, base=NodeBase.IDLE, partitions=frozenset({"main"}), slurmd_started=machine.ready_at)
            world.slurm.nodes[name] = node
        world.machines.launched.clear()
        world.advance(1.0)
        return world

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
    ) -> JobId:
        """A batch job; `spare`: it was submitted with --no-kill and one node more than its step needs."""
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
        self.slurm.runs[id] = Run(works_s=works_s, spare=spare, bug_after_s=bug_after_s)
        if mode is not None:
            self.opted[id] = OptedIn(job=id, uid=USER, mode=mode, restart=0, at=self.now)
        return id

    def restart_head(self) -> None:
        """Views, waiting asks and connections are new; agents come back soon."""
        self.agents_since = self.now
        self.machines.forget_views()

    # The clock

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until - 1e-9:
            self.now = min(until, self.now + self.tick_s)
            self._tick()

    def _tick(self) -> None:
        self.machines.update_views(self.known(), self.now)
        if not self.slurm_away:
            self._control()
        for id in list(self.slurm.jobs):
            self._work(id)
        self._hang_up()

    def _control(self) -> None:
        """What slurmctld does by itself."""
        slurm, now, machines = self.slurm, self.now, self.machines.firsts()
        slurm.hear({name: self._slurmd_of(machines.get(name)) for name in slurm.nodes}, now)
        used = {name for job in slurm.jobs.values() if job.is_active for name in job.nodes}
        for job in slurm.schedule(now, slurm.nodes.keys() - used):
            if job in self.opted:
                self.opted[job] = replace(self.opted[job], restart=slurm.jobs[job].restarts, at=now)

    def known(self) -> set[NodeName]:
        """Names that an agent may speak for."""
        return set(self.slurm.nodes)

    def _slurmd_of(self, machine: Machine | None) -> float | None:
        return machine.started if machine and machine.slurmd_speaks(self.now) else None

    def is_alive(self, name: NodeName) -> bool:
        machine = self.machines.of(name)
        return machine is not None and machine.is_up(self.now)

    def _is_cut(self, name: NodeName | None) -> bool:
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
        if not host_lives or self._is_cut(job.batch_host):
            return
        if self.slurm_away and not dead:
            return
        if (dead and ran > NOTICE_S) or (run.bug_after_s is not None and ran >= run.bug_after_s):
            run.step_runs = False
            self._fail(job, AskKind.STEP)
        elif ran >= run.works_s:
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

    # The picture

    def seen(self) -> Observed:
        hangs = self.now < self.slurm_hangs_until
        if not hangs:
            self.last_good = (self.slurm.shown_nodes(self.now), self.slurm.shown(self.now))
        nodes, jobs = self.last_good or ({}, {})
        freshness = Freshness.FRESH if not hangs else Freshness.OLD if self.last_good else Freshness.ABSENT
        connected = {node for node, view in self.machines.views.items() if view.connected}
        return Observed(
            at=self.now,
            slurm=freshness,
            nodes=dict(nodes),
            jobs=dict(jobs),
            agents=dict(self.machines.views),
            agents_since=self.agents_since,
            provider=Freshness.OLD if self.now < self.provider_hangs_until else Freshness.FRESH,
            instances=dict(self.machines.listed(self.now)),
            asks=tuple(ask for ask in self.asks.values() if ask.node in connected),
            opted_in=tuple(self.opted.values()),
            reservations=self.slurm.still_kept(self.now),
            reservations_at=self.now,
        )

    # The ports

    def apply(self, action: Action) -> str:
        """Do it; the error as a port would raise it, or empty."""
        slurm, now = self.slurm, self.now
        if now < self.slurm_hangs_until and isinstance(
            action,
            DrainNode | DownNode | ReturnNode | RequeueJob | NudgeJob | CommentJob | SetNice | KeepNodes | FreeNodes,
        ):
            return "slurmctld does not answer"
        match action:
            case DrainNode():
                return slurm.drain(action.node, action.mark)
            case DownNode():
                return slurm.down(action.node, action.mark, now)
            case ReturnNode():
                return slurm.give_back(action.node, action.mark, action.command)
            case RequeueJob():
                return slurm.requeue(action.job, action.exclude, now)
            case NudgeJob():
                return slurm.nudge(action.job, action.exclude, now, action.delay_s)
            case AllowRequeue():
                return slurm.allow_requeue(action.job)
            case ExtendLimit() | SetNice() | KeepNodes() | FreeNodes() | CommentJob():
                return self._apply_in_slurm(action)
            case AnswerAsk():
                return self._answered(action)
            case _:
                return self._apply_to_machines(action)

    def _apply_in_slurm(self, action: ExtendLimit | SetNice | KeepNodes | FreeNodes | CommentJob) -> str:
        match action:
            case CommentJob():
                return self.slurm.comment(action.job, action.text)
            case ExtendLimit():
                return self.slurm.extend(action.job, action.limit_s)
            case SetNice():
                return self.slurm.set_nice(action.job, action.nice)
            case KeepNodes():
                return self.slurm.keep(action.name, action.nodes, action.seconds, self.now)
            case FreeNodes():
                self.slurm.kept.pop(action.name, None)
        return ""

    def _apply_to_machines(self, action: Action) -> str:
        match action:
            case LaunchInstance():
                if action.slot.fixed:
                    return self.machines.lend(action.slot, action.token)
                return self.machines.launch(action.slot.node, action.token, self.now)
            case TerminateInstance():
                self.machines.terminate(action.instance)
            case RebootInstance():
                return self.machines.reboot(action.instance, self.now)
            case MendNode():
                return self.machines.carry_out(action, self.now)
            case _:
                self._tell_nodes(action)
        return ""

    def _tell_nodes(self, action: Action) -> None:
        match action:
            case CheckNow():
                for node in action.nodes:
                    self.machines.check_now(node, self.now)
            case LetGo():
                told = {node for node in action.nodes if (at := self.machines.of(node)) and at.agent_speaks(self.now)}
                self.slurm.let_go(action.job, told, action.before, self.now)
            case ProbeNode():
                self.machines.look(action.node, self.now)
            case SetFeature():
                self.slurm.set_feature(action.nodes, action.prefix, action.word)

    def _answered(self, action: AnswerAsk) -> str:
        ask = self.asks.pop(action.ask, None)
        if ask is None:
            return "nobody waits for it any more"
        self.answers.append((ask.id, action.answer))
        job, run = self.slurm.jobs[ask.job], self.slurm.runs[ask.job]
        if not job.is_active or job.restarts != ask.restart:
            return ""
        if action.answer is Answer.RETRY:
            run.attempt, run.step_runs, run.step_started = ask.attempt + 1, True, self.now
        elif action.answer is Answer.STOP:
            self._failure_stands(job, ask.kind)
        return ""
