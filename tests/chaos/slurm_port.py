"""SlurmPort on the simulated cluster, behind a `scontrol` and a controller that can be broken; and AccountingPort
beside it, with a slurmdbd that can die."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from steward.adapters.slurm import narrow, rules
from steward.model.accounting import Accounting
from steward.model.action import (
    CancelJob,
    CancelReplica,
    DropQos,
    ExtendLimit,
    ForgetNode,
    FreeNodes,
    KeepNodes,
    MarkJob,
    MoveJob,
    NudgeJob,
    ReleaseNodes,
    ReserveNodes,
    SetGate,
    SetNice,
    SetNodeCount,
    SetQos,
    SetTeam,
    SignalJob,
    SubmitDeep,
)
from steward.model.fit import UNKNOWN, Fit, Question
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.mark import Mark
from steward.model.node import Node
from steward.model.partition import Partition, PartitionState
from steward.model.reservation import Reservation
from steward.model.why import Why
from steward.ports import Permanent, Retryable, Stale
from tests.chaos.trouble import HANGS_S, Command, Controller, Point, Trouble
from tests.fakes.accounting import FakeAccounting
from tests.fakes.world import World

WHY = Why(rule="port", text="a port was called", evidence=("its arguments",))
KEY = Key("port")
K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True, kw_only=True)
class SlurmOfWorld:
    """`wait` lets the world go on while a command hangs."""

    world: World
    trouble: Trouble
    wait: Callable[[float], None]

    def describe(self) -> str:
        return "a simulated Slurm"

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        return self._read(lambda: narrow.of_nodes(self.world.slurm.shown_nodes(self.world.now), only))

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        return self._read(lambda: narrow.of_jobs(self.world.slurm.shown(self.world.now), only, on))

    def partitions(self) -> Mapping[str, Partition]:
        return self._read(self._partitions)

    def _partitions(self) -> Mapping[str, Partition]:
        found = self.world.partitions() or {"main": Partition(name="main", state=PartitionState.UP)}
        return {name: replace(each, loaded=self.world.slurm.began) for name, each in found.items()}

    def reservations(self) -> Mapping[str, Reservation]:
        return self._read(self.world.reservations)

    def drain(self, marks: Mapping[NodeName, Mark]) -> None:
        wanted = self._may_take_out(marks)
        self._write(lambda: [self.world.slurm.drain(name, marks[name]) for name in wanted])

    def down(self, marks: Mapping[NodeName, Mark]) -> None:
        wanted = self._may_take_out(marks)
        self._write(lambda: [self.world.slurm.down(name, marks[name], self.world.now) for name in wanted])

    def give_back(self, nodes: Iterable[NodeName], mark: Mark, command: str = "") -> None:
        wanted = sorted(set(nodes))
        rules.may_give_back(self.nodes(), wanted, mark, command)
        self._write(lambda: [self.world.slurm.give_back(name, mark, command) for name in wanted])

    def requeue(
        self,
        job: JobId,
        exclude: frozenset[NodeName],
        *,
        restart: int | None = None,
        told_at: float | None = None,
    ) -> None:
        found = rules.found(self.jobs(), job)
        rules.is_the_run(found, restart)
        rules.may_requeue(found, told_at=told_at)
        self._write(lambda: [self.world.slurm.requeue(job, exclude, self.world.now, told_at)])

    def nudge(self, nudges: Sequence[NudgeJob]) -> None:
        waiting, now = rules.to_nudge(self.jobs(), nudges), self.world.now
        self._write(lambda: [self.world.slurm.nudge(one.job, one.exclude, now, one.delay_s) for _, one in waiting])

    def allow_requeue(self, job: JobId) -> None:
        self._write(lambda: [self.world.slurm.allow_requeue(job)])

    def comment(self, job: JobId, text: str) -> None:
        self._write(lambda: [])

    def set_gate(self, partition: str, *, open: bool) -> None:
        action = SetGate(key=KEY, why=WHY, partition=partition, open=open)
        self._write(lambda: [self.world.apply(action)])

    def write_partitions(self, text: str) -> None:
        raise Permanent("no include file is configured")

    def forget_nodes(self, nodes: Iterable[NodeName]) -> None:
        actions = [ForgetNode(key=KEY, why=WHY, node=name) for name in sorted(set(nodes))]
        self._write(lambda: [self.world.apply(action) for action in actions], error=Retryable)

    def set_feature(self, nodes: Iterable[NodeName], prefix: str, word: str) -> None:
        here = sorted(set(nodes) & self.world.slurm.nodes.keys())

        def do() -> list[str]:
            self.world.slurm.set_feature(here, prefix, word)
            return []

        self._write(do)

    def signal(self, job: JobId, signal: str) -> None:
        action = SignalJob(key=KEY, why=WHY, job=job, signal=signal)
        self._write(lambda: [self.world.apply(action)])

    def cancel_replica(self, job: JobId, run: JobId) -> None:
        action = CancelReplica(key=KEY, why=WHY, job=job, run=run)
        self._write(lambda: [self.world.apply(action)])

    def reserve(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        action = ReserveNodes(key=KEY, why=WHY, name=name, nodes=frozenset(nodes), seconds=seconds)
        self._write(lambda: [self.world.apply(action)])

    def submit_deep(
        self, name: str, nodes: Iterable[NodeName], argv: Sequence[str], *, seconds: float, output: str
    ) -> None:
        action = SubmitDeep(
            key=KEY, why=WHY, name=name, nodes=frozenset(nodes), argv=tuple(argv), seconds=seconds, output=output
        )
        self._write(lambda: [self.world.apply(action)])

    def extend(self, job: JobId, limit_s: float) -> None:
        action = ExtendLimit(key=KEY, why=WHY, job=job, limit_s=limit_s)
        self._write(lambda: [self.world.apply(action)])

    def delay_tasks(self, array: JobId, seconds: float) -> None:
        self._write(lambda: [])

    def set_nice(self, job: JobId, nice: int) -> None:
        action = SetNice(key=KEY, why=WHY, job=job, nice=nice)
        self._write(lambda: [self.world.apply(action)])

    def keep_nodes(self, name: str, nodes: Iterable[NodeName], seconds: float) -> None:
        action = KeepNodes(key=KEY, why=WHY, name=name, nodes=frozenset(nodes), seconds=seconds)
        self._write(lambda: [self.world.apply(action)])

    def gres_used(self) -> Mapping[NodeName, str]:
        return self._read(dict)

    def fits(self, question: Question) -> Fit:
        """Nobody built what could ask."""
        return UNKNOWN

    def free_nodes(self, name: str) -> None:
        action = FreeNodes(key=KEY, why=WHY, name=name)
        self._write(lambda: [self.world.apply(action)])

    def release(self, name: str) -> None:
        action = ReleaseNodes(key=KEY, why=WHY, name=name)
        self._write(lambda: [self.world.apply(action)])

    # What can be wrong

    def _may_take_out(self, nodes: Iterable[NodeName]) -> list[NodeName]:
        wanted = sorted(set(nodes))
        rules.may_take_out(self.nodes(), wanted)
        return wanted

    def _read(self, read: Callable[[], Mapping[K, V]]) -> Mapping[K, V]:
        self.fail_early()
        if self.trouble.command is Command.GARBAGE:
            self.trouble.bite()
            raise Retryable("scontrol: its answer cannot be read")
        return dict(read())

    def fail_early(self) -> None:
        """What ends a command before it reached Slurm."""
        trouble = self.trouble
        if trouble.controller is Controller.DEAD or trouble.munge_down or trouble.command is Command.FAILS:
            trouble.bite()
            raise Retryable("scontrol: exit status 1")
        if trouble.controller is Controller.HUNG or trouble.command is Command.HANGS:
            trouble.bite()
            self.wait(HANGS_S)
            raise Retryable(f"scontrol did not come back within {HANGS_S:g} s")

    def _write(self, do: Callable[[], Iterable[str]], error: type[Exception] = Stale) -> None:
        trouble = self.trouble
        trouble.commands += 1
        trouble.point(Point.BEFORE_ACT)
        if trouble.command is Command.HANGS and trouble.commands % 2:
            list(do())
        self.fail_early()
        failed = [text for text in do() if text]
        trouble.point(Point.AFTER_ACT)
        if trouble.command is Command.GARBAGE:
            trouble.bite()
            raise Retryable("scontrol: its answer cannot be read")
        if failed:
            raise error(failed[0])


@dataclass(slots=True, kw_only=True)
class AccountingOfWorld:
    """`slurm` is the door to the same slurmctld."""

    inner: FakeAccounting
    slurm: SlurmOfWorld

    def picture(self) -> Accounting:
        self.slurm.fail_early()
        if not self.inner.dbd_up:
            self.slurm.trouble.bite()
        return self.inner.picture()

    def set_qos(self, action: SetQos) -> None:
        self._edit(lambda: self.inner.set_qos(action))

    def drop_qos(self, action: DropQos) -> None:
        self._edit(lambda: self.inner.drop_qos(action))

    def set_team(self, action: SetTeam) -> None:
        self._edit(lambda: self.inner.set_team(action))

    def make_account(self, name: str) -> None:
        self._edit(lambda: self.inner.make_account(name))

    def remove_account(self, name: str) -> None:
        self._edit(lambda: self.inner.remove_account(name))

    def move_job(self, action: MoveJob) -> None:
        self._edit(lambda: self.inner.move_job(action))

    def mark_job(self, action: MarkJob) -> None:
        self._edit(lambda: self.inner.mark_job(action))

    def set_node_count(self, action: SetNodeCount) -> None:
        self._edit(lambda: self.inner.set_node_count(action))

    def cancel_job(self, action: CancelJob) -> None:
        self._edit(lambda: self.inner.cancel_job(action))

    def _edit(self, do: Callable[[], None]) -> None:
        trouble = self.slurm.trouble
        trouble.point(Point.BEFORE_ACT)
        self.slurm.fail_early()
        do()
        trouble.point(Point.AFTER_ACT)
