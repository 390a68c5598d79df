"""A Slurm that keeps state, held to the contract that real Slurm passes.

What Steward does is SlurmPort; what an admin, a user or a fault does are methods of the cluster behind it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Self

from steward.adapters.slurm import narrow, rules
from steward.adapters.slurm.include import parse_partitions
from steward.model.action import NudgeJob
from steward.model.fit import UNKNOWN, Fit, FitState, Question
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState, other_parts
from steward.model.mark import Mark
from steward.model.node import Node, NodeBase
from steward.model.partition import Partition, PartitionState
from steward.model.reservation import Reservation
from steward.ports import Permanent, Retryable, SlurmPort, Stale
from tests.fakes.derive import derived
from tests.fakes.slurm_cluster import HOLDS, FakeCluster


def _command(name: str) -> Callable[..., None]:
    return lambda slurm, *given, **named: slurm._answer()


@derived(SlurmPort, _command)
class FakeSlurm(FakeCluster, SlurmPort):
    """A command that is not here changes nothing that Slurm shows to Steward."""

    @classmethod
    def with_nodes(cls, *names: str, cpus: int = 4) -> Self:
        table = {
            NodeName(name): Node(
                name=NodeName(name),
                base=NodeBase.IDLE,
                partitions=frozenset({"main"}),
                address="127.0.0.1",
                cpus=cpus,
                memory_mb=500,
                boot_time=500.0,
                slurmd_started=600.0,
            )
            for name in names
        }
        return cls(node_table=table)

    def describe(self) -> str:
        return "a fake Slurm"

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        self._answer()
        return narrow.of_nodes(self.shown_nodes(), only)

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        self._answer()
        return narrow.of_jobs(dict(self.job_table), only, on)

    def drain(self, marks: Mapping[NodeName, Mark], cleared: Collection[NodeName] = ()) -> None:
        rules.may_take_out(self.nodes(), sorted(marks), cleared)
        for name, mark in marks.items():
            self.set_reason(name, str(mark), user="steward", flags={"DRAIN"})

    def down(self, marks: Mapping[NodeName, Mark]) -> None:
        self.drain(marks)
        for name, mark in marks.items():
            self.go_down(name, str(mark), user="steward")

    def give_back(self, nodes: Iterable[NodeName], mark: Mark, command: str = "") -> None:
        wanted = sorted(set(nodes))
        rules.may_give_back(self.nodes(), wanted, mark, command)
        for name in wanted:
            self.resume(name)

    def requeue(
        self,
        job: JobId,
        exclude: frozenset[NodeName],
        *,
        restart: int | None = None,
        told_at: float | None = None,
    ) -> None:
        found = rules.require_job(self.jobs(), job)
        rules.is_the_run(found, restart)
        rules.may_requeue(found, other_parts(found, self.jobs()), told_at=told_at)
        rules.job_argument(found)
        if not found.requeue:
            raise Permanent(f"Requested operation is presently disabled for job {job}")
        self._back_to_pending(job)
        if not found.is_active:
            self._change(job, excluded=exclude)

    def nudge(self, nudges: Sequence[NudgeJob]) -> None:
        for found, one in rules.to_nudge(self.jobs(), nudges):
            rules.job_argument(found)
            reason = found.reason if found.reason in HOLDS and not one.release else "None"
            self._change(one.job, excluded=one.exclude, eligible=self.now + one.delay_s, reason=reason)

    def allow_requeue(self, job: JobId) -> None:
        rules.job_argument(rules.require_job(self.jobs(), job))
        self._change(job, requeue=True)

    def comment(self, job: JobId, text: str) -> None:
        found = rules.require_job(self.jobs(), job)
        whole = rules.new_comment(found, text)
        if found.is_over:
            raise Stale("it has ended, and there is no accounting")
        self._change(job, admin_comment=whole)

    def extend(self, job: JobId, limit_s: float) -> None:
        found = rules.require_job(self.jobs(), job)
        rules.may_signal(found)
        rules.job_argument(found)
        minutes = rules.limit_minutes(found, limit_s, self.longest)
        if minutes is not None:
            self._change(job, time_limit_s=minutes * 60.0)

    def delay_tasks(self, array: JobId, seconds: float) -> None:
        self._answer()
        for job in [job for job in self.job_table.values() if job.array_job_id == array and job.is_pending]:
            self._change(job.id, eligible=self.now + seconds)

    def set_nice(self, job: JobId, nice: int) -> None:
        found = rules.require_job(self.jobs(), job)
        rules.may_set_nice(found)
        rules.job_argument(found)
        self._change(job, nice=nice, priority=found.priority + found.nice - nice)

    def partitions(self) -> Mapping[str, Partition]:
        self._answer()
        return self.divided.shown(self.node_table)

    def set_gate(self, partition: str, *, open: bool) -> None:
        self._answer()
        self.divided.set(partition, PartitionState.UP if open else PartitionState.DOWN)

    def write_partitions(self, text: str) -> None:
        lines = parse_partitions(text)
        ours = self.divided.ours.keys()
        rules.may_write(lines, ours, self.partitions(), self.nodes())
        rules.may_drop(ours - lines.states.keys(), self.jobs())
        self.divided.write(text)

    def forget_nodes(self, nodes: Iterable[NodeName]) -> None:
        free, busy = rules.may_forget(self.nodes(), nodes)
        for name in free:
            del self.node_table[name]
        if busy:
            raise Retryable(f"jobs are on {busy[0]}: not deleted")

    def set_feature(self, nodes: Iterable[NodeName], prefix: str, word: str) -> None:
        for (available, active), names in rules.by_features(self.nodes(), nodes, prefix, word).items():
            for name in names:
                self.node_table[name] = replace(self.node_table[name], features=available, active_features=active)

    def cancel_replica(self, job: JobId, run: JobId) -> None:
        found = rules.require_job(self.jobs(), job)
        rules.may_cancel_replica(found, run)
        self.job_table[job] = replace(found, state=JobState.CANCELLED, ended=found.started)

    def signal(self, job: JobId, signal: str) -> None:
        rules.may_signal(rules.require_job(self.jobs(), job))
        self.signals.append((job, signal))

    # Deep checks, and nodes that are kept

    def reservations(self) -> Mapping[str, Reservation]:
        self._answer()
        return self.reserved.shown(self.now)

    def reserve(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        self._answer()
        self.reserved.make(name, nodes, seconds, self.now)

    def submit_deep(
        self, name: str, nodes: Iterable[NodeName], argv: Sequence[str], seconds: float, output: str
    ) -> None:
        self._answer()
        if name not in self.reserved.shown(self.now):
            raise Permanent(f"there is no reservation {name}")
        if not self._deep_jobs(name):
            self.reserved.submitted[name] = tuple(argv)
            job = self.submit(name=name, partition=name)
            self._change(job, node_count=len(set(nodes)), reservation=name)

    def keep_nodes(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        self._answer()
        self.reserved.keep(name, nodes, seconds, self.now)

    def gres_used(self) -> Mapping[NodeName, str]:
        self._answer()
        return dict(self.leaked)

    def fits(self, question: Question) -> Fit:
        found = self.job_table.get(question.job)
        if self.refuse is not None or found is None:
            return UNKNOWN
        wish = replace(found, excluded=found.excluded | question.without)
        suiting = self.suiting(wish, question.reservation)
        idle = [node.name for node in suiting if node.base is NodeBase.IDLE]
        if idle:
            return Fit(state=FitState.NOW, nodes=frozenset(idle[:1]))
        pinned = self.pinned.pop(question.job, None)
        is_pinned = pinned is not None and any(
            n.base is NodeBase.IDLE for n in self.suiting(wish, question.reservation)
        )
        if pinned is not None:
            self.pinned[question.job] = pinned
        missing = "nodelist" if is_pinned else ""
        if not suiting:
            return Fit(state=FitState.NEVER, missing=missing)
        return Fit(state=FitState.LATER, in_s=60.0, nodes=frozenset({suiting[0].name}), missing=missing)

    def free_nodes(self, name: str) -> None:
        self._answer()
        self.reserved.free(name)

    def release(self, name: str) -> None:
        self._answer()
        for job in self._deep_jobs(name):
            self.cancel(job)
        self.reserved.drop(name)

    def _deep_jobs(self, name: str) -> list[JobId]:
        return [job.id for job in self.job_table.values() if job.deep_check == name and not job.is_over]
