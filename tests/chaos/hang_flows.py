"""A job that stands still is found and brought back, with a fault on one of its nodes and without."""

from collections.abc import Callable

from steward.model.health import Advice, Severity
from steward.model.ids import JobId, NodeName
from steward.model.resume import JobMemory
from steward.model.resume_mode import ResumeMode
from tests.chaos.bench import Bench
from tests.chaos.flow import Flow, Reached
from tests.chaos.flows import a_cluster
from tests.property.law import Law

N6, N8 = NodeName("n6"), NodeName("n8")
HUNG, SLOW = JobId(4), JobId(5)


def _stepping(mode: str) -> Callable[[], Bench]:
    """Beside the others a job on n6 and n8 that has told some steps, and a slow one that goes on on n9."""

    def make() -> Bench:
        bench = a_cluster(9)
        world, law = bench.world, bench.law
        assert isinstance(law, Law)
        law.hang.hangs = lambda job: world.slurm.runs[job].hangs
        law.opted.add(world.submit(2, mode=ResumeMode.parse(mode), works_s=12.0, step_s=0.7))
        law.opted.add(world.submit(1, mode=ResumeMode.parse("any:1,age=0"), works_s=40.0, step_s=2.5))
        bench.run(6.0)
        return bench

    return make


def _hang(bench: Bench) -> None:
    bench.world.stand_still(HUNG)


def _hang_by_fault(bench: Bench) -> None:
    world = bench.world
    world.stand_still(HUNG)
    world.machines.fail_check(N8, Severity.DEGRADED, Advice.REPLACE, world.now, "link")


def _memory(bench: Bench) -> JobMemory | None:
    return bench.memory.jobs.get(HUNG)


def _is_found(bench: Bench) -> bool:
    mem = _memory(bench)
    return mem is not None and mem.hang is not None


def _has_stacks(bench: Bench) -> bool:
    return any(view.bundles for view in bench.world.machines.views.values())


def _is_decided(bench: Bench) -> bool:
    mem = _memory(bench)
    return mem is not None and bool(mem.attempts)


def _runs_again(bench: Bench) -> bool:
    job = bench.world.slurm.jobs[HUNG]
    return job.restarts == 1 and (job.is_active or job.is_over)


STEPS: dict[str, Reached] = {
    "stands still": lambda bench: True,
    "found": _is_found,
    "stacks kept": _has_stacks,
    "decided": _is_decided,
    "requeued": lambda bench: bench.world.slurm.jobs[HUNG].restarts >= 1,
    "runs again": _runs_again,
}
ENDS: dict[str, Reached] = {
    "ran again": _runs_again,
    "the slow job was let alone": lambda bench: not bench.world.slurm.jobs[SLOW].restarts,
}
HANGS = (
    Flow(name="hang", make=_stepping("any:1,age=0"), begin=_hang, node=N6, steps=STEPS, ends=ENDS),
    Flow(
        name="hang by a fault",
        make=_stepping("1"),
        begin=_hang_by_fault,
        node=N8,
        steps={name: STEPS[name] for name in ("stands still", "decided")},
        ends=ENDS,
    ),
)
