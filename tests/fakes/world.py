"""A whole cluster in memory: Slurm, provider, agents and shims, on a clock that only moves when it is told to."""

from dataclasses import dataclass

from steward.model.action import (
    AllowRequeue,
    AnswerAsk,
    CheckNow,
    CommentJob,
    DelayTasks,
    DownNode,
    DrainNode,
    ExtendLimit,
    FreeNodes,
    KeepNodes,
    LaunchInstance,
    NudgeJob,
    ProbeNode,
    RebootInstance,
    RequeueJob,
    ReturnNode,
    SetFeature,
    SetNice,
    TerminateInstance,
)
from steward.model.agent_action import Action, CollectStacks, LetGo, MendNode
from steward.model.ask import Answer, Ask
from steward.model.ids import NodeName
from steward.model.node import Node, NodeBase
from steward.model.observed import AgentView, Freshness, Observed
from steward.model.partition import Partition
from steward.model.reservation import Reservation
from steward.workflows.effects import Door, row_of
from tests.fakes.world_cluster import Cluster


@dataclass(slots=True)
class World(Cluster):
    """`seen` is the picture; `apply` is what the ports would do."""

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

    def seen(self) -> Observed:
        hangs = self.now < self.slurm_hangs_until
        if not hangs:
            self.last_good = (self.slurm.shown_nodes(self.now), self.slurm.shown(self.now))
        nodes, jobs = self.last_good or ({}, {})
        freshness = Freshness.FRESH if not hangs else Freshness.OLD if self.last_good else Freshness.ABSENT
        return Observed(
            at=self.now,
            slurm=freshness,
            nodes=dict(nodes),
            jobs=dict(jobs),
            agents=self.agents(),
            agents_since=self.agents_since,
            provider=Freshness.OLD if self.now < self.provider_hangs_until else Freshness.FRESH,
            instances=dict(self.machines.listed(self.now)),
            asks=self.asks_heard(),
            opted_in=tuple(self.opted.values()),
            reservations=self.reservations(),
            reservations_at=self.now,
        )

    def agents(self) -> dict[NodeName, AgentView]:
        return dict(self.machines.views)

    def asks_heard(self) -> tuple[Ask, ...]:
        return tuple(ask for ask in self.asks.values() if self.machines.is_connected(ask.node))

    def reservations(self) -> dict[str, Reservation]:
        return self.slurm.still_kept(self.now)

    def partitions(self) -> dict[str, Partition]:
        return {}

    def is_deaf_to(self, action: Action) -> bool:
        """Whether a slurmctld that does not answer would have to do it."""
        hangs = self.now < max(self.slurm_hangs_until, self.slurm_writes_fail_until)
        return hangs and row_of(action).door is Door.SLURM

    # The ports

    def apply(self, action: Action) -> str:
        """Do it; the error as a port would raise it, or empty."""
        slurm, now = self.slurm, self.now
        if self.is_deaf_to(action):
            return "retry: slurmctld does not answer"
        match action:
            case DrainNode():
                return slurm.drain(action.node, action.mark)
            case DownNode():
                return slurm.down(action.node, action.mark, now)
            case ReturnNode():
                return slurm.give_back(action.node, action.mark, action.command)
            case RequeueJob():
                error = slurm.requeue(action.job, action.exclude, now, action.told_at)
                return f"stale: {error}" if error else ""
            case NudgeJob():
                return slurm.nudge(action.job, action.exclude, now, action.delay_s)
            case AllowRequeue():
                return slurm.allow_requeue(action.job)
            case ExtendLimit() | SetNice() | DelayTasks() | KeepNodes() | FreeNodes() | CommentJob():
                return self._apply_in_slurm(action)
            case AnswerAsk():
                return self._answered(action)
            case _:
                return self._apply_to_machines(action)

    def _apply_in_slurm(self, action: ExtendLimit | SetNice | DelayTasks | KeepNodes | FreeNodes | CommentJob) -> str:
        match action:
            case CommentJob():
                return self.slurm.comment(action.job, action.text)
            case ExtendLimit():
                return self.slurm.extend(action.job, action.limit_s)
            case SetNice():
                return self.slurm.set_nice(action.job, action.nice)
            case KeepNodes():
                return self.slurm.keep(action.name, action.nodes, action.seconds, self.now)
            case DelayTasks():
                pass  # this world has no arrays
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
            case CollectStacks():
                self.watches.collect(action, self.machines, self.now)
            case LetGo():
                told = {node for node in action.nodes if (at := self.machines.of(node)) and at.agent_speaks(self.now)}
                self.slurm.let_go(action.job, told, action.before, self.now)
            case ProbeNode():
                self.machines.look(action.node, self.now)
                self.machines.peers_look(action.node, action.peers, self.now)
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
            run.still_since = None
        elif action.answer is Answer.STOP:
            self._failure_stands(job, ask.kind)
        return ""
