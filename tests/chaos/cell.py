"""One cell of the matrix: a flow, a fault when it is at a step, and whether all is well in the end."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from steward.model.deep import DEEP_PREFIX
from steward.model.elastic import replica_of
from steward.model.job import JobState
from tests.chaos.bench import Bench
from tests.chaos.columns import NO_FAULT, Column
from tests.chaos.flow import Flow

REACH_S = 120.0
CALM_S = 400.0
GOOD_ENDS = (JobState.COMPLETED,)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What is left of a flow, as far as it matters to people: kept equal by a kill -9 of the head."""

    machines: int
    jobs: tuple[tuple[str, int], ...]
    setups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`felt`: the fault was; `seconds` from the fault until all was well, as simulated."""

    flow: str
    step: str
    column: str
    felt: bool
    broken: tuple[str, ...]
    seconds: float
    end: End

    @property
    def is_green(self) -> bool:
        return self.felt and not self.broken


Change = Callable[[Bench], Bench]


def _as_is(bench: Bench) -> Bench:
    return bench


def run_cell(flow: Flow, step: str, column: Column, control: Result | None = None, change: Change = _as_is) -> Result:
    """`control`: the same without a fault. `change` breaks the head on purpose, for tests of the tests."""
    bench = change(flow.make())
    try:
        return _run(bench, flow, step, column, control)
    finally:
        bench.close()


def run_control(flow: Flow, step: str) -> Result:
    return replace(run_cell(flow, step, NO_FAULT), felt=True)


def _run(bench: Bench, flow: Flow, step: str, column: Column, control: Result | None) -> Result:
    flow.begin(bench)
    if not _wait(bench, lambda: flow.steps[step](bench), REACH_S, 0.1):
        bench.watch.tell("stuck", f"{flow.name} never came to {step}")
    at = restless_at = bench.elapsed
    column.begin(bench, flow.node)

    def is_calm() -> bool:
        """Jobs that run are no unrest of ours, but the end is only when they are over, too."""
        nonlocal restless_at
        unrest = flow.unrest(bench, step, column.name)
        if any(not text.startswith("job ") for text in unrest):
            restless_at = bench.elapsed
        return not unrest

    _wait(bench, lambda: not is_calm() and False, column.lasts_s, 0.5)
    column.end(bench, flow.node)
    is_well = _wait(bench, is_calm, CALM_S, 0.5)
    if not is_well:
        for text in flow.unrest(bench, step, column.name):
            bench.watch.tell("stuck", text)
    end = _end(bench)
    _judge(bench, column, end, control)
    return Result(
        flow=flow.name,
        step=step,
        column=column.name,
        felt=bench.trouble.bites > 0,
        broken=tuple(bench.watch.broken),
        seconds=restless_at - at,
        end=end,
    )


def _wait(bench: Bench, done: Callable[[], bool], limit_s: float, every_s: float) -> bool:
    until = bench.elapsed + limit_s
    while bench.elapsed < until:
        if done():
            return True
        bench.run(every_s)
    return done()


def _end(bench: Bench) -> End:
    jobs = tuple((job.state.value, job.restarts) for _, job in sorted(bench.world.slurm.jobs.items()))
    return End(machines=bench.world.machines.made, jobs=jobs, setups=len(getattr(bench.world, "setups", ())))


def _judge(bench: Bench, column: Column, end: End, control: Result | None) -> None:
    for job in bench.world.slurm.jobs.values():
        may_end = job.name.startswith(DEEP_PREFIX) or replica_of(job.comment)  # both may be called off
        if job.state not in GOOD_ENDS and not may_end:
            bench.watch.tell("lost job", f"{job.id} ended as {job.state.value}")
    if control is not None and column.is_kill and end != control.end:
        bench.watch.tell("another end", f"{end} instead of {control.end}")
