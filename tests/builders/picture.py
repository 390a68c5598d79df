"""`a_cluster()` is a healthy picture; each method gives a new one in which one thing is different."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from steward.model.agent_action import Action
from steward.model.ask import Ask, AskKind, OptedIn
from steward.model.desired import Desired
from steward.model.health import Advice, Finding, Incarnation, Outcome, Severity
from steward.model.ids import AskId, BootId, InstanceId, JobId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.job import Job, JobState
from steward.model.memory import Memory
from steward.model.node import Node, NodeBase, Reason
from steward.model.observed import AgentView, Freshness, Observed
from steward.model.plan import Plan
from steward.model.resume_mode import ResumeMode
from steward.model.resume_policy import ResumePolicy
from steward.model.witness import Witness, WitnessSeen
from steward.policy.plan import plan
from steward.workflows.effects import Lane, row_of
from tests.builders.want import a_want, acts, but

T0 = 1_700_000_000.0
"""When every story begins (Unix s)."""
ON = ResumeMode.parse("1")
USER = 1000

K = TypeVar("K")
V = TypeVar("V")


def n(name: str) -> NodeName:
    return NodeName(name)


def names(*given: str) -> frozenset[NodeName]:
    return frozenset(NodeName(name) for name in given)


def changed(mapping: Mapping[K, V], key: K, change: Callable[[V], V]) -> dict[K, V]:
    return {**mapping, key: change(mapping[key])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is seen, wanted and remembered at one moment; `plan()` decides on it, `then` goes on from there."""

    seen: Observed
    want: Desired
    memory: Memory = field(default_factory=Memory)
    now: float = T0

    def plan(self) -> Plan:
        return plan(replace(self.seen, at=self.now), self.want, self.memory, self.now)

    def actions(self) -> list[Action]:
        """What is planned, but for comments: no decision rests on those."""
        return actions_of(self.plan())

    def then(self, after_s: float = 0.0) -> "Picture":
        """The same world later, with the memory of what was just decided."""
        return replace(self, memory=self.plan().memory, now=self.now + after_s)

    def wait(self, seconds: float, every_s: float = 10.0) -> "Picture":
        """The same world for `seconds`, looked at as often as a head would."""
        picture = self
        while seconds > 0:
            picture, seconds = picture.then(min(seconds, every_s)), seconds - every_s
        return picture.then()

    def after(self, seconds: float) -> "Picture":
        return replace(self, now=self.now + seconds)

    def see(self, **fields: Any) -> "Picture":
        return replace(self, seen=replace(self.seen, **fields))

    def node(self, name: str, **fields: Any) -> "Picture":
        return self.see(nodes=changed(self.seen.nodes, n(name), lambda node: replace(node, **fields)))

    def agent(self, name: str, **fields: Any) -> "Picture":
        return self.see(agents=changed(self.seen.agents, n(name), lambda view: replace(view, **fields)))

    def repair(self, **fields: Any) -> "Picture":
        return replace(self, want=replace(self.want, repair=but(self.want.repair, **fields)))

    def resume(self, **fields: Any) -> "Picture":
        return replace(self, want=replace(self.want, resume=but(self.want.resume, **fields)))

    def agent_lost(self, *given: str, ago_s: float = 1.0) -> "Picture":
        picture = self
        for name in given:
            at = self.now - ago_s
            picture = picture.agent(name, connected=False, lost_at=at, last_heard=at - 1, lost_why="connection reset")
        return picture

    def witnessed(self, name: str, result: Witness, ago_s: float = 0.0) -> "Picture":
        return self.agent(name, witness=WitnessSeen(result=result, at=self.now - ago_s))

    def lost(self, *given: str) -> "Picture":
        """Agent gone, and nobody listens at slurmd's port."""
        picture = self.agent_lost(*given)
        for name in given:
            picture = picture.witnessed(name, Witness.REFUSED)
        return picture

    def heard(self, *given: str) -> "Picture":
        """Their agents are back."""
        picture = self
        for name in given:
            picture = picture.agent(name, connected=True, late=False, lost_at=None, last_heard=self.now)
        return picture

    def failing(self, name: str, severity: Severity = Severity.FATAL, **fields: Any) -> "Picture":
        default = {"check": "kernel_log", "text": "Xid 79", "at": self.now, "event": True, "advice": Advice.REPLACE}
        finding = Finding(outcome=Outcome.FAILED, severity=severity, **{**default, **fields})
        return self.agent(name, findings=(finding,))

    def down(self, name: str, reason: str) -> "Picture":
        return self.node(name, base=NodeBase.DOWN, flags=frozenset({"DRAIN"}), reason=Reason(text=reason, at=self.now))

    def drained(self, name: str, reason: str, flag: str = "DRAIN") -> "Picture":
        return self.node(name, flags=frozenset({flag}), reason=Reason(text=reason, user="root", at=self.now))

    def marked(self, name: str) -> "Picture":
        """Our case's drain or down took effect."""
        case = next(c for c in self.memory.cases.values() if c.node == name and c.is_open)
        mark = f"steward:{case.check}:{case.rung.value}:{case.id}"
        is_hard = case.trigger.value in ("lost", "fatal")
        return self.down(name, mark) if is_hard else self.drained(name, mark)

    def job(self, id: int = 7, on: tuple[str, ...] = ("n1", "n2", "n3"), **fields: Any) -> "Picture":
        """A job of USER's, running if not said otherwise."""
        default: dict[str, Any] = {
            "name": "train",
            "state": JobState.RUNNING,
            "user_id": USER,
            "nodes": names(*on),
            "batch_host": n(on[0]) if on else None,
            "started": self.now - 600,
            "submitted": self.now - 700,
            "partition": "main",
            "node_count": len(on),
        }
        job = Job(id=JobId(id), **{**default, **fields})
        return self.see(jobs={**self.seen.jobs, job.id: job})

    def change_job(self, id: int = 7, **fields: Any) -> "Picture":
        return self.see(jobs=changed(self.seen.jobs, JobId(id), lambda job: replace(job, **fields)))

    def opted_in(
        self,
        id: int = 7,
        mode: ResumeMode = ON,
        uid: int = USER,
        restart: int = 0,
        by: tuple[str, ...] = (),
        script: tuple[str, str] | None = None,
    ) -> "Picture":
        """`by`: the nodes that told so; `script`: the node and boot in which the script began, as that node told."""
        began_in = frozenset({(n(script[0]), BootId(script[1]))} if script else ())
        told = names(*by, *(node for node, _ in began_in))
        word = OptedIn(job=JobId(id), uid=uid, mode=mode, restart=restart, at=self.now, told_by=told, began_in=began_in)
        return self.see(opted_in=(*self.seen.opted_in, word))

    def ask(self, kind: AskKind = AskKind.STEP, id: int = 7, node: str = "n1", **fields: Any) -> "Picture":
        """A shim of the job waits on `node`."""
        default: dict[str, Any] = {
            "id": AskId(f"{node}-{kind.value}-{len(self.seen.asks)}"),
            "step": "0",
            "uid": USER,
            "mode": ON,
            "attempt": 1,
            "restart": 0,
            "status": 256,
            "at": self.now,
        }
        ask = Ask(kind=kind, job=JobId(id), node=n(node), **{**default, **fields})
        return self.see(asks=(*self.seen.asks, ask))

    def checked(self, *given: str) -> "Picture":
        """These agents answered the last `check now`."""
        picture = self
        for name in given:
            picture = picture.agent(name, checked_at=self.now)
        return picture

    def requeued(self, id: int = 7, **fields: Any) -> "Picture":
        job = self.seen.jobs[JobId(id)]
        default: dict[str, Any] = {"reason": "BeginTime", "restarts": job.restarts + 1, "started": None}
        return self.change_job(id, state=JobState.PENDING, nodes=frozenset(), **{**default, **fields})


def a_cluster(count: int = 6, *, provider: bool = True, **repair: Any) -> Picture:
    """`count` idle nodes n1.., each with an instance, an agent and (with a provider) a slot. What degrades a node
    drains it at once, if `repair` does not say otherwise."""
    all_names = [n(f"n{i}") for i in range(1, count + 1)]
    slots = {name: Slot(node=name, group="main") for name in all_names} if provider else {}
    seen = Observed(
        at=T0,
        nodes={name: a_node(name) for name in all_names},
        agents={name: an_agent(name) for name in all_names},
        agents_since=T0 - 10_000,
        provider=Freshness.FRESH,
        instances={InstanceId(f"i-{name}"): an_instance(name) for name in all_names} if provider else {},
    )
    want = a_want(resume=ResumePolicy(), repair=acts(**{"settle_degraded_s": 0.0, **repair}), slots=slots)
    return Picture(seen=seen, want=want)


def a_node(name: NodeName) -> Node:
    return Node(name=name, base=NodeBase.IDLE, partitions=frozenset({"main"}), slurmd_started=T0 - 20_000)


def an_agent(name: NodeName) -> AgentView:
    who = Incarnation(instance=InstanceId(f"i-{name}"), boot=BootId("boot-1"))
    return AgentView(node=name, incarnation=who, connected=True, last_heard=T0, reported_at=T0 - 10)


def an_instance(name: NodeName) -> Instance:
    return Instance(id=InstanceId(f"i-{name}"), node=name, state=InstanceState.RUNNING, launched=T0 - 20_000)


def actions_of(plan: Plan) -> list[Action]:
    """A plan's actions, but for comments."""
    return [action for action in plan.actions if row_of(action).lane is not Lane.COMMENTS]


def action_types(plan: Plan) -> list[type[Action]]:
    return [type(action) for action in actions_of(plan)]
