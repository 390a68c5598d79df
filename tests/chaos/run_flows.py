"""An elastic run grows, gives a node back to Slurm, and loses one."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from steward.model.desired import ElasticPolicy
from steward.model.elastic import ElasticRun, RunPhase
from steward.model.ids import NodeName
from steward.model.instance import Slot
from tests.builders.want import a_want
from tests.chaos.bench import Bench
from tests.chaos.columns import stopped
from tests.chaos.flow import Flow, Reached
from tests.chaos.trouble import Point
from tests.fakes.run_world import BASE, RunWorld
from tests.property.law import Law
from tests.property.stories import FEW, QUICK

N1 = NodeName("n1")
WORKS_S = 80.0
RULES = ElasticPolicy(
    grace_s=20.0, settle_s=3.0, faulty_s=3.0, snooze_s=500.0, backoff_s=500.0, form_s=60.0, pause_s=2.0
)
"""Once it has changed its size it stays: how often it does is not what is looked at here."""

OTHERS_WORK_S = WORKS_S + 20.0
"""A job of somebody else has two of six nodes for longer than the run works."""
CUT = "half of the nodes cut off"
"""An outage: nobody is taken out for it. An order for a base that is cut off is lost, and given anew afterwards."""


def _a_site() -> Bench:
    world = RunWorld.run_of(6, spec="6")
    slots = {node: Slot(node=node, group="main") for node in world.slurm.nodes}
    want = a_want(repair=QUICK, resume=FEW, slots=slots, elastic=RULES)
    law = Law(want)
    bench = Bench(world=world, want=want, law=law)
    bench.run(2.0)
    law.opted.add(BASE)
    return bench


def _submit(bench: Bench) -> None:
    assert bench.world.submit(2, works_s=WORKS_S) == BASE
    bench.watch.bystanders.add(bench.world.submit(2, works_s=OTHERS_WORK_S, mode=None))


def _grown() -> Bench:
    bench = _a_site()
    _submit(bench)
    while not _has(4)(bench):
        bench.run(0.5)
    return bench


def _world(bench: Bench) -> RunWorld:
    assert isinstance(bench.world, RunWorld)
    return bench.world


def _run(bench: Bench) -> ElasticRun | None:
    return bench.memory.elastic.get(BASE)


def _is_at(*phases: RunPhase) -> Reached:
    def reached(bench: Bench) -> bool:
        run = _run(bench)
        return run is not None and run.phase in phases

    return reached


def _has(size: int) -> Reached:
    """Steps are made at this size, and the head knows."""

    def reached(bench: Bench) -> bool:
        run = _run(bench)
        return run is not None and len(run.members) == size and run.phase in (RunPhase.BACKOFF, RunPhase.RUNNING)

    return reached


def _asked(bench: Bench) -> bool:
    return bool(_world(bench).replicas())


def _preempt(bench: Bench) -> None:
    world = _world(bench)
    world.going.add(world.replicas()[0].id)


def _kill_replicas_node(bench: Bench) -> None:
    (node,) = _world(bench).replicas()[-1].nodes
    bench.world.machines.kill(node)


def _was(*changes: int) -> Reached:
    """Its changes of size, in order: none is missing, none is there twice. Below 0: one that was ordered, and of which
    the head does not know that steps were made."""

    def holds(bench: Bench) -> bool:
        run = _run(bench)
        found = () if run is None else tuple(each for each in run.events if each.before)
        return tuple(each.after if each.done is not None else -each.after for each in found) == changes

    return holds


def _over(bench: Bench) -> bool:
    run = _run(bench)
    return run is not None and not run.is_open and not _world(bench).replicas()


Other = Mapping[tuple[str, str], tuple[int, ...]]


def _flow(
    name: str,
    make: Callable[[], Bench],
    begin: Callable[[Bench], None],
    steps: dict[str, Reached],
    *was: int,
    other: Other = MappingProxyType({}),
) -> Flow:
    """`other`: its sizes where the fault of a column rightly leads to others."""
    otherwise = {at: _sizes(*sizes) for at, sizes in other.items()}
    ends: dict[str, Reached] = {"nothing of it is left": _over}
    return Flow(
        name=name, make=make, begin=begin, node=N1, steps=steps, ends=ends, exact=_sizes(*was), otherwise=otherwise
    )


def _sizes(*was: int) -> dict[str, Reached]:
    return {f"its sizes were {was}": _was(*was)}


RUNS = (
    _flow(
        "elastic run grows",
        _a_site,
        _submit,
        {
            "replicas asked for": _asked,
            "settles": _is_at(RunPhase.SETTLING),
            "saves": _is_at(RunPhase.DRAINING),
            "forms again": _is_at(RunPhase.REFORMING),
            "grown": _has(4),
        },
        4,
        other={
            ("settles", CUT): (-4, 4),
            # An order of a size waits a few seconds for its answer, not for another head.
            ("replicas asked for", stopped(Point.BEFORE_ACT)): (-4,),
            ("settles", stopped(Point.AFTER_WRITE)): (-4,),
            ("settles", stopped(Point.BEFORE_ACT)): (-4,),
        },
    ),
    _flow(
        "elastic run gives a node back",
        _grown,
        _preempt,
        {
            "Slurm preempts": lambda bench: True,
            "saves": _is_at(RunPhase.DRAINING, RunPhase.REFORMING),
            "smaller": _has(3),
        },
        4,
        3,
    ),
    _flow(
        "elastic run loses a node",
        _grown,
        _kill_replicas_node,
        {"node dies": lambda bench: True, "smaller": _has(3)},
        4,
        3,
    ),
)
