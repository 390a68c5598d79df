"""An applier with all its ports faked, and actions for it."""

from dataclasses import dataclass, field

from steward.model.action import (
    AnswerAsk,
    DownNode,
    DrainNode,
    LaunchInstance,
    RequeueJob,
)
from steward.model.agent_action import Action
from steward.model.ask import Answer, Ask, AskKind
from steward.model.ids import AskId, CaseId, JobId, Key, NodeName
from steward.model.instance import Slot
from steward.model.job import Job, JobState
from steward.model.mark import Mark
from steward.model.observed import Observed
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from steward.workflows.apply import Applier
from steward.workflows.effects import Ports
from steward.workflows.journal import Journal
from tests.fakes.clock import FakeClock
from tests.fakes.head_ports import FakeAgents, FakeProvider, FakeSite, FakeStore, FakeWitness
from tests.fakes.slurm import FakeSlurm

WHY = Why(rule="test", text="a test wants it")


N1, N2, J7 = NodeName("n1"), NodeName("n2"), JobId(7)


def mark(case: str = "c1") -> Mark:
    return Mark(check="agent", action="replace", id=case)


def down(node: NodeName = N1, case: str = "c1") -> DownNode:
    return DownNode(key=Key(f"down:{node}"), why=WHY, node=node, mark=mark(case))


def drain(node: NodeName, case: str) -> DrainNode:
    return DrainNode(key=Key(f"drain:{node}"), why=WHY, node=node, mark=mark(case))


def requeue() -> RequeueJob:
    return RequeueJob(key=Key("requeue:7"), why=WHY, job=J7, exclude=frozenset({N1}))


def answer(word: Answer = Answer.REQUEUE, exclude: frozenset[NodeName] = frozenset()) -> AnswerAsk:
    return AnswerAsk(key=Key("answer:a1"), why=WHY, ask=AskId("a1"), job=J7, node=N2, answer=word, exclude=exclude)


def launch() -> LaunchInstance:
    slot = Slot(node=N1, group="main")
    return LaunchInstance(key=Key("launch:c1-0"), why=WHY, slot=slot, token="c1-0", case=CaseId("c1"))


def an_ask() -> Ask:
    mode = ResumeMode.parse("1")
    return Ask(
        id=AskId("a1"),
        kind=AskKind.BATCH,
        job=J7,
        step="batch",
        node=N2,
        uid=1000,
        mode=mode,
        attempt=1,
        restart=0,
        status=256,
        at=1000.0,
    )


@dataclass
class Bench:
    """An applier with all its ports faked."""

    slurm: FakeSlurm = field(default_factory=lambda: FakeSlurm.with_nodes("n1", "n2", "n3"))
    provider: FakeProvider = field(default_factory=FakeProvider)
    agents: FakeAgents = field(default_factory=FakeAgents)
    witness: FakeWitness = field(default_factory=FakeWitness)
    site: FakeSite = field(default_factory=FakeSite)
    store: FakeStore = field(default_factory=FakeStore)
    rings: list[str] = field(default_factory=list)
    counted: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        journal = Journal(self.store, FakeClock(), lambda kind, outcome: self.counted.append((kind, outcome)))
        ports = Ports(
            slurm=self.slurm, provider=self.provider, agents=self.agents, witness=self.witness, site=self.site
        )
        self.applier = Applier(
            ports,
            journal,
            changed=lambda subject: self.rings.append("changed"),
            listing=lambda: self.rings.append("listing"),
            ring=lambda: self.rings.append("bell"),
        )

    def apply(self, *actions: Action) -> None:
        self.applier.apply(actions, Observed(at=1000.0, nodes=self.slurm.node_table), lambda: None)

    def run_job(self) -> None:
        job = Job(id=J7, name="train", state=JobState.RUNNING, user_id=1000, nodes=frozenset({N2}), batch_host=N2)
        self.slurm.job_table[J7] = job
        self.agents.waiting[AskId("a1")] = an_ask()
