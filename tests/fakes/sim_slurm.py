"""The simulated Slurm: nodes with marks, jobs that run, fail, are requeued and wait for their begin time."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from steward.model.comment import with_own_part
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState
from steward.model.mark import Mark
from steward.model.node import Node, NodeBase, Reason
from steward.model.partition import Partition, PartitionState
from steward.model.reservation import Reservation

REQUEUE_DELAY_S = 121.0
COMPLETING_S = 0.3
GIVES_UP_S = 21.0
"""How long the other nodes of a job try to reach its dead batch host."""
SLURMD_TIMEOUT_S = 300.0
TOP_PRIORITY = 1_000_000
DRAIN = frozenset({"DRAIN"})


@dataclass(slots=True, kw_only=True)
class Run:
    """What a job does besides what Slurm shows: how long it works, and whether its own bug ends it."""

    works_s: float
    spare: bool = False
    bug_after_s: float | None = None
    begin: float = 0.0
    completing_until: float = 0.0
    lingering: frozenset[NodeName] = frozenset()
    """Nodes that try to reach the run's dead batch host until then."""
    started: float = 0.0
    attempt: int = 1
    step_runs: bool = False
    step_started: float = 0.0
    step_s: float | None = None
    """From one step of its work to the next, which it tells; None: it tells none."""
    still_since: float | None = None
    """It does nothing any more: it hangs, or its tasks have ended."""

    @property
    def hangs(self) -> bool:
        return self.step_runs and self.still_since is not None


@dataclass(slots=True)
class SimSlurm:
    nodes: dict[NodeName, Node] = field(default_factory=dict)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    runs: dict[JobId, Run] = field(default_factory=dict)
    silent_since: dict[NodeName, float] = field(default_factory=dict)
    partitions: dict[str, Partition] = field(default_factory=dict)
    began: float = 0.0
    """When slurmctld last began anew."""
    kept: dict[str, Reservation] = field(default_factory=dict)
    """Reservations on whose nodes no new job starts."""
    timed_out: set[JobId] = field(default_factory=set)
    """Jobs that had a node which was silent for longer than Slurm's own SlurmdTimeout."""
    _last_shown: dict[JobId, tuple[Job, Job]] = field(default_factory=dict, repr=False, compare=False)
    """What a job is, and as it was shown: made again only when it changed."""
    _last_nodes: dict[NodeName, tuple[Node, Node]] = field(default_factory=dict, repr=False, compare=False)
    """The same of nodes."""

    # Commands, as scontrol has them: the error, or empty.

    def drain(self, name: NodeName, mark: Mark) -> str:
        node = self.nodes.get(name)
        if node is None:
            return "it is not in Slurm any more"
        if node.is_foreign and node.reason is not None:
            return "its reason is not ours"
        self.nodes[name] = replace(node, flags=node.flags | DRAIN, reason=Reason(text=str(mark)))
        return ""

    def down(self, name: NodeName, mark: Mark, now: float) -> str:
        error = self.drain(name, mark)
        if not error:
            self._set_down(name, now)
        return error

    def set_feature(self, names: Iterable[NodeName], prefix: str, word: str) -> None:
        for name in frozenset(names) & self.nodes.keys():
            others = frozenset(f for f in self.nodes[name].features if not f.startswith(prefix))
            both = others | ({prefix + word} if word else set())
            self.nodes[name] = replace(self.nodes[name], features=both, active_features=both)

    def _set_down(self, name: NodeName, now: float) -> None:
        self.nodes[name] = replace(self.nodes[name], base=NodeBase.DOWN)
        for job in list(self.jobs.values()):
            if name in job.nodes and job.is_active:
                self._lose_node(job, name, now)

    def _lose_node(self, job: Job, name: NodeName, now: float) -> None:
        """With --no-kill (a spare inside) and a living batch host the job goes on, else it is requeued or fails."""
        if self.runs[job.id].spare and name != job.batch_host and len(job.nodes) > 1:
            self.jobs[job.id] = replace(job, nodes=job.nodes - {name})
        elif job.requeue:
            self._back_to_queue(job, now)
            self._linger(job, name, now)
        else:
            self._end(job, JobState.NODE_FAIL, now)

    def _linger(self, job: Job, lost: NodeName, now: float) -> None:
        run = self.runs[job.id]
        if lost == job.batch_host and len(job.nodes) > 1:
            run.lingering, run.completing_until = job.nodes - {lost}, now + GIVES_UP_S

    def let_go(self, id: JobId, nodes: Iterable[NodeName], before: float, now: float) -> None:
        """Agents of these nodes end what began before `before` there and has no task left."""
        run = self.runs[id]
        if self.jobs[id].is_active or run.started >= before or not run.lingering:
            return
        run.lingering -= frozenset(nodes)
        if not run.lingering:
            run.completing_until = min(run.completing_until, now + COMPLETING_S)

    def _back_to_queue(self, job: Job, now: float) -> None:
        run = self.runs[job.id]
        run.begin, run.completing_until = now + REQUEUE_DELAY_S, now + COMPLETING_S
        run.step_runs, run.attempt = False, 1
        self.jobs[job.id] = replace(
            job,
            state=JobState.PENDING,
            nodes=frozenset(),
            restarts=job.restarts + 1,
            reason="BeginTime",
            started=None,
            ended=None,
        )

    def _end(self, job: Job, state: JobState, now: float) -> None:
        self.runs[job.id].step_runs = False
        self.jobs[job.id] = replace(job, state=state, ended=now, nodes=job.nodes)

    def give_back(self, name: NodeName, mark: Mark, command: str) -> str:
        node = self.nodes[name]
        text = node.reason.text.split(" : ")[0] if node.reason else ""
        if text not in (str(mark), command or str(mark)):
            return "its reason is not ours any more"
        self.undrain(name)
        return ""

    def undrain(self, name: NodeName) -> None:
        self.nodes[name] = replace(self.nodes[name], base=NodeBase.IDLE, flags=frozenset(), reason=None)

    def admin(self, name: NodeName, flag: str, text: str, now: float) -> None:
        """A person sets a state with a reason of his own."""
        node = self.nodes[name]
        flags = (node.flags - {"DRAIN", "FAIL"}) | {flag}
        self.nodes[name] = replace(node, flags=flags, reason=Reason(text=text, user="root", at=now))

    def take_out(self, name: NodeName, text: str, now: float) -> None:
        """Slurm itself drains a node; it writes no reason over another one."""
        node = self.nodes[name]
        reason = node.reason or Reason(text=text, user="slurm", at=now)
        self.nodes[name] = replace(node, flags=node.flags | {"DRAIN"}, reason=reason)

    def requeue(self, id: JobId, exclude: frozenset[NodeName], now: float, told_at: float | None = None) -> str:
        job = self.jobs.get(id)
        if job is None or job.is_pending or job.state is JobState.CANCELLED:
            return "not in a state to be requeued"
        if job.state is JobState.COMPLETED and not (told_at is not None and told_at <= (job.ended or 0.0)):
            return "it ended well"
        if not job.requeue:
            return "requeue is disabled for it"
        self._back_to_queue(replace(job, excluded=exclude), now)
        return ""

    def nudge(self, id: JobId, exclude: frozenset[NodeName], now: float, delay_s: float = 0.0) -> str:
        job = self.jobs.get(id)
        if job is None or not job.is_pending or self.is_completing(id, now):
            return "it does not wait"
        self.runs[id].begin = now + delay_s
        self.jobs[id] = replace(job, excluded=exclude, reason="BeginTime" if delay_s else "Resources")
        return ""

    def allow_requeue(self, id: JobId) -> str:
        self.jobs[id] = replace(self.jobs[id], requeue=True)
        return ""

    def comment(self, id: JobId, text: str) -> str:
        self.jobs[id] = replace(self.jobs[id], admin_comment=with_own_part(self.jobs[id].admin_comment, text))
        return ""

    def extend(self, id: JobId, limit_s: float) -> str:
        job = self.jobs[id]
        if not job.is_active:
            return "it does not run"
        if job.time_limit_s is not None and limit_s > job.time_limit_s:
            self.jobs[id] = replace(job, time_limit_s=math.ceil(limit_s / 60) * 60.0)
        return ""

    def set_nice(self, id: JobId, nice: int) -> str:
        self.jobs[id] = replace(self.jobs[id], nice=nice)
        return ""

    def keep(self, name: str, nodes: frozenset[NodeName], seconds: float, now: float) -> str:
        if any(nodes & other.nodes for other in self.kept.values() if other.name != name):
            return "another reservation has some of these nodes"
        self.kept[name] = Reservation(name=name, nodes=nodes, starts=now, ends=now + seconds)
        return ""

    def still_kept(self, now: float) -> dict[str, Reservation]:
        self.kept = {name: each for name, each in self.kept.items() if now < each.ends}
        return dict(self.kept)

    def cancel(self, id: JobId, now: float) -> None:
        if self.jobs[id].is_active or self.jobs[id].is_pending:
            self._end(self.jobs[id], JobState.CANCELLED, now)

    # The world goes on.

    def is_completing(self, id: JobId, now: float) -> bool:
        return now < self.runs[id].completing_until

    def shown(self, now: float) -> dict[JobId, Job]:
        shown = dict[JobId, Job]()
        for id, job in self.jobs.items():
            flags = frozenset({"COMPLETING"} if self.is_completing(id, now) else ())
            last, record = self._last_shown.get(id, (None, job))
            if last is not job or record.flags != flags:
                record = replace(job, flags=flags, priority=TOP_PRIORITY - id - job.nice)
                self._last_shown[id] = job, record
            shown[id] = record
        return shown

    def shown_nodes(self, now: float) -> dict[NodeName, Node]:
        busy = {name for job in self.jobs.values() if job.is_active for name in job.nodes}
        lingering = {name for run in self.runs.values() for name in run.lingering if now < run.completing_until}

        def show(node: Node) -> Node:
            is_used = node.name in busy and node.base is NodeBase.IDLE
            if not is_used and node.name not in lingering:
                return node
            flags = node.flags | ({"COMPLETING"} if node.name in lingering else set())
            base = NodeBase.ALLOCATED if is_used else node.base
            last, shown = self._last_nodes.get(node.name, (None, node))
            if last is not node or (shown.base, shown.flags) != (base, flags):
                shown = replace(node, base=base, flags=flags)
                self._last_nodes[node.name] = node, shown
            return shown

        return {name: show(node) for name, node in self.nodes.items()}

    def hear(self, speaks: dict[NodeName, float | None], now: float) -> None:
        """`speaks`: the start time of the slurmd that answers for each node, None where none does."""
        for name, started in speaks.items():
            node = self.nodes[name]
            if started is not None:
                self.silent_since.pop(name, None)
                node = self._back(node)
                if node.slurmd_started != started or not node.responding:
                    self.nodes[name] = replace(node, slurmd_started=started, responding=True)
                    self._kill_strays(name, now, registered=node.slurmd_started != started)
                continue
            since = self.silent_since.setdefault(name, now)
            if now >= since + SLURMD_TIMEOUT_S and not node.is_down:
                reason = node.reason or Reason(text="Not responding", user="slurm", at=now)
                self.nodes[name] = replace(node, responding=False, reason=reason)
                self.timed_out |= {job.id for job in self.jobs.values() if name in job.nodes and job.is_active}
                self._set_down(name, now)

    def _back(self, node: Node) -> Node:
        """ReturnToService=2: DOWN without DRAIN is over when slurmd answers."""
        if node.is_down and not node.is_drain:
            self.undrain(node.name)
        return self.nodes[node.name]

    def _kill_strays(self, name: NodeName, now: float, *, registered: bool) -> None:
        """A new slurmd knows nothing of the jobs that ran on its node: Slurm takes the node as failed for them."""
        for job in list(self.jobs.values()):
            if registered and job.is_active and name in job.nodes:
                self._lose_node(job, name, now)

    def schedule(self, now: float, free: Iterable[NodeName]) -> list[JobId]:
        """Start what can start; the jobs that began."""
        kept = {name for each in self.still_kept(now).values() if each.starts <= now for name in each.nodes}
        usable = sorted(name for name in free if self.nodes[name].is_schedulable and name not in kept)
        began = []
        for id in sorted(self.jobs, key=lambda id: (id + self.jobs[id].nice, id)):
            job, run = self.jobs[id], self.runs[id]
            if not job.is_pending or now < run.begin or self.is_completing(id, now):
                continue
            mine = [name for name in usable if name not in job.excluded and self._takes(name, job)][: job.node_count]
            if len(mine) < job.node_count:
                continue
            usable = [name for name in usable if name not in mine]
            run.started = run.step_started = now
            run.step_runs, run.attempt, run.lingering, run.still_since = True, 1, frozenset(), None
            self.jobs[id] = replace(
                job, state=JobState.RUNNING, nodes=frozenset(mine), batch_host=mine[0], started=now, reason=""
            )
            began.append(id)
        return began

    def _takes(self, name: NodeName, job: Job) -> bool:
        """Its partition has the node and starts jobs."""
        partition = self.partitions.get(job.partition)
        is_up = partition is None or partition.state is PartitionState.UP
        return is_up and job.partition in self.nodes[name].partitions

    def finish(self, id: JobId, state: JobState, now: float) -> None:
        self._end(self.jobs[id], state, now)
