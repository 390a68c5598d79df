"""How soon and how rightly jobs that hang are told, on simulated ranks: `python -m tests.bench.hangs [--json FILE]`.

Each case is a job whose ranks (tests/fakes/ranks.py) work for a while and then do what a fault, or a healthy phase,
makes them do. The agents' own code looks at them, and the head's plans judge them, on a clock that jumps from look to
look. Nothing of it is measured on GPUs: how they behave is taken from the sources named in docs/performance.md.

Goals: of the faults 95 % are told within 60 s or five times the job's own longest pause, and with `hang_least_s` or
`hang_quiet_s` where nothing differs, within that; the right node is named in 95 %, a wrong one in at most 1 %; no
healthy phase is told, and no job that wrote no `hang=` is ended in a long pause. A GPU that its hardware slows down is
told after `SLOW_S`.
"""

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steward.agent.sight import SLOW_S
from steward.model.action import RequeueJob
from steward.model.ids import JobId, NodeName
from steward.model.job_sight import StepSight
from steward.model.resume_mode import ResumeMode
from steward.policy.job.hang import OTHERS_S
from steward.policy.plan import Plans
from tests.builders.picture import Picture, a_cluster, n
from tests.fakes.ranks import (
    ASKS_OFTEN,
    BLOCKED,
    BRAKED,
    CAPPED,
    COMPUTES,
    DEAD,
    DEBUGGED,
    DOWNLOADS,
    LOOK_S,
    READS,
    SAVES,
    SPINS,
    STOPPED,
    TRAINS,
    WAITS,
    Act,
    FakeStep,
    steps_on,
)

J7 = JobId(7)
WORKED_S = 1200.0
"""How long a job works before what happens to it."""
NODES, PER_NODE = ("n1", "n2", "n3"), 4
RANKS = len(NODES) * PER_NODE
_BEGIN_S = 30.0
TOLD = ("job.hang", "job.slow")
Doings = Callable[[int], Callable[[float], Act]]
"""What a rank of a number does at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A kind of fault: what the odd rank does, what the others do, and until when it is to be told (s)."""

    odd: Act | None
    others: Act
    within_s: float
    has_gpu: bool = True
    network: float = 0.0
    """What others move on each node (bytes a second)."""


TOGETHER_S = 300.0 + 3 * LOOK_S
"""`hang_least_s` and three looks."""
QUIET_S = 1800.0 + 3 * LOOK_S
"""`hang_quiet_s` and three looks."""
SOON_S = 60.0 + 3 * LOOK_S
BUSY_BYTES_PER_S = 5e6
FAULTS: Mapping[str, Fault] = {
    "one rank stopped, the others spin": Fault(odd=STOPPED, others=SPINS, within_s=SOON_S),
    "one rank stopped, the others wait": Fault(odd=STOPPED, others=WAITS, within_s=SOON_S, has_gpu=False),
    "one rank stopped, the others poll": Fault(odd=STOPPED, others=COMPUTES, within_s=SOON_S, has_gpu=False),
    "one rank blocked, the others spin": Fault(odd=BLOCKED, others=SPINS, within_s=TOGETHER_S),
    "one rank blocked, the others wait": Fault(odd=BLOCKED, others=WAITS, within_s=TOGETHER_S, has_gpu=False),
    "one rank dead, the others spin": Fault(odd=DEAD, others=SPINS, within_s=TOGETHER_S),
    "one rank dead, the others wait": Fault(odd=DEAD, others=WAITS, within_s=TOGETHER_S, has_gpu=False),
    "one GPU at 0 %, the others spin": Fault(odd=WAITS, others=SPINS, within_s=TOGETHER_S),
    "all spin": Fault(odd=None, others=SPINS, within_s=TOGETHER_S),
    "all wait": Fault(odd=None, others=WAITS, within_s=QUIET_S, has_gpu=False),
    "all wait, others use the network": Fault(
        odd=None, others=WAITS, within_s=QUIET_S, has_gpu=False, network=BUSY_BYTES_PER_S
    ),
    "one GPU at 0 %, the others spin, others use the network": Fault(
        odd=WAITS, others=SPINS, within_s=TOGETHER_S, network=BUSY_BYTES_PER_S
    ),
    "all wait, with GPUs": Fault(odd=None, others=WAITS, within_s=QUIET_S),
    "one GPU slowed down by its hardware": Fault(odd=BRAKED, others=TRAINS, within_s=SLOW_S + OTHERS_S + 3 * LOOK_S),
    "one node's ranks stopped, the others spin": Fault(odd=STOPPED, others=SPINS, within_s=SOON_S),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a case came to: when the first word came (s after the fault; None: never), and the words."""

    after_s: float | None
    texts: tuple[str, ...]
    is_ended: bool = False
    """Whether the job was requeued, although it would have gone on."""


def run_case(
    doings: Doings, seconds: float, *, has_gpu: bool, mode: str = "", per_node: int = PER_NODE, network: float = 0.0
) -> Told:
    """Return what is told of a job whose ranks do this for `seconds` after `WORKED_S`."""
    steps = steps_on(NODES, per_node, doings, has_gpu=has_gpu)
    for step in steps:
        step.network = network
    picture = a_cluster().job(7, on=NODES)
    picture = picture.change_job(started=picture.now - 0.0)
    if mode:
        picture = picture.opted_in(7, ResumeMode.parse(mode))
    began, texts, first, plans, is_ended = picture.now, [], None, Plans(), False
    for at, news in looks(steps, WORKED_S + seconds):
        picture = _with(picture, news, began + at)
        plan = plans(replace(picture.seen, at=picture.now), picture.want, picture.memory, picture.now)
        picture = replace(picture, memory=plan.memory)
        is_ended = is_ended or any(isinstance(action, RequeueJob) for action in plan.actions)
        for event in plan.events:
            if event.kind in TOLD:
                first = at - WORKED_S if first is None else first
                texts.append(event.text)
    return Told(after_s=first, texts=tuple(texts), is_ended=is_ended)


def looks(steps: Sequence[FakeStep], until: float) -> Iterator[tuple[float, tuple[StepSight, ...]]]:
    """Yield each look of each node with what its agent tells the head; empty if that has not changed."""
    due = [(index * LOOK_S / len(steps), step) for index, step in enumerate(steps)]
    at = 0.0
    while at < until:
        at, step = min(due, key=lambda one: one[0])
        due.remove((at, step))
        due.append((at + LOOK_S, step))
        told = step.look(at)
        is_news = _essence(told) != _essence(step.told)
        step.told = told if is_news else step.told
        yield at, told if is_news else ()


def _essence(told: Sequence[StepSight]) -> list[object]:
    return [
        ([(group.doing, group.ranks, group.rank, group.pid) for group in one.groups], [slow.rank for slow in one.slow])
        for one in told
    ]


def _with(picture: Picture, news: Sequence[StepSight], now: float) -> Picture:
    picture = replace(picture, now=now)
    for step in news:
        picture = picture.agent(step.node, sights=(replace(step, at=now),))
    return picture


def a_fault(fault: Fault, odd: frozenset[int]) -> Doings:
    """Return what ranks do of which the `odd` ones have the fault after `WORKED_S`."""

    def of(number: int) -> Callable[[float], Act]:
        after = fault.odd if fault.odd is not None and number in odd else fault.others
        before = _before(has_gpu=fault.has_gpu)
        return lambda now: before(now) if now < WORKED_S else after

    return of


def _before(*, has_gpu: bool) -> Callable[[float], Act]:
    return lambda now: Act() if now < _BEGIN_S else (TRAINS if has_gpu else COMPUTES)


# Healthy phases: each returns what the ranks do from `WORKED_S` on, and how many ranks a node has.

Phase = Callable[[random.Random], tuple[Doings, int, bool]]


def _phased(phase: Callable[[int, float], Act], *, has_gpu: bool = True) -> Doings:
    before = _before(has_gpu=has_gpu)
    return lambda number: lambda now: before(now) if now < WORKED_S else phase(number, now - WORKED_S)


def _checkpoint_of_all(dice: random.Random) -> tuple[Doings, int, bool]:
    lasts = dice.uniform(20.0, 900.0)
    return _phased(lambda _, at: SAVES if at % 1500.0 < lasts else TRAINS), PER_NODE, True


def _checkpoint_of_rank_0(dice: random.Random) -> tuple[Doings, int, bool]:
    lasts = dice.uniform(20.0, 900.0)
    return _phased(lambda rank, at: TRAINS if at % 1500.0 > lasts else (SPINS if rank else SAVES)), PER_NODE, True


def _flush(dice: random.Random) -> tuple[Doings, int, bool]:
    """Rank 0 waits in the kernel until what it wrote is on the disk."""
    lasts = dice.uniform(10.0, 120.0)
    return _phased(lambda rank, at: TRAINS if at % 900.0 > lasts else (SPINS if rank else BLOCKED)), PER_NODE, True


def _evaluation(dice: random.Random) -> tuple[Doings, int, bool]:
    lasts, alone = dice.uniform(60.0, 1200.0), dice.random() < 0.5
    tests = Act(cores=1.0, watts=400.0, busy=80, memory_busy=20)
    return (
        _phased(lambda rank, at: TRAINS if at % 1800.0 > lasts else (SPINS if rank and alone else tests)),
        PER_NODE,
        True,
    )


def _compile(dice: random.Random) -> tuple[Doings, int, bool]:
    lasts = dice.uniform(60.0, 1500.0)
    return _phased(lambda _, at: Act(cores=4.0) if at < lasts else TRAINS), PER_NODE, True


def _data_stall(dice: random.Random) -> tuple[Doings, int, bool]:
    """Nothing can be read for up to two minutes, again and again."""
    lasts, waits = dice.uniform(30.0, 120.0), dice.choice((WAITS, BLOCKED))
    return _phased(lambda _, at: waits if at % 600.0 < lasts else TRAINS), PER_NODE, True


def _data_stall_of_one(dice: random.Random) -> tuple[Doings, int, bool]:
    lasts, odd = dice.uniform(30.0, 120.0), dice.randrange(RANKS)
    waits = dice.choice((WAITS, BLOCKED, READS))
    return _phased(lambda rank, at: TRAINS if at % 600.0 > lasts else (waits if rank == odd else SPINS)), PER_NODE, True


def _first_step(dice: random.Random) -> tuple[Doings, int, bool]:
    """Ranks import, wait for each other and compile before they work at all."""
    loads, waits = dice.uniform(30.0, 300.0), dice.uniform(30.0, 500.0)

    def rank(number: int) -> Callable[[float], Act]:
        own = loads * (0.3 + 0.7 * number / RANKS)
        return lambda now: COMPUTES if now < own else (WAITS if now < loads + waits else TRAINS)

    return rank, PER_NODE, True


def _debugger(dice: random.Random) -> tuple[Doings, int, bool]:
    odd = dice.randrange(RANKS)
    return _phased(lambda rank, _: DEBUGGED if rank == odd else SPINS), PER_NODE, True


def _notebook(dice: random.Random) -> tuple[Doings, int, bool]:
    works = dice.uniform(5.0, 300.0)
    return _phased(lambda _, at: TRAINS if at % 9000.0 < works else WAITS), 0, dice.random() < 0.5


def _pipeline(dice: random.Random) -> tuple[Doings, int, bool]:
    """A script sleeps between two parts of its work."""
    sleeps = dice.uniform(300.0, 5000.0)
    return _phased(lambda _, at: WAITS if at < sleeps else COMPUTES, has_gpu=False), 0, False


def _polls(dice: random.Random) -> tuple[Doings, int, bool]:
    """MPI ranks of which some compute and the others poll."""
    few = dice.randrange(1, RANKS)
    return _phased(lambda rank, _: COMPUTES if rank < few else Act(cores=0.99), has_gpu=False), PER_NODE, False


def _download(dice: random.Random) -> tuple[Doings, int, bool]:
    """All ranks wait for one that downloads, by one connection or by many, with next to no CPU."""
    act, lasts = dice.choice((DOWNLOADS, ASKS_OFTEN)), dice.uniform(600.0, 5000.0)
    return (
        _phased(lambda rank, at: COMPUTES if at > lasts else (WAITS if rank else act), has_gpu=False),
        PER_NODE,
        False,
    )


def _task_farm(dice: random.Random) -> tuple[Doings, int, bool]:
    """Tasks that have nothing to do with each other end one after the other."""
    ends = [dice.uniform(60.0, 3600.0) for _ in range(RANKS)]
    ends[dice.randrange(RANKS)] = 1e9
    return _phased(lambda rank, at: COMPUTES if at < ends[rank] else DEAD, has_gpu=False), PER_NODE, False


def _hot_for_a_while(dice: random.Random) -> tuple[Doings, int, bool]:
    """GPUs are at their power limit, and one is too hot for some minutes, again and again."""
    lasts, odd = dice.uniform(30.0, 500.0), dice.randrange(RANKS)
    return _phased(lambda rank, at: BRAKED if rank == odd and at % 1200.0 < lasts else CAPPED), PER_NODE, True


def _hot_room(dice: random.Random) -> tuple[Doings, int, bool]:
    """All GPUs are too hot: no rank is slower than the others."""
    return _phased(lambda _rank, _at: BRAKED), PER_NODE, True


def _suspended(dice: random.Random) -> tuple[Doings, int, bool]:
    """All ranks are stopped for a while, one node after the other."""
    lasts = dice.uniform(60.0, 3000.0)

    def phase(rank: int, at: float) -> Act:
        later = rank // PER_NODE
        return STOPPED if later < at < lasts + later else COMPUTES

    return _phased(phase, has_gpu=False), PER_NODE, False


PHASES: Mapping[str, Phase] = {
    "checkpoint of all ranks": _checkpoint_of_all,
    "checkpoint of rank 0": _checkpoint_of_rank_0,
    "flush to a slow disk": _flush,
    "evaluation": _evaluation,
    "compile": _compile,
    "data stall": _data_stall,
    "data stall of one rank": _data_stall_of_one,
    "first step": _first_step,
    "debugger": _debugger,
    "notebook": _notebook,
    "sleep in a pipeline": _pipeline,
    "ranks that poll": _polls,
    "download": _download,
    "task farm": _task_farm,
    "one GPU hot for a while": _hot_for_a_while,
    "all GPUs hot": _hot_room,
    "suspended": _suspended,
}
HEALTHY_S = 5400.0


# Long pauses: they look like a hang, are told as one, and end by themselves. Nobody may end the job.


def _waits_outside(dice: random.Random) -> Doings:
    """A rank waits for a job of another kind (an evaluation, a person), and all others wait for it on their GPUs."""
    lasts, odd = dice.uniform(300.0, 5000.0), dice.randrange(RANKS)
    return _phased(lambda rank, at: TRAINS if at > lasts else (WAITS if rank == odd else SPINS))


def _storage_away(dice: random.Random) -> Doings:
    """The file system does not answer for a while, and one rank was writing."""
    lasts, odd = dice.uniform(300.0, 3000.0), dice.randrange(RANKS)
    return _phased(lambda rank, at: TRAINS if at > lasts else (BLOCKED if rank == odd else SPINS))


PAUSES: Mapping[str, Callable[[random.Random], Doings]] = {
    "a rank waits for something outside": _waits_outside,
    "the storage is away": _storage_away,
}


def paused(name: str, seed: int, mode: str = "1") -> Told:
    """Return what came of one long pause of a job that asked for this."""
    return run_case(PAUSES[name](random.Random(f"{name} {seed}")), HEALTHY_S, has_gpu=True, mode=mode)


def healthy(name: str, seed: int) -> Told:
    """Return what is told of one healthy case."""
    doings, per_node, has_gpu = PHASES[name](random.Random(f"{name} {seed}"))
    if per_node:
        return run_case(doings, HEALTHY_S, has_gpu=has_gpu, per_node=per_node)
    return _run_alone(doings, has_gpu=has_gpu)


def _run_alone(doings: Doings, *, has_gpu: bool) -> Told:
    """Return what is told of a job of one rank: its script."""
    (step,) = steps_on(("n1",), 1, doings, has_gpu=has_gpu)
    step.step = "batch"
    picture = a_cluster().job(7, on=("n1",))
    picture = picture.change_job(started=picture.now)
    began, texts, plans = picture.now, [], Plans()
    for at, news in looks([step], WORKED_S + HEALTHY_S):
        picture = _with(picture, news, began + at)
        plan = plans(replace(picture.seen, at=picture.now), picture.want, picture.memory, picture.now)
        picture = replace(picture, memory=plan.memory)
        texts += [event.text for event in plan.events if event.kind in TOLD]
    return Told(after_s=None, texts=tuple(texts))


def faulty(name: str, seed: int) -> tuple[Told, NodeName | None]:
    """Return what is told of one fault, and the node at fault; None if no node is."""
    fault, dice = FAULTS[name], random.Random(f"{name} {seed}")
    odd = dice.randrange(RANKS)
    node = n(NODES[odd // PER_NODE])
    of_node = range(odd // PER_NODE * PER_NODE, odd // PER_NODE * PER_NODE + PER_NODE)
    those = frozenset(of_node) if name.startswith("one node") else frozenset({odd})
    told = run_case(a_fault(fault, those), fault.within_s + 120.0, has_gpu=fault.has_gpu, network=fault.network)
    return told, node if fault.odd is not None else None


def names(told: Told) -> frozenset[str]:
    """Return the nodes that the first word names as different."""
    if not told.texts or "no rank can be named" in told.texts[0] or "may wait for input" in told.texts[0]:
        return frozenset()
    return frozenset(node for node in NODES if f"({node}," in told.texts[0] or f"({node})" in told.texts[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200, help="cases of faults, over all kinds")
    parser.add_argument("--phases", type=int, default=500, help="cases of healthy phases, over all kinds")
    parser.add_argument("--pauses", type=int, default=40, help="cases of long pauses, over all kinds")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    rows = [_fault_row(name, _share(asked.faults, len(FAULTS), index)) for index, name in enumerate(FAULTS)]
    calm = {name: _false(name, _share(asked.phases, len(PHASES), index)) for index, name in enumerate(PHASES)}
    shares = {name: _share(asked.pauses, len(PAUSES), index) for index, name in enumerate(PAUSES)}
    ended = {name: sum(paused(name, seed).is_ended for seed in range(cases)) for name, cases in shares.items()}
    found = {"faults": rows, "false": calm, "ended": ended, "good": _is_good(rows, calm) and not any(ended.values())}
    for row in rows:
        print(
            f"{row['kind']:56} {row['in time']:3}/{row['cases']:3} in time, median {row['median_s']} s, "
            f"named {row['named']}, wrong {row['wrong']}"
        )
    for name, one in calm.items():
        print(f"{name:56} {one['told']:3}/{one['cases']:3} told though healthy")
    for name, count in ended.items():
        print(f"{name:56} {count:3}/{shares[name]:3} ended under --auto-resume=1 though they would have gone on")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1))
    return 0 if found["good"] else 1


def _share(cases: int, kinds: int, index: int) -> int:
    return cases // kinds + (index < cases % kinds)


def _fault_row(name: str, cases: int) -> dict[str, Any]:
    found = [faulty(name, seed) for seed in range(cases)]
    times = [told.after_s for told, _ in found if told.after_s is not None]
    return {
        "kind": name,
        "cases": cases,
        "in time": sum(after <= FAULTS[name].within_s for after in times),
        "median_s": round(statistics.median(times)) if times else None,
        "named": sum(names(told) == ({node} if node else set()) for told, node in found),
        "wrong": sum(bool(names(told) - {node}) for told, node in found),
    }


def _false(name: str, cases: int) -> dict[str, Any]:
    told = [healthy(name, seed) for seed in range(cases)]
    texts = sorted({text for one in told for text in one.texts})
    return {"cases": cases, "told": sum(bool(one.texts) for one in told), "texts": texts[:3]}


def _is_good(rows: Sequence[Mapping[str, Any]], calm: Mapping[str, Mapping[str, Any]]) -> bool:
    cases = sum(row["cases"] for row in rows)
    in_time, named, wrong = (sum(row[key] for row in rows) for key in ("in time", "named", "wrong"))
    return (
        in_time >= 0.95 * cases
        and named >= 0.95 * cases
        and wrong <= 0.01 * cases
        and not any(one["told"] for one in calm.values())
    )


if __name__ == "__main__":
    sys.exit(main())
