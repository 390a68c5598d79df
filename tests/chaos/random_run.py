"""Long random chaos: `python -m tests.chaos.random_run --operations N [--seed S] [--heads 2]`.

So many operations in stories of twenty, each over a fresh cluster. The first story that breaks an invariant is shrunk
to the shortest one that still does, and printed with its seed.
"""

import argparse
import logging
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from steward.model.case import CaseStep
from steward.model.events import Event
from steward.model.job import JobState
from steward.policy.facts.incidents import AGENTS
from steward.ports import Retryable
from steward.workflows.commands import ResumeActions
from tests.chaos.bench import Bench
from tests.chaos.flows import a_cluster
from tests.chaos.operations import Operation, calm, happen, story
from tests.chaos.watch import unrest

T = TypeVar("T")
LENGTH = 20
CALM_S = 900.0
RESUMES = 20
"""More than a story's faults use up."""
BAD_ENDS = (JobState.CANCELLED, JobState.FAILED, JobState.NODE_FAIL)
Change = Callable[[Bench], Bench]


def broken_by(operations: Sequence[Operation], change: Change = lambda bench: bench) -> list[str]:
    """The invariants that did not hold."""
    bench = change(a_cluster(resumes=RESUMES))
    try:
        for one in operations:
            happen(bench, one)
        calm(bench)
        _come_to_rest(bench)
        _lost_jobs(bench)
        return list(bench.watch.broken)
    finally:
        bench.close()


def _come_to_rest(bench: Bench) -> None:
    until = bench.elapsed + CALM_S
    while (left := _left(bench)) and bench.elapsed < until:
        bench.run(10.0)
        of_checks = (one for one in bench.memory.incidents.values() if one.kind != AGENTS)
        if bench.memory.breakers or any(one.over is None for one in of_checks):
            bench.give(ResumeActions(who="a person"))
    for text in left:
        bench.watch.tell("stuck", text)


def _left(bench: Bench) -> list[str]:
    """What is still to come; a case that is held waits for a person, which is an end."""
    held = {case.node for case in bench.memory.cases.values() if case.step is CaseStep.HELD}
    # a node that died before the head began with an empty store is not monitored: its agent was never seen
    unmonitored = {name for name in bench.world.slurm.nodes if name not in bench.memory.agents}
    return [
        text
        for text in unrest(bench.world, bench.memory, bench.watch.foreign | held | unmonitored)
        if not text.endswith("is held for a person")
    ]


def _lost_jobs(bench: Bench) -> None:
    """No job of these stories fails by itself: one that ends badly was ended by a fault, and should have gone on; but
    for one that had opted in while the head could not write that down, and was over before it could."""
    known = {event.job for event in _events(bench) if event.kind == "job.opted_in"}
    for job in bench.world.slurm.jobs.values():
        excused = bench.watch.cancelled | (bench.watch.unwritten - known)
        if job.state in BAD_ENDS and job.id not in excused:
            bench.watch.tell("lost job", f"{job.id} ended as {job.state.value}")


def _events(bench: Bench) -> list[Event]:
    """All events of the store; one that was damaged by the last operation is mended by the first look at it."""
    with suppress(Retryable):
        bench.store.events(limit=1)
    return [event for _, event in bench.store.events(limit=100_000)]


def shortest(operations: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Delta debugging: a sublist that fails and of which no single operation can be left out."""
    size = max(1, len(operations) // 2)
    while True:
        at = 0
        while at < len(operations):
            fewer = operations[:at] + operations[at + size :]
            if fewer and fails(fewer):
                operations = fewer
            else:
                at += size
        if size == 1:
            return operations
        size = max(1, size // 2)


def run(operations: int, seed: int, heads: int) -> int:
    """The exit status."""
    for number in range(max(1, operations // LENGTH)):
        one = seed + number
        broken = broken_by(story(one, LENGTH, heads))
        print(f"story {one}: {'; '.join(broken) or 'green'}", flush=True)
        if broken:
            _tell(one, heads, broken)
            return 1
    return 0


def _tell(seed: int, heads: int, broken: list[str]) -> None:
    kind = broken[0].split(":")[0]
    few = shortest(story(seed, LENGTH, heads), lambda some: any(b.startswith(kind) for b in broken_by(some)))
    print(f"again: make chaos N={LENGTH} SEED={seed} HEADS={heads}; the shortest story that does it:")
    for one in few:
        print(f"  {one!r},")


def main() -> int:
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description="Long random chaos.")
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--heads", type=int, choices=(1, 2), default=1)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    return run(given.operations, seed, given.heads)


if __name__ == "__main__":
    sys.exit(main())
