"""A plan in the making: the picture and the memory that it starts from, and the decisions so far.

The draft is the only mutable object in the policy, and lives for one call of `plan`. Each named step reads it and adds
to it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import zip_longest
from typing import Any, TypeVar, cast

from steward.model.agent_action import Action
from steward.model.case import Mishap, Remedy
from steward.model.deep import Baseline
from steward.model.desired import Desired
from steward.model.events import Event, Level
from steward.model.fit import Fit, Question
from steward.model.group import ClientToken, Cluster, Group, Operation
from steward.model.health import Incarnation, Trial
from steward.model.ids import AskId, CaseId, InstanceId, JobId, Key, NodeName
from steward.model.instance import Instance, InstanceState
from steward.model.job import Job
from steward.model.ledger import Run, shown_id
from steward.model.memory import AskMemory, Breaker, HeadMemory, Incident, Memory, Served, Stray
from steward.model.observed import Freshness, Observed
from steward.model.partition import Gate
from steward.model.plan import Plan, stops_last
from steward.model.port_error import was_not_tried
from steward.model.quota import ComputeQuota, QuotaStatus, SchedulerConfig, Wrote
from steward.model.resume import Bystander, JobMemory
from steward.policy.books import CaseBook, DeepBook, ElasticBook, NodeBook, QuotaJobBook, SlotBook
from steward.policy.fact_cache import FactCache
from steward.policy.kept import Kept
from steward.policy.overview import Overview
from steward.policy.traits import Trait
from steward.policy.trust import with_unproven_findings_muted

_ENDING_QUOTAS = (QuotaStatus.DELETING, QuotaStatus.DELETED)


@dataclass(slots=True)
class Found:
    """Results that a step keeps for later steps of the same plan, each for the function that its comment names."""

    companies: dict[tuple[int, float], Mapping[NodeName, Sequence[Job]]] = field(default_factory=dict)
    """`nodes_failing_other_users`, by its arguments."""
    count_reached: tuple[int, int] | None = None
    """How many nodes the head reaches, and how many not: `count_reached`."""
    cleaning: frozenset[NodeName] | None = None
    """Nodes where lost runs of remembered jobs are completing: `has_jobs`."""
    jobs_needing_attention: frozenset[JobId] | None = None
    """Remembered jobs that were not at rest at the first call: `jobs_needing_attention`."""
    others: dict[str, Sequence[int]] = field(default_factory=dict)
    """Partition -> the priorities of waiting jobs, ahead of which a job that lost its place is put: `put_first`."""
    idle_slots: frozenset[NodeName] | None = None
    """Nodes whose slots had nothing to do at the first call: `move_slots`."""
    agents_due: float | None = None
    """By when agents should have come after the head's start: `_agents_due`."""
    standings: dict[NodeName, Any] = field(default_factory=dict)
    """Verdicts on nodes whose agent is not connected: `standing`."""
    work_s: Mapping[int, float] | None = None
    """User -> node-seconds that their running jobs have had in all: `users_there`."""
    leaving: tuple[int, frozenset[NodeName]] = (0, frozenset())
    """The number of actions so far, and the nodes that they take out of service: `leaving_service`."""


A = TypeVar("A", bound=Action)
NOT_TRIED_AGAIN_S = 5.0
"""How soon an action that was surely not tried is asked for again."""
_FIELDS = tuple(field.name for field in fields(Memory))


_BOOKS: Mapping[str, Callable[[Any], Kept[Any, Any]]] = {
    "cases": CaseBook,
    "nodes": NodeBook,
    "deeps": DeepBook,
    "elastic": ElasticBook,
    "quota_jobs": QuotaJobBook,
}
"""The tables of memory that have indexes; the slots' table is made apart, because it needs the groups, too."""


class Draft:
    """The inputs of every step of the plan, and the methods by which a step adds wishes, events and memory."""

    # The fields of `Memory`, open for changes: `__init__` sets each of them, `memory` freezes them.
    cases: CaseBook
    jobs: Kept[JobId, JobMemory]
    bystanders: Kept[JobId, Bystander]
    asks: Kept[AskId, AskMemory]
    ledger: Kept[JobId, tuple[Run, ...]]
    incidents: Kept[str, Incident]
    breakers: Kept[str, Breaker]
    asked: Kept[Key, float]
    noted: Kept[str, float]
    history: Kept[NodeName, tuple[float, ...]]
    agents: Kept[NodeName, Incarnation]
    nodes: NodeBook
    remedies: Kept[str, tuple[Remedy, ...]]
    mishaps: Kept[str, tuple[Mishap, ...]]
    served: Kept[NodeName, Served]
    breakers_reset: float
    breaker_resets: Mapping[str, float]
    trials: Kept[str, Trial]
    looked: float
    head: HeadMemory
    cluster: Cluster | None
    groups: Kept[str, Group]
    slots: SlotBook
    gates: Kept[str, Gate]
    ended: Kept[str, float]
    strays: Kept[InstanceId, Stray]
    operations: Kept[str, Operation]
    deeps: DeepBook
    baselines: Kept[str, Baseline]
    quotas: Kept[str, ComputeQuota]
    scheduler: SchedulerConfig | None
    quota_jobs: QuotaJobBook
    quota_writes: Kept[str, Wrote]
    elastic: ElasticBook
    client_tokens: Kept[str, ClientToken]
    paused: bool
    next_case: int

    who = ""
    """The person or caller whose order is carried out; empty if the head decides by itself."""

    def __init__(
        self, seen: Observed, want: Desired, memory: Memory, now: float, ground: FactCache | None = None
    ) -> None:
        """Open the memory for changes. `ground` is the cache kept from plan to plan; None: a new one."""
        self.ground = ground if ground is not None else FactCache()
        self.ground.follow(seen)
        finding = self.ground.agents.having(Trait.FINDING) if ground is not None else seen.agents
        self.seen = with_unproven_findings_muted(
            seen, finding, memory.trials, canaries=want.health.canary_node_count > 0
        )
        self.want, self.now = want, now
        self.overview = Overview(self.seen, memory, self.ground, now)
        self.found = Found()
        for name in _FIELDS:
            value = getattr(memory, name)
            setattr(self, name, _BOOKS.get(name, Kept)(value) if isinstance(value, Mapping) else value)
        self.slots = SlotBook(memory.slots, self.groups, want)
        self.quota_said: dict[JobId, str] = {}
        """Job -> the new text about its quota for its comment."""
        self._actions, self._events = list[Action](), list[Event]()
        self._by_kind: dict[type[Action], list[Action]] = {}
        self._wake: float | None = None
        self._questions: dict[Question, None] = {}

    def instances_of(self, node: NodeName) -> list[Instance]:
        """Return every instance that the provider lists for a node, without those that are gone, by id."""
        return [each for each in self.overview.instances_of(node) if each.state is not InstanceState.GONE]

    def instance(self, id: InstanceId | None) -> Instance | None:
        """Return the instance as the provider lists it; None if it is gone or not listed."""
        found = self.seen.instances.get(id) if id else None
        return None if found is None or found.state is InstanceState.GONE else found

    def shown_id(self, job: JobId) -> str:
        """Return the job's number as squeue shows it."""
        return shown_id(job, self.seen.jobs, self.ledger)

    @property
    def slurm_is_fresh(self) -> bool:
        return self.seen.slurm is Freshness.FRESH

    @property
    def provider_is_fresh(self) -> bool:
        return self.seen.provider is Freshness.FRESH

    @property
    def may_touch_nodes(self) -> bool:
        """Return whether actions on nodes are allowed: not paused, and the site does not only want reports."""
        return self.want.repair.act and not self.paused

    @property
    def may_provision(self) -> bool:
        """Return whether instances of groups may be made and ended: not paused."""
        # a caller asked for the groups, so the site's wish for reports alone does not stop them
        return not self.paused

    @property
    def may_clear_strays(self) -> bool:
        """Return whether reservations that have our name but are not in memory may be removed."""
        # a head without a connected agent may be a second one, and the reservations those of the head that has the
        # agents; reservations end by themselves anyway
        return bool(self.overview.heard)

    @property
    def quotas_in_force(self) -> Mapping[str, ComputeQuota]:
        """Return the quotas that are enabled and not being deleted, by team."""
        all_of = (self.quotas[id] for id in sorted(self.quotas))
        return {each.team: each for each in all_of if each.enabled and each.status not in _ENDING_QUOTAS}

    @property
    def actions(self) -> Sequence[Action]:
        """Return the actions that the plan has so far."""
        return self._actions

    def actions_of(self, kind: type[A]) -> Sequence[A]:
        """Return the actions of one class that the plan has so far, in the order in which they were asked for."""
        return cast("Sequence[A]", self._by_kind.get(kind, ()))

    def wish(self, action: Action, every: float | None = None, *, first: bool = False) -> bool:
        """Add an action, unless one with its key was added less than `every` seconds ago; return whether it was added.

        `every` None: only once, and again after `NOT_TRIED_AGAIN_S` if it was surely not carried out. `first`: before
        all other actions of this plan.
        """
        last = self.asked.get(action.key)
        if last is not None and every is None and was_not_tried(self.seen.failures.get(action.key, "")):
            every = NOT_TRIED_AGAIN_S
        if last is not None and (every is None or self.now < last + every):
            self.wake(None if every is None else last + every)
            return False
        self.asked[action.key] = self.now
        self._actions.insert(0 if first else len(self._actions), action)
        self._by_kind.setdefault(type(action), []).append(action)
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
        **data: str,
    ) -> None:
        """Write an event; with `once`, only if no event of this key was written before.

        `data` (such as `group`), `who` and the number of an array's task as squeue shows it go with the event; empty
        values are left out.
        """
        if once in self.noted:
            return
        if once:
            self.noted[once] = self.now
        shown = self.shown_id(job) if job is not None else ""
        more = {**data, "who": self.who, "shown_id": "" if shown == str(job) else shown}
        told = tuple((name, value) for name, value in more.items() if value)
        event = Event(at=self.now, kind=kind, text=text, level=level, node=node, job=job, case=case, data=told)
        self._events.append(event)

    def forget_told(self, once: str) -> None:
        """Let the event of this key be written again, because its cause is over."""
        self.noted.pop(once, None)

    def asked_at(self, key: Key) -> float | None:
        return self.asked.get(key)

    def wake(self, at: float | None) -> None:
        """Have the next plan made at `at` at the latest; None or a past time changes nothing."""
        if at is not None and at > self.now and (self._wake is None or at < self._wake):
            self._wake = at

    def ask(self, question: Question, *, since: float) -> Fit | None:
        """Return Slurm's last answer to the question; None if there is none yet.

        If the answer is older than `since`, the question is asked again as well, and the plan is made anew with the new
        answer.
        """
        fit = self.seen.fits.get(question)
        if fit is None or fit.at < since:
            self._questions[question] = None
        return fit

    def memory(self) -> Memory:
        """Return the memory after the decisions so far, frozen."""
        fields: dict[str, Any] = {name: _frozen(getattr(self, name)) for name in _FIELDS}
        return Memory(**fields)

    def plan(self) -> Plan:
        """Return the finished plan, frozen."""
        return Plan(
            actions=stops_last(self._actions),
            memory=self.memory(),
            events=tuple(self._events),
            wake_at=self._wake,
            questions=_users_in_turn(self._questions, self.seen.jobs),
        )


def _users_in_turn(questions: Iterable[Question], jobs: Mapping[JobId, Job]) -> tuple[Question, ...]:
    """Return the questions, those about jobs of different users in turn: Slurm is asked for a limited time only."""
    of_user: dict[int | None, list[Question]] = {}
    for question in questions:
        job = jobs.get(question.job)
        of_user.setdefault(None if job is None else job.user_id, []).append(question)
    return tuple(each for turn in zip_longest(*of_user.values()) for each in turn if each is not None)


def _frozen(value: Any) -> Any:
    return value.frozen() if isinstance(value, Kept) else value
