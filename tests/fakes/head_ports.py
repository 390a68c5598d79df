"""The head's ports as objects that remember: agents, a store, machines, a witness."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from steward.model.agent_action import Action, AgentAction, AgentsAction
from steward.model.ask import Answer, Ask, OptedIn
from steward.model.events import Event
from steward.model.ids import AskId, InstanceId, Key, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.memory import Memory
from steward.model.notify import ChannelState
from steward.model.observed import AgentView
from steward.model.witness import Address, Witness, WitnessSeen
from steward.policy.job.ledger import Line, changed_lines, key_of
from steward.ports import AgentPort, LedgerQuery, PortError, Stale, StorePort
from tests.fakes.until import FACT_S


@dataclass(kw_only=True)
class FakeAgents(AgentPort):
    """`waiting` are the shims that wait; `answers` what they were told, in order."""

    waiting: dict[AskId, Ask] = field(default_factory=dict)
    answers: list[tuple[AskId, Answer]] = field(default_factory=list)
    checked: list[frozenset[NodeName]] = field(default_factory=list)
    orders: list[AgentAction | AgentsAction] = field(default_factory=list)
    seen: dict[NodeName, WitnessSeen] = field(default_factory=dict)
    looked_at_by: dict[NodeName, tuple[Address, frozenset[NodeName]]] = field(default_factory=dict)
    table: dict[NodeName, AgentView] = field(default_factory=dict)
    began: float = 0.0

    def views(self) -> Mapping[NodeName, AgentView]:
        return dict(self.table)

    def asks(self) -> tuple[Ask, ...]:
        return tuple(self.waiting.values())

    def opted_in(self) -> tuple[OptedIn, ...]:
        return ()

    def since(self) -> float:
        return self.began

    def answer(self, ask: AskId, answer: Answer, exclude: frozenset[NodeName]) -> None:
        if self.waiting.pop(ask, None) is None:
            raise Stale("nobody waits for it any more")
        self.answers.append((ask, answer))

    def check_now(self, nodes: frozenset[NodeName], budget_s: float) -> None:
        self.checked.append(nodes)

    def order(self, action: AgentAction | AgentsAction) -> None:
        if isinstance(action, AgentAction) and action.node in self.table and not self.table[action.node].connected:
            raise Stale(f"the agent of {action.node} is not connected")
        self.orders.append(action)

    def have_looked_at(self, node: NodeName, slurmd: Address, peers: frozenset[NodeName]) -> None:
        self.looked_at_by[node] = (slurmd, peers)

    def keep_witness(self, seen: Mapping[NodeName, WitnessSeen]) -> None:
        self.seen |= seen


@dataclass(kw_only=True)
class FakeStore(StorePort):
    """What survives a kill. `refuse` is raised by every write until it is None again; `wrote` is told of each write."""

    memory: Memory = field(default_factory=Memory)
    intents: dict[Key, Action] = field(default_factory=dict)
    outcomes: dict[Key, str | None] = field(default_factory=dict)
    log: list[Event] = field(default_factory=list)
    channels: dict[str, ChannelState] = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)
    """The ledger."""
    commits: int = 0
    refuse: PortError | None = None
    wrote: Callable[[str], None] = lambda what: None

    def load(self) -> Memory:
        asked = {key: at for key, at in self.memory.asked.items() if self.outcomes.get(key, "") is not None}
        return replace(self.memory, asked=MappingProxyType(asked))

    def commit(self, memory: Memory, intents: Sequence[Action], events: Sequence[Event]) -> None:
        self._write()
        self.lines |= {key_of(line): line for line in changed_lines(self.memory, memory)}
        self.memory = memory
        self.commits += 1
        for action in intents:
            self.intents[action.key] = action
            self.outcomes[action.key] = None
        self.log.extend(events)
        self.wrote("commit")

    def ledger(self, wanted: LedgerQuery) -> list[Line]:
        """All lines; of jobs only the one asked for."""
        return [
            line
            for line in self.lines.values()
            if wanted.job in (0, getattr(line, "job", None)) and wanted.task in ("", getattr(line, "task_id", None))
        ]

    def record_outcomes(self, errors: Mapping[Key, str], at: float) -> None:
        self._write()
        self.outcomes.update(errors)
        self.wrote("outcome")

    def failures(self) -> Mapping[str, str]:
        return {key: error for key, error in self.outcomes.items() if error}

    def done(self, kind: str) -> frozenset[str]:
        done = (self.intents[key] for key, error in self.outcomes.items() if not error and key in self.intents)
        return frozenset(action.key for action in done if type(action).__name__ == kind)

    def add_events(self, events: Sequence[Event]) -> None:
        self._write()
        self.log.extend(events)

    def events(self, *, after: int = 0, limit: int = 500, node: str = "", job: int = 0) -> list[tuple[int, Event]]:
        found = [(number, event) for number, event in enumerate(self.log, start=1) if number > after]
        found = [one for one in found if (not node or one[1].node == node) and (not job or one[1].job == job)]
        return found[:limit] if after else found[-limit:]

    def channel(self, name: str) -> ChannelState | None:
        return self.channels.get(name)

    def keep_channel(self, name: str, state: ChannelState) -> None:
        self._write()
        self.channels[name] = state
        self.wrote("channel")

    def first_use(self, key: str, until: float) -> bool:
        return True

    def _write(self) -> None:
        if self.refuse is not None:
            raise self.refuse


@dataclass(kw_only=True)
class FakeProvider:
    """`gate` holds up launches until it is set; `calls` is every call."""

    machines: dict[InstanceId, Instance] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    refuse: PortError | None = None

    def describe(self) -> str:
        return "fake machines"

    def instances(self) -> Mapping[InstanceId, Instance]:
        if self.refuse is not None:
            raise self.refuse
        return dict(self.machines)

    def launch(self, slot: Slot, token: str) -> Instance:
        self.calls.append(f"launch {slot.node} {token}")
        self.gate.wait(FACT_S)
        if self.refuse is not None:
            raise self.refuse
        id = InstanceId(f"i-{token}")
        made = Instance(id=id, node=slot.node, state=InstanceState.RUNNING, token=token)
        return self.machines.setdefault(id, made)

    def terminate(self, instance: InstanceId) -> None:
        self.calls.append(f"terminate {instance}")
        self.machines.pop(instance, None)

    def reboot(self, instance: InstanceId, token: str) -> None:
        self.calls.append(f"reboot {instance} {token}")


@dataclass(kw_only=True)
class FakeSite:
    """`saved` is every call of the backup or restore; `refuse` is raised by each; `alarming` are alarms that fire."""

    saved: list[tuple[NodeName, InstanceId, bool]] = field(default_factory=list)
    alarming: set[str] = field(default_factory=set)
    refuse: PortError | None = None

    def back_up(self, node: NodeName, instance: InstanceId, *, restore: bool) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.saved.append((node, instance, restore))

    def firing(self, alarms: Sequence[str]) -> tuple[str, ...]:
        if self.refuse is not None:
            raise self.refuse
        return tuple(name for name in alarms if name in self.alarming)


@dataclass(kw_only=True)
class FakeWitness:
    looks: list[set[NodeName]] = field(default_factory=list)

    def look_at_all(
        self, addresses: Mapping[NodeName, Address], saw: Callable[[Mapping[NodeName, WitnessSeen]], None]
    ) -> None:
        self.looks.append({*addresses})
        saw({node: WitnessSeen(result=Witness.REFUSED, at=1.0) for node in addresses})


@dataclass
class FakeNotifier:
    """What the service manager was told."""

    told: list[str] = field(default_factory=list)

    def ready(self) -> None:
        self.told.append("ready")

    def alive(self, status: str) -> None:
        self.told.append(status)

    def stopping(self) -> None:
        self.told.append("stopping")
