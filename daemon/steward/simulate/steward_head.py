"""The operator that is tried: the real policy, planned as the head does, with its actions carried out on the world."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from steward.model.action import (
    AnswerAsk,
    CheckNow,
    CommentJob,
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
from steward.model.ask import Answer
from steward.model.case import CaseStep
from steward.model.desired import Desired
from steward.model.ids import CaseId, JobId
from steward.model.instance import Slot
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.policy.plan import Plans
from steward.simulate.world import BEGIN, Operator, World

GROUP = "main"
_LISTENS_SINCE = BEGIN - 3600.0


class StewardHead(Operator):
    """A head on the simulated cluster. `turns` counts its plans."""

    def __init__(self, world: World, want: Desired, *, reboots: bool) -> None:
        """Take the world and the settings; every node of the world is in one group."""
        fixed = world.setup.fixed
        slots = {name: Slot(node=name, group=GROUP, fixed=fixed, reboots=reboots) for name in world.slurm.nodes.rows}
        self._world = world
        self._want = replace(want, slots=MappingProxyType(slots), spares=frozenset())
        self._plans, self._memory = Plans(), Memory()
        self._failures: dict[str, str] = {}
        self._wake: float | None = None
        self._cases: Mapping[CaseId, Any] = {}
        self._rebooted: set[str] = set()
        self._held: set[CaseId] = set()
        self.turns = 0
        self.actions: Counter[str] = Counter()
        self.undone: Counter[str] = Counter()
        """Actions that the simulation does not carry out, by class."""

    @property
    def memory(self) -> Memory:
        """Return the memory of the last plan."""
        return self._memory

    def failed(self, job: JobId) -> None:
        """Let the shim ask."""
        self._world.ask(job)

    @property
    def wake_at(self) -> float | None:
        """Return when the next plan is due, if nothing changes."""
        return self._wake

    def turn(self) -> None:
        """Look, plan, and have the actions carried out a moment later."""
        world = self._world
        self.turns += 1
        decided = self._plans(self._seen(), self._want, as_swept(self._memory, world.now), world.now)
        self._memory, self._wake = decided.memory, decided.wake_at
        self._call_people()
        if decided.actions:
            actions = decided.actions
            for action in actions:
                self._failures.pop(action.key, None)
            world.after(world.numbers.act_s, lambda: self._apply(actions))

    def _seen(self) -> Observed:
        world, now = self._world, self._world.now
        return Observed(
            at=now,
            nodes=world.slurm.nodes.shown(),
            jobs=world.slurm.jobs.shown(),
            agents=world.machines.views.shown(),
            agents_since=_LISTENS_SINCE,
            instances=world.machines.instances.shown(),
            asks=tuple(world.asks.shown().values()),
            opted_in=tuple(world.opted.shown().values()),
            reservations=world.slurm.kept.shown(),
            reservations_at=now,
            failures=MappingProxyType(dict(self._failures)),
        )

    def _call_people(self) -> None:
        """Have a person repair the machines of cases that are held."""
        if self._memory.cases is self._cases:
            return
        self._cases = self._memory.cases
        held = {id for id, case in self._cases.items() if case.step is CaseStep.HELD}
        for id in sorted(held - self._held):
            node = self._cases[id].node
            fault = self._world.machines.of[node].fault
            seconds = fault.repair_s if fault is not None else self._world.numbers.person_s
            self._world.after(seconds, partial(self._person, id))
        self._held = held

    def _person(self, id: CaseId) -> None:
        case = self._memory.cases.get(id)
        if case is not None and case.step is CaseStep.HELD:
            self._world.repair(case.node)

    # Actions

    def _apply(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            self.actions[type(action).__name__] += 1
            error = self._carry_out(action)
            if error:
                self._failures[action.key] = error

    def _carry_out(self, action: Action) -> str:
        """Carry an action out; return the error as a port would tell it, or an empty text."""
        do = _EFFECTS.get(type(action))
        if do is None:
            self.undone[type(action).__name__] += 1
            return "permanent: the simulation does not carry this out"
        error: str | None = do(self, action)
        return error or ""

    def _drain(self, action: DrainNode) -> str:
        return self._world.slurm.take_out(action.node, action.mark)

    def _down(self, action: DownNode) -> str:
        error = self._world.slurm.take_out(action.node, action.mark)
        if not error:
            self._world.slurm.down(action.node)
        return error

    def _return(self, action: ReturnNode) -> str:
        node = self._world.slurm.nodes[action.node]
        if node.mark != action.mark:
            return "stale: its reason is not Steward's any more"
        self._world.slurm.give_back(action.node)
        return ""

    def _probe(self, action: ProbeNode) -> None:
        self._world.after(0.2, lambda: self._world.machines.looked_at(action.node, self._world.now))

    def _check(self, action: CheckNow) -> None:
        world, asked = self._world, self._world.now

        def answer() -> None:
            for name in sorted(action.nodes):
                world.machines.checked(name, asked, world.now)

        world.after(world.numbers.check_s, answer)

    def _reboot(self, action: RebootInstance) -> str:
        machine = self._world.machines.of[action.node]
        if machine.instance != action.instance:
            return "permanent: no such machine"
        if action.token in self._rebooted:
            return ""
        self._rebooted.add(action.token)
        self._world.reboot(action.node, cures=machine.fault is None or machine.fault.reboot_cures)
        return ""

    def _launch(self, action: LaunchInstance) -> str:
        if self._world.setup.fixed:
            return "permanent: fixed machines are not made"
        if all(each.token != action.token for each in self._world.machines.instances.rows.values()):
            self._world.renew(action.slot.node, action.token)
        return ""

    def _terminate(self, action: TerminateInstance) -> None:
        self._world.machines.end(action.instance, self._world.now)

    def _requeue(self, action: RequeueJob) -> str:
        job = self._world.slurm.jobs[action.job]
        if not job.is_active or job.restarts != action.restart:
            return "stale: it is in another run"
        self._world.slurm.change(action.job, excluded=action.exclude)
        self._world.slurm.requeue(action.job)
        return ""

    def _nudge(self, action: NudgeJob) -> str:
        return self._world.slurm.nudge(action.job, action.exclude, action.delay_s)

    def _answer(self, action: AnswerAsk) -> str:
        ask = self._world.asks.get(action.ask)
        if ask is None:
            return "stale: no shim waits for it any more"
        self._world.asks.drop(action.ask)
        if action.answer is Answer.STOP:
            self._world.end_badly(action.job)
        return ""

    def _mend(self, action: MendNode) -> None:
        world = self._world
        world.after(world.numbers.reset_s, lambda: world.machines.mended(action.node, action.token, world.now))

    def _comment(self, action: CommentJob) -> None:
        self._world.slurm.comment(action.job, action.text)

    def _keep(self, action: KeepNodes) -> None:
        self._world.slurm.keep(action.name, action.nodes, action.seconds)

    def _free(self, action: FreeNodes) -> None:
        self._world.slurm.free(action.name)

    def _nice(self, action: SetNice) -> None:
        self._world.slurm.change(action.job, nice=action.nice)

    def _let_go(self, action: LetGo) -> None:
        self._world.slurm.let_go(action.job)

    def _feature(self, action: SetFeature) -> None:
        self._world.slurm.set_feature(action.nodes, action.prefix, action.word)

    def _nothing(self, action: Action) -> None:
        """Change nothing: this world's jobs have no time limit, and tell no stacks."""


def as_swept(memory: Memory, now: float) -> Memory:
    """Return the memory of a head that has looked all the time, and found nothing new since the last plan.

    A real head looks every few seconds. Here those plans are left out that would have nothing to do; without this, the
    policy would take the time between for one in which the head was blind, and extend its deadlines.
    """
    head = memory.head
    marks = now if head.looked_at_marks is not None else None
    ends = now if head.looked_at_ends is not None else None
    if not memory.looked and marks is None and ends is None:
        return memory
    looked = now if memory.looked else memory.looked
    return replace(memory, looked=looked, head=replace(head, looked_at_marks=marks, looked_at_ends=ends))


_EFFECTS: Mapping[type[Action], Callable[[StewardHead, Any], str | None]] = {
    DrainNode: StewardHead._drain,
    DownNode: StewardHead._down,
    ReturnNode: StewardHead._return,
    ProbeNode: StewardHead._probe,
    CheckNow: StewardHead._check,
    RebootInstance: StewardHead._reboot,
    LaunchInstance: StewardHead._launch,
    TerminateInstance: StewardHead._terminate,
    RequeueJob: StewardHead._requeue,
    NudgeJob: StewardHead._nudge,
    AnswerAsk: StewardHead._answer,
    MendNode: StewardHead._mend,
    CommentJob: StewardHead._comment,
    KeepNodes: StewardHead._keep,
    FreeNodes: StewardHead._free,
    SetFeature: StewardHead._feature,
    SetNice: StewardHead._nice,
    LetGo: StewardHead._let_go,
    ExtendLimit: StewardHead._nothing,
    CollectStacks: StewardHead._nothing,
}
