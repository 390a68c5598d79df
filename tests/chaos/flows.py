"""What is under way when a fault comes: each flow begins in a healthy cluster and has named steps."""

from collections.abc import Callable
from dataclasses import replace

from steward.model.case import CaseStep
from steward.model.deep import DeepCause, DeepKind, DeepRun, DeepState
from steward.model.desired import DeepPolicy
from steward.model.group import BatchSize, GroupStatus
from steward.model.health import Advice, Severity
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.order import AddNodes, Approve, GroupWish, Order, UpdateCluster, UpdateSoftware
from steward.model.partition import PartitionState
from steward.model.repair_policy import RepairPolicy
from steward.model.setting_types import RepairMode
from steward.model.slot import SlotStep
from tests.builders.want import a_want, but
from tests.chaos.bench import Bench
from tests.chaos.flow import Flow, Reached, take_out
from tests.fakes.deep_world import DeepWorld
from tests.fakes.world import World
from tests.property.deep_law import DeepLaw
from tests.property.group_law import GroupLaw
from tests.property.group_stories import a_group_head
from tests.property.law import Law
from tests.property.stories import FEW, QUICK

N1, N2, N4, N6, N7 = (NodeName(f"n{i}") for i in (1, 2, 4, 6, 7))


# Repairs and resumed jobs


def a_cluster(nodes: int = 7, resumes: int = FEW.max_resumes, repair: RepairPolicy = QUICK) -> Bench:
    """Two opted-in jobs, one with a spare inside; one of somebody else; n6 idle; n7 drained by an admin.

    Each job has so many `resumes`.
    """
    world = World.of(nodes)
    slots = {node: Slot(node=node, group="main") for node in world.slurm.nodes}
    want = a_want(repair=repair, resume=but(FEW, max_resumes=resumes), slots=slots)
    law = Law(want)
    bench = Bench(world=world, want=want, law=law)
    take_out(bench, N7)
    law.opted.update({world.submit(2, works_s=14.0), world.submit(2, works_s=14.0, spare=True)})
    bench.watch.bystanders.add(world.submit(1, works_s=30.0, mode=None))
    bench.run(2.0)
    return bench


def an_asking_cluster() -> Bench:
    """Repairs wait for a yes."""
    return a_cluster(repair=but(QUICK, mode=RepairMode.ASK))


def _asked(node: NodeName) -> Reached:
    return lambda bench: any(case.node == node and case.waits_for_yes for case in bench.memory.cases.values())


def _approved(node: NodeName) -> Reached:
    """By a person who says yes again until a head took it."""

    def reached(bench: Bench) -> bool:
        if any(case.node == node and case.approved is not None for case in bench.memory.cases.values()):
            return True
        if bench.is_up and _asked(node)(bench):
            bench.give(Approve(who="me", words=(node,)))
        return False

    return reached


def _at_case(node: NodeName, step: CaseStep) -> Reached:
    order = list(CaseStep)

    def reached(bench: Bench) -> bool:
        cases = [case for case in bench.memory.cases.values() if case.node == node]
        return any(order.index(step) <= order.index(case.step) <= order.index(CaseStep.CLOSED) for case in cases)

    return reached


def _is_repaired(node: NodeName) -> Reached:
    return lambda bench: any(c.node == node and c.step is CaseStep.CLOSED for c in bench.memory.cases.values())


def _degraded(bench: Bench) -> None:
    bench.world.machines.fail_check(N2, Severity.DEGRADED, Advice.REPLACE, bench.world.now, "check-1")


def _kill(node: NodeName) -> Callable[[Bench], None]:
    return lambda bench: bench.world.machines.kill(node)


def _service(bench: Bench) -> None:
    advice = Advice.RESTART_SERVICE
    now, cure = bench.world.now, frozenset({advice})
    bench.world.machines.fail_check(N6, Severity.DEGRADED, advice, now, "light", hardware="munge", cured_by=cure)


def _job_has(restarts: int, *, runs: bool) -> Reached:
    def reached(bench: Bench) -> bool:
        job = min(bench.world.slurm.jobs.values(), key=lambda job: job.id)
        return job.restarts >= restarts and (job.is_active or job.is_over or not runs)

    return reached


def _at_once(bench: Bench) -> bool:
    return True


CASE_STEPS = (CaseStep.DRAIN, CaseStep.RELEASE, CaseStep.LAUNCH, CaseStep.PROVISION, CaseStep.VERIFY, CaseStep.RETURN)
REPAIRS = (
    Flow(
        name="case",
        make=a_cluster,
        begin=_degraded,
        node=N2,
        steps={step.value: _at_case(N2, step) for step in CASE_STEPS},
        ends={"repaired": _is_repaired(N2)},
    ),
    Flow(
        name="case of a dead node",
        make=a_cluster,
        begin=_kill(N6),
        node=N6,
        steps={step.value: _at_case(N6, step) for step in (CaseStep.SUSPECT, CaseStep.DRAIN, CaseStep.LAUNCH)},
        ends={"repaired": _is_repaired(N6)},
    ),
    Flow(
        name="case that waits for approval",
        make=an_asking_cluster,
        begin=_kill(N6),
        node=N6,
        steps={"asked": _asked(N6), "approved": _approved(N6)},
        ends={"approved": _approved(N6), "repaired": _is_repaired(N6)},
    ),
    Flow(
        name="case with a light rung",
        make=a_cluster,
        begin=_service,
        node=N6,
        steps={"mend": _at_case(N6, CaseStep.MEND)},
        ends={"repaired": _is_repaired(N6)},
    ),
    Flow(
        name="resume in place",
        make=a_cluster,
        begin=_kill(N4),
        node=N4,
        steps={
            "node dies": _at_once,
            "shim asks": lambda bench: bool(bench.world.asks or bench.world.answers),
            "node taken out": _at_case(N4, CaseStep.DRAIN),
            "answered": lambda bench: bool(bench.world.answers),
        },
        ends={"repaired": _is_repaired(N4)},
    ),
    Flow(
        name="requeue",
        make=a_cluster,
        begin=_kill(N1),
        node=N1,
        steps={
            "node dies": _at_once,
            "node taken out": _at_case(N1, CaseStep.DRAIN),
            "requeued": _job_has(1, runs=False),
            "runs again": _job_has(1, runs=True),
        },
        ends={"repaired": _is_repaired(N1), "ran again": _job_has(1, runs=True)},
    ),
)

# Groups


def _a_group(target: int, minimum: int) -> Callable[[], Bench]:
    """In service, with somebody's job on its first node."""

    def make() -> Bench:
        head = a_group_head(target=target, minimum=minimum, minimum_timeout_h=3.0)
        head.run(25.0)
        want = replace(head.want, repair=but(head.want.repair, correlated_min=2))
        bench = Bench(world=head.world, want=want, law=GroupLaw(want)).remember(head.store.load())
        job = bench.world.submit(1, works_s=30.0, mode=None)
        bench.world.slurm.jobs[job] = replace(bench.world.slurm.jobs[job], partition="workers")
        bench.watch.bystanders.add(job)
        bench.run(2.0)
        return bench

    return make


def _with_foreign_drain(make: Callable[[], Bench], node: str) -> Callable[[], Bench]:
    def made() -> Bench:
        bench = make()
        take_out(bench, NodeName(node))
        bench.run(4.0)
        return bench

    return made


def _order(order: Order) -> Callable[[Bench], None]:
    def begin(bench: Bench) -> None:
        bench.give(order)
        bench.turn()

    return begin


def _a_slot_at(step: SlotStep) -> Reached:
    return lambda bench: any(slot.step is step for slot in bench.memory.slots.values())


def _has(count: int) -> Reached:
    """So many in service, and that is what is wanted."""

    def reached(bench: Bench) -> bool:
        slots, group = bench.memory.slots.values(), bench.memory.groups.get("workers")
        mine = [slot for slot in slots if slot.group == "workers"]
        machines = [m for m in bench.world.machines.alive.values() if m.node.startswith("workers")]
        is_there = len(mine) == len(machines) == count and all(slot.step is SlotStep.SERVING for slot in mine)
        return is_there and group is not None and group.status is GroupStatus.IN_SERVICE

    return reached


def _gate(state: PartitionState) -> Reached:
    return lambda bench: bench.world.slurm.partitions["workers"].state is state


def _update(count: int, minimum: int) -> Order:
    return UpdateCluster(who="me", cluster="demo", groups=(GroupWish(name="workers", count=count, minimum=minimum),))


def _is_new(bench: Bench) -> bool:
    return all(slot.version.serial >= 1 for slot in bench.memory.slots.values() if slot.group == "workers")


COMING = (SlotStep.LAUNCH, SlotStep.PROVISION, SlotStep.SETUP, SlotStep.VERIFY, SlotStep.RETURN)
GROUPS = (
    Flow(
        name="gate change",
        make=_a_group(4, 1),
        begin=_order(_update(5, 5)),
        node="workers-1",
        steps={
            "asked to close": _at_once,
            "closed": _gate(PartitionState.DOWN),
            "minimum is coming": _a_slot_at(SlotStep.VERIFY),
            "minimum is there": _a_slot_at(SlotStep.RETURN),
        },
        ends={"as many as wanted": _has(5), "open": _gate(PartitionState.UP)},
    ),
    Flow(
        name="scale up",
        make=_with_foreign_drain(_a_group(4, 1), "workers-2"),
        begin=_order(AddNodes(who="me", cluster="demo", wishes=(("workers", 2),))),
        node="workers-5",
        steps={"asked for": _at_once, **{step.value: _a_slot_at(step) for step in COMING}},
        ends={"as many as wanted": _has(6)},
    ),
    Flow(
        name="scale down",
        make=_a_group(6, 1),
        begin=_order(_update(4, 1)),
        node="workers-6",
        steps={
            "asked for": _at_once,
            **{step.value: _a_slot_at(step) for step in (SlotStep.DRAIN, SlotStep.END)},
        },
        ends={"as many as wanted": _has(4)},
    ),
    Flow(
        name="rolling update",
        make=_a_group(8, 1),
        begin=_order(UpdateSoftware(who="me", cluster="demo", groups=(("workers", "v1"),), batch=BatchSize(count=2))),
        node="workers-2",
        steps={
            "asked for": _at_once,
            **{step.value: _a_slot_at(step) for step in (SlotStep.DRAIN, SlotStep.END, *COMING)},
        },
        ends={"as many as wanted": _has(8), "all of the new version": _is_new},
    ),
)

# Deep checks

FAST = DeepPolicy(
    budget_s=60.0, start_timeout_s=20.0, busy_wait_s=200.0, gather_s=2.0, at_once_percent=50.0, command=("/bin/true",)
)


def _deep_cluster() -> Bench:
    world = DeepWorld.deep_of(5)
    want = a_want(slots={name: Slot(node=name, group="main") for name in world.slurm.nodes}, deep=FAST)
    bench = Bench(world=world, want=want, law=DeepLaw(want, 2))
    take_out(bench, NodeName("n5"))
    bench.watch.bystanders.add(world.submit(1, works_s=20.0, mode=None))
    bench.run(2.0)
    run = DeepRun(
        id="d900",
        cause=DeepCause.ASKED,
        who="ann",
        kinds=frozenset(DeepKind),
        nodes=frozenset({NodeName("n2"), NodeName("n3")}),
        asked=world.now,
        entered=world.now,
    )
    return bench.remember(replace(bench.memory, deeps={run.id: run}))


def _deep_at(*states: DeepState) -> Reached:
    return lambda bench: any(run.state in states for run in bench.memory.deeps.values())


DEEP = Flow(
    name="deep check",
    make=_deep_cluster,
    begin=lambda bench: None,
    node="n2",
    steps={
        "waiting": _at_once,
        "reserved": _deep_at(DeepState.RESERVED),
        "running": _deep_at(DeepState.RUNNING),
        "results": lambda bench: any(run.results for run in bench.memory.deeps.values()),
    },
    ends={"done": _deep_at(DeepState.DONE)},
)
