"""SlurmPort on the simulated cluster, behind a `scontrol` and a controller that can be broken; and AccountingPort
beside it, with a slurmdbd that can die."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any, TypeVar

from steward.adapters.slurm import narrow, rules
from steward.model.accounting import Accounting
from steward.model.action import ForgetNode, NudgeJob
from steward.model.agent_action import Action
from steward.model.fit import UNKNOWN, Fit, Question
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.mark import Mark
from steward.model.node import Node
from steward.model.partition import Partition, PartitionState
from steward.model.reservation import Reservation
from steward.model.why import Why
from steward.ports import AccountingPort, Permanent, Retryable, SlurmPort, Stale
from steward.workflows.effects import EFFECTS
from tests.chaos.trouble import HANGS_S, Command, Controller, Point, Trouble
from tests.fakes.accounting import FakeAccounting
from tests.fakes.derive import derived
from tests.fakes.world import World

WHY = Why(rule="port", text="a port was called", evidence=("its arguments",))
KEY = Key("port")
K = TypeVar("K")
V = TypeVar("V")


def _action(command: str) -> type[Action] | None:
    """The action that a command is named after and whose words it takes (`reserve`: ReserveNodes), if there is one."""
    name, words = command.title().replace("_", ""), {*signature(getattr(SlurmPort, command)).parameters} - {"self"}
    found = (kind for kind in EFFECTS if kind.__name__.startswith(name))
    return next((kind for kind in found if {each.name for each in fields(kind)} - {"key", "why"} == words), None)


def _command(name: str) -> Callable[..., None]:
    """Do the world's action with the same words; a command without one changes nothing there."""
    words_of, kind = signature(getattr(SlurmPort, name)), _action(name)

    def command(slurm: "SlurmOfWorld", *given: Any, **named: Any) -> None:
        words = words_of.bind(slurm, *given, **named).arguments
        words = {word: _value(value) for word, value in words.items() if word != "self"}
        action = kind(key=KEY, why=WHY, **words) if kind is not None else None
        slurm._write(lambda: [] if action is None else [slurm.world.apply(action)])

    return command


def _value(value: Any) -> Any:
    return frozenset(value) if isinstance(value, set | list) else value


@derived(SlurmPort, _command)
@dataclass(slots=True, kw_only=True)
class SlurmOfWorld(SlurmPort):
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

    def drain(self, marks: Mapping[NodeName, Mark], cleared: Collection[NodeName] = ()) -> None:
        wanted = self._may_take_out(marks, cleared)
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
        found = rules.require_job(self.jobs(), job)
        rules.is_the_run(found, restart)
        rules.may_requeue(found, told_at=told_at)
        self._write(lambda: [self.world.slurm.requeue(job, exclude, self.world.now, told_at)])

    def nudge(self, nudges: Sequence[NudgeJob]) -> None:
        waiting, now = rules.to_nudge(self.jobs(), nudges), self.world.now
        self._write(lambda: [self.world.slurm.nudge(one.job, one.exclude, now, one.delay_s) for _, one in waiting])

    def write_partitions(self, text: str) -> None:
        raise Permanent("no include file is configured")

    def forget_nodes(self, nodes: Iterable[NodeName]) -> None:
        actions = [ForgetNode(key=KEY, why=WHY, node=name) for name in sorted(set(nodes))]
        self._write(lambda: [self.world.apply(action) for action in actions], error=Retryable)

    def gres_used(self) -> Mapping[NodeName, str]:
        return self._read(dict)

    def fits(self, question: Question) -> Fit:
        """Nobody built what could ask."""
        return UNKNOWN

    # What can be wrong

    def _may_take_out(self, nodes: Iterable[NodeName], cleared: Collection[NodeName] = ()) -> list[NodeName]:
        wanted = sorted(set(nodes))
        rules.may_take_out(self.nodes(), wanted, cleared)
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


def _edit(name: str) -> Callable[..., None]:
    return lambda accounting, *given: accounting._edit(lambda: getattr(accounting.inner, name)(*given))


@derived(AccountingPort, _edit)
@dataclass(slots=True, kw_only=True)
class AccountingOfWorld(AccountingPort):
    """`slurm` is the door to the same slurmctld."""

    inner: FakeAccounting
    slurm: SlurmOfWorld

    def picture(self) -> Accounting:
        self.slurm.fail_early()
        if not self.inner.dbd_up:
            self.slurm.trouble.bite()
        return self.inner.picture()

    def _edit(self, do: Callable[[], None]) -> None:
        trouble = self.slurm.trouble
        trouble.point(Point.BEFORE_ACT)
        self.slurm.fail_early()
        do()
        trouble.point(Point.AFTER_ACT)
