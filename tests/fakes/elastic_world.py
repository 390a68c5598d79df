"""A small world of one elastic run: Slurm that starts replicas on idle nodes, a coordinator that does as it is told."""

from dataclasses import dataclass, field, replace

from steward.model.action import CancelReplica
from steward.model.agent_action import Action, ResizeRun, SubmitReplica
from steward.model.desired import ElasticPolicy
from steward.model.elastic import Activity, ElasticRun, ElasticWord, FailedSubmit, replica_comment
from steward.model.events import Event
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.node import NodeBase
from steward.model.plan import Plan
from tests.builders.picture import USER, Picture, a_cluster, n

RUN = JobId(7)
QUICK = ElasticPolicy(
    grace_s=20.0,
    settle_s=4.0,
    faulty_s=6.0,
    snooze_s=10.0,
    backoff_s=20.0,
    backoff_most_s=80.0,
    form_s=60.0,
    pause_s=2.0,
)


@dataclass(slots=True)
class ElasticWorld:
    """`saves_s` and `forms_s` are what saving and starting take. `deaf`: the coordinator carries nothing out. `joins`:
    the launchers of replicas come to the coordinator."""

    nodes: int = 6
    base: int = 2
    spec: str = "5"
    policy: ElasticPolicy = QUICK
    saves_s: float = 1.0
    forms_s: float = 2.0
    deaf: bool = False
    refuses: bool = False
    joins: bool = True
    steerable: bool = True
    """Its program asks whether to save."""
    seams: bool = True
    """Its ranks come to the end of a step, and begin to save there when they are asked."""
    cleans_s: float = 0.0
    """How long a node cleans up behind a job that was ended."""
    starts_s: float = 0.0
    """How long somebody else's job is still shown as waiting when its nodes are busy already."""
    uid: int = USER
    picture: Picture = field(init=False)
    word: ElasticWord = field(init=False)
    killed: int = 0
    """Changes that stopped ranks before they had saved."""
    pending: ResizeRun | None = None
    due: float = 0.0
    next_job: int = 100
    ordered: list[ResizeRun] = field(default_factory=list)
    submitted: list[SubmitReplica] = field(default_factory=list)
    cancelled: list[JobId] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    dead: set[NodeName] = field(default_factory=set)
    starting: dict[JobId, tuple[float, frozenset[NodeName]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        on = tuple(f"n{i + 1}" for i in range(self.base))
        self.picture = a_cluster(self.nodes)
        self.picture = replace(self.picture, want=replace(self.picture.want, elastic=self.policy)).job(7, on=on)
        members = frozenset(map(n, on))
        self.word = ElasticWord(
            run=RUN,
            restart=0,
            uid=self.uid,
            node=n("n1"),
            spec=self.spec,
            state=Activity.RUNNING,
            generation=1,
            members=members,
            joined=members,
            step=1,
            consumed=self.base,
            steerable=self.steerable,
            at=self.now,
        )
        self._settle()

    @property
    def now(self) -> float:
        return self.picture.now

    @property
    def run(self) -> ElasticRun:
        return self.picture.memory.elastic[RUN]

    @property
    def size(self) -> int:
        return len(self.word.members)

    def jobs(self) -> dict[JobId, Job]:
        return dict(self.picture.seen.jobs)

    def replicas(self) -> list[Job]:
        return [job for id, job in self.jobs().items() if id >= 100 and job.comment and not job.is_over]

    def step(self, seconds: float = 1.0) -> Plan:
        """One plan, what it does, and the world a little later."""
        plan = self.picture.plan()
        self.events += [event for event in plan.events if event.kind.startswith("elastic.")]
        self.picture = replace(self.picture, memory=plan.memory)
        for action in plan.actions:
            self._apply(action)
        self.picture = replace(self.picture, now=self.now + seconds)
        self._coordinate()
        self._schedule()
        self._settle()
        return plan

    def go(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.step()

    def _apply(self, action: Action) -> None:
        match action:
            case ResizeRun():
                if not any(each.generation == action.generation for each in self.ordered):
                    self.ordered.append(action)
                if action.members == self.word.members and action.grace_s and not self.deaf:
                    self._call_off()
                    return
                newest = max(self.word.generation, self.pending.generation if self.pending else 0)
                if not self.deaf and action.generation > newest:
                    self.pending = action
                    self.due = self.now + (self.saves_s if action.grace_s else 0.0)
                    self.word = replace(self.word, state=Activity.SAVING)
                    self.killed += not action.patient and bool(action.grace_s) and self.saves_s > action.grace_s
            case SubmitReplica():
                self.submitted.append(action)
                self._submit(action)
            case CancelReplica():
                self.cancelled.append(action.job)
                self.end(action.job)
            case _:
                pass

    def _call_off(self) -> None:
        if self.pending is not None and not self.word.begins_to_save:
            self.pending = None
            self.word = replace(self.word, state=Activity.RUNNING)

    def _submit(self, action: SubmitReplica) -> None:
        if self.refuses:
            failed = FailedSubmit(token=action.token, why="sbatch: no")
            self.word = replace(self.word, failed=(*self.word.failed, failed)[-8:])
            return
        self.queue(action.nodes, comment=replica_comment(RUN, action.token))

    def queue(self, nodes: int, comment: str = "", **fields: object) -> JobId:
        """A job that waits: of somebody else, where it has no comment."""
        id, self.next_job = JobId(self.next_job), self.next_job + 1
        self.picture = self.picture.job(
            id,
            on=(),
            state=JobState.PENDING,
            started=None,
            submitted=self.now,
            reason="Resources",
            node_count=nodes,
            comment=comment,
            requeue=False,
            **fields,
        )
        return id

    def end(self, id: JobId) -> None:
        if not self.jobs()[id].is_over:
            flags = frozenset({"COMPLETING"} if self.cleans_s else ())
            self.picture = self.picture.change_job(id, state=JobState.CANCELLED, ended=self.now, flags=flags)

    def warn(self, id: JobId) -> None:
        """Slurm preempts a replica: its members are told, and the coordinator acts alone."""
        going = self.jobs()[id].nodes & self.word.members
        self.word = replace(self.word, leaving=self.word.leaving | going)

    def die(self, name: NodeName) -> None:
        """A node of a replica is lost, with the replica's job."""
        self.dead.add(name)
        self.picture = self.picture.node(name, base=NodeBase.DOWN, responding=False)
        for id, job in self.jobs().items():
            if name in job.nodes and job.is_active and id >= 100:
                self.picture = self.picture.change_job(id, state=JobState.NODE_FAIL, ended=self.now)

    def revive(self, name: NodeName) -> None:
        self.dead.discard(name)
        self.picture = self.picture.node(name, base=NodeBase.IDLE, responding=True)

    def _coordinate(self) -> None:
        word = self.word
        if self.pending is not None and self.pending.grace_s and not word.begins_to_save:
            if self.seams:
                self.word = replace(word, begins_to_save=True)
            elif self.pending.patient:
                self.due = self.now + self.saves_s
                return
        if self.pending is not None and self.now >= self.due:
            order, self.pending = self.pending, None
            members = frozenset(order.members) - self.dead
            self.word = replace(word, state=Activity.FORMING, generation=order.generation, members=members)
            self.word = replace(self.word, begins_to_save=False)
            self.due = self.now + self.forms_s
        elif word.state is Activity.FORMING and self.now >= self.due:
            self.word = replace(word, state=Activity.RUNNING, leaving=word.leaving & word.members)
        elif word.state is Activity.RUNNING and not self.dead & word.members:
            self.word = replace(word, step=(word.step or 0) + 1, consumed=(word.consumed or 0) + len(word.members))

    def _schedule(self) -> None:
        """Whoever came first has idle nodes; others' jobs before replicas."""
        for job in self.jobs().values():
            if job.is_completing and self.now >= (job.ended or 0.0) + self.cleans_s:
                self.picture = self.picture.change_job(job.id, flags=frozenset())
        waiting = [job for job in self.jobs().values() if job.is_pending]
        for job in sorted(waiting, key=lambda each: (bool(each.comment), each.id)):
            idle = max((sorted(self._idle_in(part) - job.excluded) for part in job.partitions), key=len)
            if job.id in self.starting or len(idle) >= job.node_count:
                since, nodes = self.starting.setdefault(job.id, (self.now, frozenset(idle[: job.node_count])))
                if not job.comment and self.now < since + self.starts_s:
                    continue
                del self.starting[job.id]
                fields = {"state": JobState.RUNNING, "nodes": nodes, "started": self.now, "reason": ""}
                self.picture = self.picture.change_job(job.id, batch_host=min(nodes), **fields)

    def _idle(self) -> set[NodeName]:
        taken = {node for job in self._busy() for node in job.nodes}
        taken |= {node for _, nodes in self.starting.values() for node in nodes}
        return set(self.picture.seen.nodes) - taken - self.dead

    def _idle_in(self, part: str) -> set[NodeName]:
        return {name for name in self._idle() if part in self.picture.seen.nodes[name].partitions}

    def _busy(self) -> list[Job]:
        return [job for job in self.jobs().values() if job.is_active or job.is_completing]

    def _settle(self) -> None:
        """What the nodes and the agent show."""
        idle = self._idle()
        for name in self.picture.seen.nodes:
            if name not in self.dead:
                base = NodeBase.IDLE if name in idle else NodeBase.ALLOCATED
                if self.picture.seen.nodes[name].base is not base:
                    self.picture = self.picture.node(name, base=base)
        base_job = self.jobs()[RUN]
        coming = self.replicas() if self.joins else []
        here = set(base_job.nodes) | {node for job in coming if job.is_active for node in job.nodes}
        self.word = replace(self.word, joined=frozenset(here - self.dead), at=self.now)
        self.picture = self.picture.agent("n1", elastic=(self.word,) if base_job.is_active else ())
