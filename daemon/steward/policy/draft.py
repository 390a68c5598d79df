"""A plan in the making: the picture and the memory that it starts from, and what is decided so far.

The only mutable thing in the policy, and it lives for one call of `plan`. Each named step reads it and adds to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steward.model.action import Action
from steward.model.desired import Desired
from steward.model.events import Event, Level
from steward.model.fit import Fit, Question
from steward.model.ids import CaseId, InstanceId, JobId, Key, NodeName
from steward.model.instance import Instance, InstanceState
from steward.model.job import Job
from steward.model.memory import Memory
from steward.model.observed import Freshness, Observed
from steward.model.plan import Plan, stops_last
from steward.model.port_error import was_not_tried
from steward.policy.books import CaseBook, DeepBook, NodeBook, SlotBook
from steward.policy.elastic.book import ElasticBook
from steward.policy.groundwork import Groundwork
from steward.policy.kept import Kept
from steward.policy.node.trust import hushed
from steward.policy.overview import Overview
from steward.policy.quota.book import QuotaBook
from steward.policy.traits import Trait

# What steps of one plan found, kept for the steps after them. Each field belongs to the function that it names.


@dataclass(slots=True)
class Found:
    companies: dict[tuple[int, float], Mapping[NodeName, Sequence[Job]]] = field(default_factory=dict)
    """`bad_company`, by what it was asked."""
    reach: tuple[int, int] | None = None
    cleaning: frozenset[NodeName] | None = None
    """Nodes where lost runs of remembered jobs clean up: `has_jobs`."""
    restless: frozenset[JobId] | None = None
    """Remembered jobs that were not at rest when it was first asked for: `restless`."""
    others: dict[str, Sequence[int]] = field(default_factory=dict)
    """By partition, before whom a job that lost its place is put: `put_first`."""
    settled: frozenset[NodeName] | None = None
    """Nodes whose slots were settled when it was first asked for: `move_slots`."""
    standings: dict[NodeName, Any] = field(default_factory=dict)
    going: tuple[int, frozenset[NodeName]] = (0, frozenset())
    """Nodes that this plan takes out of service, after so many actions: `going`."""


NOT_TRIED_AGAIN_S = 5.0


class Draft:
    """Everything a step of the plan may read, and the doors through which it adds wishes, events and memory."""

    def __init__(
        self, seen: Observed, want: Desired, memory: Memory, now: float, ground: Groundwork | None = None
    ) -> None:
        """`ground` is kept from plan to plan; without one nothing is known of the records yet."""
        self.ground = ground if ground is not None else Groundwork()
        self.ground.turn_to(seen)
        finding = self.ground.agents.having(Trait.FINDING) if ground is not None else seen.agents
        self.seen = hushed(seen, finding, memory.trials, canaries=want.health.canary_node_count > 0)
        self.want, self.now = want, now
        self.overview = Overview(self.seen, memory, self.ground, now)
        self.found = Found()
        self.paused, self.breakers_reset = memory.paused, memory.breakers_reset
        self.looked, self.head = memory.looked, memory.head
        self.breaker_resets, self.trials, self.next_case = memory.breaker_resets, Kept(memory.trials), memory.next_case
        self.cases, self.groups = CaseBook(memory.cases), Kept(memory.groups)
        self.jobs, self.bystanders = Kept(memory.jobs), Kept(memory.bystanders)
        self.asks, self.ledger = Kept(memory.asks), Kept(memory.ledger)
        self.incidents, self.breakers = Kept(memory.incidents), Kept(memory.breakers)
        self.asked, self.noted = Kept(memory.asked), Kept(memory.noted)
        self.nodes = NodeBook(memory.nodes)
        self.history, self.agents = Kept(memory.history), Kept(memory.agents)
        self.remedies, self.mishaps = Kept(memory.remedies), Kept(memory.mishaps)
        self.served, self.cluster = Kept(memory.served), memory.cluster
        self.slots = SlotBook(memory.slots, self.groups, want)
        self.gates, self.operations = Kept(memory.gates), Kept(memory.operations)
        self.ended, self.strays = Kept(memory.ended), Kept(memory.strays)
        self.client_tokens, self.baselines = Kept(memory.client_tokens), Kept(memory.baselines)
        self.quota = QuotaBook(memory)
        self.elastic, self.deeps = ElasticBook(memory), DeepBook(memory.deeps)
        self.quota_said: dict[JobId, str] = {}
        """The words of quotas for the comments of jobs, where they are new."""
        self._actions, self._events = list[Action](), list[Event]()
        self._wake: float | None = None
        self._questions: dict[Question, None] = {}

    def instances_of(self, node: NodeName) -> list[Instance]:
        """Every instance that the provider lists for a node, gone ones left out, by id."""
        return [each for each in self.overview.instances_of(node) if each.state is not InstanceState.GONE]

    def instance(self, id: InstanceId | None) -> Instance | None:
        """As the provider lists it, unless it is gone."""
        found = self.seen.instances.get(id) if id else None
        return None if found is None or found.state is InstanceState.GONE else found

    @property
    def slurm_is_fresh(self) -> bool:
        return self.seen.slurm is Freshness.FRESH

    @property
    def provider_is_fresh(self) -> bool:
        return self.seen.provider is Freshness.FRESH

    @property
    def may_touch_nodes(self) -> bool:
        """False while a person paused us or the site only wants reports of what is wrong with its nodes."""
        return self.want.repair.act and not self.paused

    @property
    def may_provision(self) -> bool:
        """False while a person paused us. Groups are a caller's wish: made and ended also where we only report."""
        return not self.paused

    @property
    def may_clear_strays(self) -> bool:
        """Whether what is named as ours and unknown to our memory may be removed: while no agent is heard it may be
        another head's, to which they all speak. Reservations end by themselves."""
        return bool(self.overview.heard)

    @property
    def actions(self) -> Sequence[Action]:
        """The actions that are wished for so far."""
        return self._actions

    def wish(self, action: Action, every: float | None = None, *, first: bool = False) -> bool:
        """Ask for an action unless the same wish is younger than `every` seconds (None: ask only once, and again only
        where it surely was not done); `first`: it is done before all others of this plan."""
        last = self.asked.get(action.key)
        if last is not None and every is None and was_not_tried(self.seen.failures.get(action.key, "")):
            every = NOT_TRIED_AGAIN_S
        if last is not None and (every is None or self.now < last + every):
            self.wake(None if every is None else last + every)
            return False
        self.asked[action.key] = self.now
        self._actions.insert(0 if first else len(self._actions), action)
        self.wake(None if every is None else self.now + every)
        return True

    def tell(
        self,
        kind: str,
        text: str,
        *,
        once: str = "",
        level: Level = Level.INFO,
        node: NodeName | None = None,
        job: JobId | None = None,
        case: CaseId | None = None,
        group: str = "",
    ) -> None:
        """Write an event; with `once`, only when no event of this key was written before."""
        if once in self.noted:
            return
        if once:
            self.noted[once] = self.now
        data = (("group", group),) if group else ()
        event = Event(at=self.now, kind=kind, text=text, level=level, node=node, job=job, case=case, data=data)
        self._events.append(event)

    def tell_again(self, once: str) -> None:
        """What was told with this key is over: it may be told again."""
        self.noted.pop(once, None)

    def asked_at(self, key: Key) -> float | None:
        return self.asked.get(key)

    def wake(self, at: float | None) -> None:
        """Look again at `at`; a time that has passed means nothing more is due."""
        if at is not None and at > self.now and (self._wake is None or at < self._wake):
            self._wake = at

    def ask(self, question: Question, *, since: float) -> Fit | None:
        """Slurm's last answer; one of before `since` is asked for anew, and the plan made again with that. None: there
        is none yet."""
        fit = self.seen.fits.get(question)
        if fit is None or fit.at < since:
            self._questions[question] = None
        return fit

    def plan(self) -> Plan:
        """The finished plan, frozen."""
        memory = Memory(
            cases=self.cases.frozen(),
            jobs=self.jobs.frozen(),
            bystanders=self.bystanders.frozen(),
            asks=self.asks.frozen(),
            ledger=self.ledger.frozen(),
            incidents=self.incidents.frozen(),
            breakers=self.breakers.frozen(),
            asked=self.asked.frozen(),
            noted=self.noted.frozen(),
            history=self.history.frozen(),
            agents=self.agents.frozen(),
            nodes=self.nodes.frozen(),
            remedies=self.remedies.frozen(),
            mishaps=self.mishaps.frozen(),
            served=self.served.frozen(),
            paused=self.paused,
            next_case=self.next_case,
            breakers_reset=self.breakers_reset,
            breaker_resets=self.breaker_resets,
            trials=self.trials.frozen(),
            looked=self.looked,
            head=self.head,
            cluster=self.cluster,
            groups=self.groups.frozen(),
            slots=self.slots.frozen(),
            gates=self.gates.frozen(),
            ended=self.ended.frozen(),
            strays=self.strays.frozen(),
            operations=self.operations.frozen(),
            client_tokens=self.client_tokens.frozen(),
            deeps=self.deeps.frozen(),
            baselines=self.baselines.frozen(),
            **self.quota.stored(),
            **self.elastic.stored(),
        )
        return self._plan(memory)

    def _plan(self, memory: Memory) -> Plan:
        return Plan(
            actions=stops_last(self._actions),
            memory=memory,
            events=tuple(self._events),
            wake_at=self._wake,
            questions=tuple(self._questions),
        )
