"""The simulated Slurm: nodes with reasons, jobs that run, are requeued and wait, and a scheduler that looks at them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from steward.model.comment import with_own_part
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.mark import Mark
from steward.model.node import Node, NodeBase, Reason
from steward.model.reservation import Reservation
from steward.simulate.agenda import Agenda
from steward.simulate.numbers import WorldNumbers
from steward.simulate.table import ShownTable

PARTITION = "main"
USER = 1000
_DRAIN, _COMPLETING = frozenset({"DRAIN"}), frozenset({"COMPLETING"})
_NONE: frozenset[str] = frozenset()


@dataclass(slots=True)
class QueueState:
    """What Slurm knows of a job beside its record: when it may begin, and which nodes its last run still has."""

    begin: float
    cleaning: frozenset[NodeName] = frozenset()
    cleaned_at: float = 0.0
    token: int = 0
    """Counts the ends of runs, so that a later end makes an earlier clean-up void."""


class SimulatedSlurm:
    """Its records are replaced, never changed, so that a record that did not change is the same object."""

    def __init__(self, agenda: Agenda, numbers: WorldNumbers, chance: Callable[[], float]) -> None:
        """Take a clock, the numbers and a source of numbers from 0 to 1."""
        self._agenda, self._numbers, self._chance = agenda, numbers, chance
        self.nodes: ShownTable[NodeName, Node] = ShownTable()
        self.jobs: ShownTable[JobId, Job] = ShownTable()
        self.kept: ShownTable[str, Reservation] = ShownTable()
        self.runs: dict[JobId, QueueState] = {}
        self.on_start: Callable[[Job], None] = lambda job: None
        self.on_end: Callable[[JobId], None] = lambda job: None
        self.used: dict[NodeName, JobId] = {}
        """Node -> the job that runs on it."""
        self._plain: dict[tuple[NodeName, NodeBase, bool], Node] = {}
        self._look_at: float | None = None
        self._next_job = 0

    @property
    def now(self) -> float:
        return self._agenda.now

    # Nodes

    def add(self, name: NodeName, started: float) -> None:
        """Add a node."""
        parts = frozenset({PARTITION})
        self.nodes.put(name, Node(name=name, base=NodeBase.IDLE, partitions=parts, slurmd_started=started))

    def register(self, name: NodeName, started: float) -> None:
        """Take the registration of a node's slurmd; a node that is DOWN without a drain serves again."""
        node = replace(self.nodes[name], slurmd_started=started, responding=True)
        if node.is_down and not node.is_drain:
            node = replace(node, base=NodeBase.IDLE, reason=None)
        self.nodes.put(name, node)
        self.look()

    def drain(self, name: NodeName, reason: Reason) -> None:
        """Set DRAIN."""
        node = self.nodes[name]
        self.nodes.put(name, replace(node, flags=node.flags | _DRAIN, reason=reason))

    def take_out(self, name: NodeName, mark: Mark) -> str:
        """Drain a node with Steward's mark; the error, or empty."""
        node = self.nodes[name]
        if node.is_foreign and node.reason is not None:
            return "stale: its reason is not Steward's"
        self.drain(name, Reason(text=str(mark), user="slurm", at=self.now))
        return ""

    def down(self, name: NodeName, reason: Reason | None = None) -> None:
        """Set DOWN: the job of the node is requeued."""
        node = self.nodes[name]
        self.nodes.put(name, replace(node, base=NodeBase.DOWN, reason=node.reason or reason))
        job = self.used.get(name)
        if job is not None:
            self.requeue(job, lost=name)

    def silent(self, name: NodeName) -> None:
        """Set a node DOWN that did not answer for SlurmdTimeout."""
        node = self.nodes[name]
        self.nodes.put(name, replace(node, responding=False))
        if not node.is_down:
            self.down(name, Reason(text="Not responding", user="slurm", at=self.now))

    def give_back(self, name: NodeName) -> None:
        """Return a node to service (`state=resume`)."""
        node = self.nodes[name]
        self.nodes.put(name, replace(node, base=self._base(name), flags=node.flags - _DRAIN, reason=None))
        self.look()

    def set_feature(self, names: Iterable[NodeName], prefix: str, word: str) -> None:
        """Give nodes one feature that begins with `prefix`; an empty word gives none."""
        for name in sorted(names):
            node = self.nodes[name]
            others = frozenset(each for each in node.features if not each.startswith(prefix))
            features = others | ({prefix + word} if word else _NONE)
            self.nodes.put(name, replace(node, features=features, active_features=features))

    def _base(self, name: NodeName) -> NodeBase:
        return NodeBase.ALLOCATED if name in self.used else NodeBase.IDLE

    def _show(self, name: NodeName, *, cleaning: bool = False) -> None:
        """Show what a node is used for; a plain node's records are made once."""
        node = self.nodes[name]
        base = node.base if node.is_down else self._base(name)
        if node.is_down or node.flags - _COMPLETING or node.reason is not None:
            flags = node.flags - _COMPLETING | (_COMPLETING if cleaning else _NONE)
            self.nodes.put(name, replace(node, base=base, flags=flags))
            return
        known = self._plain.get((name, base, cleaning))
        if known is None or known.slurmd_started != node.slurmd_started or known.features != node.features:
            known = replace(node, base=base, flags=_COMPLETING if cleaning else _NONE)
            self._plain[name, base, cleaning] = known
        self.nodes.put(name, known)

    # Jobs

    def submit(self, nodes: int) -> JobId:
        """Submit a job."""
        self._next_job += 1
        id = JobId(self._next_job)
        job = Job(
            id=id,
            name="train",
            state=JobState.PENDING,
            user_id=USER,
            node_count=nodes,
            partition=PARTITION,
            submitted=self.now,
            priority=1_000_000 - id,
        )
        self.jobs.put(id, job)
        self.runs[id] = QueueState(begin=self.now)
        self.look()
        return id

    def change(self, id: JobId, **changed: object) -> None:
        """Change fields of a job's record."""
        self.jobs.put(id, replace(self.jobs[id], **changed))  # type: ignore[arg-type]

    def requeue(self, id: JobId, lost: NodeName | None = None, delay_s: float | None = None) -> None:
        """Put a running job back into the queue; `lost` is the node that died."""
        job, run = self.jobs[id], self.runs[id]
        lingers = lost is not None and lost == job.batch_host and len(job.nodes) > 1
        self._leave(id, self._numbers.linger_s if lingers else self._numbers.clean_up_s)
        run.begin = self.now + (self._numbers.requeue_s if delay_s is None else delay_s)
        self.change(
            id,
            state=JobState.PENDING,
            nodes=frozenset(),
            restarts=job.restarts + 1,
            reason="BeginTime",
            started=None,
            eligible=run.begin,
            flags=_COMPLETING,
        )
        self.on_end(id)
        self.look(run.begin)

    def finish(self, id: JobId, state: JobState) -> None:
        """End a job for good."""
        self._leave(id, self._numbers.clean_up_s)
        self.change(id, state=state, ended=self.now, flags=_COMPLETING)
        self.on_end(id)

    def _leave(self, id: JobId, seconds: float) -> None:
        """Begin the clean-up of the nodes of a run."""
        run = self.runs[id]
        run.token += 1
        run.cleaning = self.jobs[id].nodes
        for name in run.cleaning:
            self.used.pop(name, None)
            self._show(name, cleaning=True)
        self._clean_in(id, seconds)

    def _clean_in(self, id: JobId, seconds: float) -> None:
        run = self.runs[id]
        run.cleaned_at, token = self.now + seconds, run.token
        self._agenda.after(seconds, lambda: self._cleaned(id, token))

    def _cleaned(self, id: JobId, token: int) -> None:
        run = self.runs[id]
        if run.token != token or not run.cleaning:
            return
        for name in run.cleaning:
            self._show(name)
        run.cleaning = frozenset()
        self.change(id, flags=_NONE)
        self.look()

    def let_go(self, id: JobId) -> None:
        """Steward's agents end what is left of the lost run."""
        run = self.runs[id]
        if run.cleaning and run.cleaned_at > self.now + self._numbers.let_go_s:
            self._clean_in(id, self._numbers.let_go_s)

    def nudge(self, id: JobId, excluded: frozenset[NodeName], delay_s: float) -> str:
        """Make a pending job eligible; the error, or empty."""
        job = self.jobs[id]
        if not job.is_pending or job.is_completing:
            return "stale: the job does not wait"
        self.runs[id].begin = self.now + delay_s
        reason = "BeginTime" if delay_s else "Resources"
        self.change(id, excluded=excluded, reason=reason, eligible=self.now + delay_s)
        self.look(self.now + delay_s)
        return ""

    def comment(self, id: JobId, text: str) -> None:
        """Write Steward's part of a job's comment."""
        self.change(id, admin_comment=with_own_part(self.jobs[id].admin_comment, text))

    def keep(self, name: str, nodes: frozenset[NodeName], seconds: float) -> None:
        """Have no job start on these nodes for a while."""
        self.kept.put(name, Reservation(name=name, nodes=nodes, starts=self.now, ends=self.now + seconds))
        self._agenda.after(seconds, lambda: self._lapse(name))

    def free(self, name: str) -> None:
        """End a reservation."""
        self.kept.drop(name)
        self.look()

    def _lapse(self, name: str) -> None:
        known = self.kept.get(name)
        if known is not None and known.ends <= self.now:
            self.free(name)

    # The scheduler

    def look(self, when: float | None = None) -> None:
        """Have the scheduler look at the queue soon after `when` (now, if not given)."""
        at = max(self.now, when or self.now) + self._numbers.look_s * self._chance()
        if self._look_at is None or at < self._look_at:
            self._look_at = at
            self._agenda.at(at, self._schedule)

    def _schedule(self) -> None:
        if self._look_at is None or self.now < self._look_at:
            return  # an earlier look took its place
        self._look_at = None
        waiting = [job for job in self.jobs.rows.values() if job.is_pending]
        if not waiting:
            return
        reserved = {name for each in self.kept.rows.values() for name in each.nodes}
        free = [name for name, node in self.nodes.rows.items() if _is_free(node) and name not in reserved]
        for job in sorted(waiting, key=lambda job: (job.id + job.nice, job.id)):
            run = self.runs[job.id]
            if job.is_completing:
                continue
            if self.now < run.begin:
                self.look(run.begin)
                continue
            mine = [name for name in free if name not in job.excluded][: job.node_count]
            if len(mine) == job.node_count:
                self._start(job, mine)
                taken = set(mine)
                free = [name for name in free if name not in taken]

    def _start(self, job: Job, nodes: Iterable[NodeName]) -> None:
        mine = list(nodes)
        for name in mine:
            self.used[name] = job.id
            self._show(name)
        self.change(
            job.id,
            state=JobState.RUNNING,
            nodes=frozenset(mine),
            batch_host=mine[0],
            started=self.now,
            reason="",
        )
        self.on_start(self.jobs[job.id])


def _is_free(node: Node) -> bool:
    return node.base is NodeBase.IDLE and node.is_schedulable and not node.flags & _COMPLETING
