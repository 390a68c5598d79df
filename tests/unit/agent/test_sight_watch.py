"""How often ranks are looked at, and what the head is told of them: changes only, bounded, whatever a user does."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from steward.adapters.node.step_walk import RankName, StepLook
from steward.adapters.offload import Threads
from steward.adapters.proc import ProcessKey
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import MAX_STEPS, sight_of
from steward.agent.log_watch import LogWatch
from steward.agent.sight_watch import EVERY_S, MOST_CPU, RAREST_S, SightWatch
from steward.model.ids import JobId, NodeName
from steward.model.job_sight import Doing
from steward.model.probe import Gpu
from steward.ports import Retryable
from tests.fakes.output_files import FakeFiles
from tests.fakes.ranks import COMPUTES, WAITS, Act, FakeStep, look_at, steps_on

N1 = NodeName("n1")


@dataclass(kw_only=True)
class FakeEyes:
    """Eyes on simulated steps; a look at them costs `cost_s` of CPU."""

    sims: list[FakeStep]
    at: float = 0.0
    cost_s: float = 0.001
    spent_s: float = 0.0
    hangs: bool = False
    traffic: float = 0.0
    """What others move (bytes a second)."""
    hangs_at_sockets: bool = False
    """Whether the look at the sockets of one of the two users hangs."""
    tells_no_bytes: bool = False
    asked: list[ProcessKey] = field(default_factory=list)
    """The processes whose environment was read."""

    def now(self) -> float:
        return self.at

    def steps(self) -> Sequence[StepLook]:
        self.spent_s += self.cost_s
        return [self._look(index, sim) for index, sim in enumerate(self.sims)]

    def _look(self, index: int, sim: FakeStep) -> StepLook:
        acts = {rank.pid: rank.run_to(self.at) for rank in sim.ranks}
        (look,) = look_at(sim, acts, self.at).steps
        root = ProcessKey(pid=100 + index, started=0)
        return replace(look, stepd=replace(look.stepd, process=root))

    def owner(self, pid: int) -> int:
        return 1000 + pid % 2

    def names(self, keys: Iterable[ProcessKey]) -> Mapping[ProcessKey, RankName | None]:
        keys = list(keys)
        self.asked += keys
        if self.hangs:
            raise Retryable("ranks of 1000: no answer within 10 s")
        return {key: RankName(number=key.pid - 1000, is_task=True, node=N1) for key in keys}

    def gpus(self) -> Sequence[Gpu] | None:
        return ()

    def network_bytes(self) -> int:
        return int(self.traffic * self.at)

    def fabric_bytes(self) -> int:
        return 0

    def sockets(self, keys: Iterable[ProcessKey]) -> Mapping[ProcessKey, frozenset[int] | None]:
        keys = list(keys)
        self.spent_s += self.cost_s
        if (key := keys[0]).pid % 2 and self.hangs_at_sockets:
            raise Retryable(f"sockets of {self.owner(key.pid)}: no answer within 10 s")
        held = {rank.key: frozenset(rank.sockets) for sim in self.sims for rank in sim.ranks}
        return {key: held[key] for key in keys}

    def tcp_bytes(self, sockets: Set[int]) -> Mapping[int, int]:
        if self.tells_no_bytes:
            raise OSError("no answer")
        found = {inode: count for sim in self.sims for rank in sim.ranks for inode, count in rank.sockets.items()}
        return {inode: found[inode] for inode in sockets}

    def waits_in(self, pid: int) -> str:
        return "futex_wait_queue"

    def cpu_s(self) -> float:
        return self.spent_s


class Bench:
    def __init__(self, *sims: FakeStep) -> None:
        self.eyes = FakeEyes(sims=list(sims))
        self.frames: list[Frame] = []
        logs = LogWatch(FakeFiles(), threads=lambda: Threads(1))
        self.watch = SightWatch(node=N1, eyes=self.eyes, head=self, threads=lambda: Threads(1), logs=logs)

    def post(self, frame: Frame) -> None:
        self.frames.append(frame)

    def looks(self, until: float) -> None:
        while self.eyes.at < until:
            self.eyes.at += EVERY_S
            asyncio.run(self.watch.turn())


def ranks(act: Act, *, ends: float = 120.0, count: int = 4) -> FakeStep:
    """Ranks that compute, and from `ends` on do this."""
    (step,) = steps_on(("n1",), count, lambda _: lambda now: COMPUTES if now < ends else act, has_gpu=False)
    return step


def test_only_changes_are_told_and_a_new_head_hears_for_how_long() -> None:
    bench = Bench(ranks(WAITS))
    bench.looks(600.0)
    told = [[group.doing for step in sight_of(frame, N1, 0.0) for group in step.groups] for frame in bench.frames]
    assert told == [[Doing.UNKNOWN], [Doing.BUSY], [Doing.WAITS]]
    (before,) = sight_of(bench.frames[-1], N1, 0.0)
    (now,) = sight_of(bench.watch.frames()[0], N1, 0.0)
    assert now.groups[0].for_s - before.groups[0].for_s == now.step_s - before.step_s > 300.0


def test_without_steps_a_new_head_hears_that_there_are_none() -> None:
    bench = Bench()
    bench.looks(60.0)
    assert bench.frames == []
    assert bench.watch.frames() == ({"t": "sight", "steps": []},)


def test_looks_are_rarer_where_they_cost_more() -> None:
    bench = Bench(ranks(WAITS))
    bench.looks(EVERY_S)
    assert bench.watch.pause_s == EVERY_S
    bench.eyes.cost_s = 30.0 * MOST_CPU
    bench.looks(3 * EVERY_S)
    assert bench.watch.pause_s == 30.0
    bench.eyes.cost_s = 5.0
    bench.looks(4 * EVERY_S)
    assert bench.watch.pause_s == RAREST_S


def test_the_environment_of_a_process_is_read_once() -> None:
    bench = Bench(ranks(WAITS))
    bench.looks(600.0)
    assert len(bench.eyes.asked) == len(set(bench.eyes.asked)) == 4


def test_processes_whose_environment_cannot_be_read_are_ranks_by_their_own_number() -> None:
    bench = Bench(ranks(WAITS))
    bench.eyes.hangs = True
    bench.looks(300.0)
    (step,) = sight_of(bench.frames[-1], N1, 0.0)
    assert [(group.doing, group.ranks) for group in step.groups] == [(Doing.WAITS, 4)]


def test_one_users_many_steps_hide_no_other_users() -> None:
    many = [ranks(WAITS, count=1) for _ in range(4 * MAX_STEPS)]
    for number, sim in enumerate(many):
        sim.job = JobId(10 + number)
        sim.ranks[0].pid = 2000 + 2 * number
    mine = ranks(WAITS, count=1)
    mine.ranks[0].pid = 1001
    bench = Bench(mine, *many)
    bench.looks(300.0)
    told = sight_of(bench.frames[-1], N1, 0.0)
    assert len(told) == MAX_STEPS
    assert JobId(7) in {one.job for one in told}


def test_of_a_look_that_fails_the_head_hears_that_nothing_is_known() -> None:
    bench = Bench(ranks(WAITS))
    bench.looks(300.0)
    steps = bench.eyes.steps
    bench.eyes.steps = _fails  # type: ignore[method-assign]
    bench.looks(600.0)
    assert bench.frames[-1] == {"t": "sight", "steps": []}
    bench.eyes.steps = steps  # type: ignore[method-assign]
    bench.looks(700.0)
    (step,) = sight_of(bench.frames[-1], N1, 0.0)
    assert step.groups[0].doing is Doing.WAITS
    assert step.groups[0].for_s <= 100.0


def _fails() -> Sequence[StepLook]:
    raise Retryable("steps: no answer within 10 s")


def test_ranks_of_one_user_are_told_to_wait_while_the_look_at_anothers_sockets_hangs() -> None:
    mine, other = ranks(WAITS, count=1), ranks(WAITS, count=1)
    other.job, other.ranks[0].pid = JobId(8), 1001
    bench = Bench(mine, other)
    bench.eyes.traffic, bench.eyes.hangs_at_sockets = 5e6, True
    bench.looks(600.0)
    told = {step.job: step.groups[0].doing for step in sight_of(bench.frames[-1], N1, 0.0)}
    assert told == {7: Doing.WAITS, 8: Doing.UNKNOWN}


def test_where_the_kernel_does_not_tell_what_sockets_carry_nobody_is_said_to_wait() -> None:
    bench = Bench(ranks(WAITS))
    bench.eyes.traffic, bench.eyes.tells_no_bytes = 5e6, True
    bench.looks(600.0)
    assert [group.doing for group in sight_of(bench.frames[-1], N1, 0.0)[0].groups] == [Doing.UNKNOWN]
