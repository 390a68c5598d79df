"""The head's other ports on the simulated cluster: agents, provider, witness, the site's commands, the store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar, cast

from steward.model.action import AnswerAsk, BackUpNode, LaunchInstance, RebootInstance, TerminateInstance
from steward.model.agent_action import Action, AgentAction, AgentsAction
from steward.model.ask import Answer, Ask, OptedIn
from steward.model.events import Event
from steward.model.ids import AskId, InstanceId, Key, NodeName
from steward.model.instance import Instance, Slot
from steward.model.memory import Memory
from steward.model.notify import ChannelState
from steward.model.observed import AgentView
from steward.model.witness import Address, WitnessSeen
from steward.ports import AgentPort, Permanent, Retryable, Stale, StorePort
from tests.chaos.slurm_port import KEY, WHY
from tests.chaos.trouble import Point, Trouble
from tests.fakes.derive import derived
from tests.fakes.world import World
from tests.fakes.world_cluster import START

T = TypeVar("T")


_FIRST_TIME = START - 1e6
"""A larger number is a time."""


def stamped(found: T, ahead_s: float) -> T:
    """What agents told, with the times of a head whose clock is so much ahead: its hub stamps what it hears."""
    if not ahead_s or isinstance(found, Enum | str):
        return found
    if isinstance(found, float):
        return cast(T, found + ahead_s) if found > _FIRST_TIME else found
    if isinstance(found, tuple):
        return cast(T, tuple(stamped(each, ahead_s) for each in found))
    if is_dataclass(found) and not isinstance(found, type):
        return replace(found, **{each.name: stamped(getattr(found, each.name), ahead_s) for each in fields(found)})
    return found


@dataclass(slots=True, kw_only=True)
class AgentsOfWorld(AgentPort):
    """`ahead_s`: by how much the clock of the head's host is ahead."""

    world: World
    trouble: Trouble
    ahead_s: float = 0.0

    def views(self) -> Mapping[NodeName, AgentView]:
        found = self.world.agents()
        return {node: stamped(view, self.ahead_s) for node, view in found.items()} if self.ahead_s else found

    def asks(self) -> tuple[Ask, ...]:
        return stamped(self.world.asks_heard(), self.ahead_s)

    def opted_in(self) -> tuple[OptedIn, ...]:
        return stamped(tuple(self.world.opted.values()), self.ahead_s)

    def since(self) -> float:
        return self.world.agents_since + self.ahead_s

    def answer(self, ask: AskId, answer: Answer, exclude: frozenset[NodeName]) -> None:
        about = self.world.asks.get(ask)
        if about is None:
            raise Stale("nobody waits for it any more")
        done = AnswerAsk(key=KEY, why=WHY, ask=ask, job=about.job, node=about.node, answer=answer, exclude=exclude)
        self._tell(lambda: self.world.apply(done))

    def check_now(self, nodes: frozenset[NodeName], budget_s: float) -> None:
        def order() -> str:
            for node in nodes:
                self.world.machines.check_now(node, self.world.now)
            return ""

        self._tell(order)

    def order(self, action: AgentAction | AgentsAction) -> None:
        self._tell(lambda: self.world.apply(action))

    def have_looked_at(self, node: NodeName, slurmd: Address, peers: frozenset[NodeName]) -> None:
        self.world.machines.peers_look(node, peers, self.world.now)

    def keep_witness(self, seen: Mapping[NodeName, WitnessSeen]) -> None:
        """The world kept it when it was looked at."""

    def _tell(self, order: Callable[[], str]) -> None:
        self.trouble.point(Point.BEFORE_ACT)
        self.trouble.refuse_to_tell()
        error = order()
        self.trouble.point(Point.AFTER_ACT)
        if error:
            raise Stale(error)


@dataclass(slots=True, kw_only=True)
class ProviderOfWorld:
    """`calls` counts what it was asked to change. `forgetful`: it does not know tokens (for tests of the tests)."""

    world: World
    trouble: Trouble
    calls: int = 0
    forgetful: bool = False

    def describe(self) -> str:
        return "simulated machines"

    def instances(self) -> Mapping[InstanceId, Instance]:
        return dict(self.world.machines.listed(self.world.now))

    def launch(self, slot: Slot, token: str) -> Instance:
        asked = f"{token}~{self.calls}" if self.forgetful else token
        self._do(LaunchInstance(key=KEY, why=WHY, slot=slot, token=asked))
        return next(one for one in self.instances().values() if one.token == asked)

    def terminate(self, instance: InstanceId) -> None:
        self._do(TerminateInstance(key=KEY, why=WHY, instance=instance, node=NodeName("")))

    def reboot(self, instance: InstanceId, token: str) -> None:
        self._do(RebootInstance(key=KEY, why=WHY, instance=instance, node=NodeName(""), token=token))

    def _do(self, action: Action) -> None:
        self.calls += 1
        self.trouble.point(Point.BEFORE_ACT)
        error = self.world.apply(action)
        self.trouble.point(Point.AFTER_ACT)
        if self.trouble.provider_late:
            self.trouble.bite()
            raise Retryable("the provider did not answer in time")
        if error:
            raise Retryable(error) if error.startswith(("capacity", "quota")) else Permanent(error)


@dataclass(slots=True, kw_only=True)
class WitnessOfWorld:
    world: World

    def look_at_all(
        self, addresses: Mapping[NodeName, Address], saw: Callable[[Mapping[NodeName, WitnessSeen]], None]
    ) -> None:
        """The world keeps what is found."""
        for node in addresses:
            self.world.machines.look(node, self.world.now)


@dataclass(slots=True, kw_only=True)
class SiteOfWorld:
    world: World
    trouble: Trouble

    def back_up(self, node: NodeName, instance: InstanceId, *, restore: bool) -> None:
        self.trouble.point(Point.BEFORE_ACT)
        error = self.world.apply(BackUpNode(key=KEY, why=WHY, node=node, instance=instance, restore=restore))
        self.trouble.point(Point.AFTER_ACT)
        if error:
            raise Permanent(error)

    def firing(self, alarms: Sequence[str]) -> tuple[str, ...]:
        return ()


def _passed(name: str) -> Callable[..., Any]:
    return lambda store, *given, **named: getattr(store.inner, name)(*given, **named)


@derived(StorePort, _passed)
@dataclass(slots=True, kw_only=True)
class PassingStore(StorePort):
    """A store that passes everything on."""

    inner: StorePort


@dataclass(slots=True, kw_only=True)
class StoreWithPoints(PassingStore):
    """The real store, with a head that can die before and after each write, and a disk that can refuse."""

    trouble: Trouble
    told: list[Event] = field(default_factory=list)

    def commit(self, memory: Memory, intents: Sequence[Action], events: Sequence[Event]) -> None:
        self._write(lambda: self.inner.commit(memory, intents, events))
        self.told += events

    def record_outcomes(self, errors: Mapping[Key, str], at: float) -> None:
        self._write(lambda: self.inner.record_outcomes(errors, at))

    def add_events(self, events: Sequence[Event]) -> None:
        self._write(lambda: self.inner.add_events(events))

    def keep_channel(self, name: str, state: ChannelState) -> None:
        self._write(lambda: self.inner.keep_channel(name, state))

    def _write(self, do: Callable[[], None]) -> None:
        self.trouble.point(Point.BEFORE_WRITE)
        try:
            do()
        except Retryable:
            self.trouble.bite()
            raise
        self.trouble.point(Point.AFTER_WRITE)
