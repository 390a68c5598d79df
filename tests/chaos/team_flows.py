"""An owner takes back what another team borrowed: by Slurm's own preemption, and by signal, grace and requeue."""

from collections.abc import Callable
from dataclasses import replace

from steward.model.accounting import Capabilities
from steward.model.desired import QuotaPolicy
from steward.model.ids import JobId, NodeName
from steward.model.instance import Slot
from steward.model.quota import QuotaStatus
from steward.model.resume_mode import ResumeMode
from tests.builders.quota import LISTS, TYPES, WEAK, a_quota
from tests.builders.want import a_want, but
from tests.chaos.bench import Bench
from tests.chaos.flow import Flow, Reached
from tests.fakes.team_world import GPU, TeamWorld
from tests.fakes.world_cluster import ON
from tests.property.law import Law
from tests.property.stories import FEW, QUICK

COVERED, LENT, OWNERS = JobId(1), JobId(2), JobId(3)
N3 = NodeName("n3")
GRACE_S = 12.0
"""Longer than a sweep takes: else Slurm has preempted before a head looks."""
NODES, OWN = 6, 3
OWN_GPUS = 4 * OWN
LENT_WORKS_S = 60.0
"""It must not end by itself before it is to be evicted, also where a fault holds up the reclaim."""
OPEN_S = 20.0
"""Until the quotas are in force, and what was submitted runs."""


def _two_teams(can: Capabilities, mode: ResumeMode | None) -> Callable[[], Bench]:
    """Each owns three of six nodes, half of which are enough for an outage. The guest has a job on its own, and one on
    those that the owner does not use."""

    def make() -> Bench:
        world = TeamWorld.teams_of(NODES, "guest", "owner", can=can)
        slots = {node: Slot(node=node, group="main") for node in world.slurm.nodes}
        want = a_want(repair=QUICK, resume=FEW, slots=slots)
        rules = QuotaPolicy(grace_s=GRACE_S, patience_s=4.0)
        want = replace(want, quota=rules, capacity=but(want.capacity, types={**want.capacity.types, **TYPES}))
        law = Law(want)
        bench = Bench(world=world, want=want, law=law)
        quotas = [a_quota(team, gpus=OWN_GPUS, weight=10, borrow_percent=100) for team in ("guest", "owner")]
        bench.remember(replace(bench.memory, quotas={quota.id: quota for quota in quotas}))
        bench.run(OPEN_S)
        assert {quota.status for quota in bench.memory.quotas.values()} == {QuotaStatus.CREATED}
        bench.watch.bystanders.add(world.submit_for("guest", OWN, works_s=120.0))
        bench.run(2.0)
        world.submit_for("guest", OWN, works_s=LENT_WORKS_S, mode=mode)
        law.opted.add(LENT)
        bench.run(4.0)
        return bench

    return make


def _owner_comes(bench: Bench) -> None:
    _world(bench).submit_for("owner", OWN, works_s=10.0)


def _world(bench: Bench) -> TeamWorld:
    assert isinstance(bench.world, TeamWorld)
    return bench.world


def _is_chosen(bench: Bench) -> bool:
    memory = bench.memory.quota_jobs.get(LENT)
    return memory is not None and bool(memory.evictions)


def _was_evicted(bench: Bench) -> bool:
    return bench.world.slurm.jobs[LENT].restarts == 1


def _has_run(id: JobId) -> Reached:
    def reached(bench: Bench) -> bool:
        job = bench.world.slurm.jobs.get(id)
        return job is not None and (job.is_active or job.is_over)

    return reached


def _nothing_is_lent(bench: Bench) -> bool:
    limits = {name: qos.limits.get(GPU) for name, qos in _world(bench).accounting.qos.items()}
    return limits == {
        "normal": None,
        "stw-guest-g": OWN_GPUS,
        "stw-guest-b": 0,
        "stw-owner-g": OWN_GPUS,
        "stw-owner-b": 0,
    }


def _counted_once(bench: Bench) -> bool:
    memory = bench.memory.quota_jobs.get(LENT)
    return memory is not None and memory.count == 1 and memory.yielding is None


STEPS: dict[str, Reached] = {
    "owner asks": lambda bench: True,
    "borrower chosen": _is_chosen,
    "borrower is evicted": _was_evicted,
    "owner's job runs": _has_run(OWNERS),
    "borrower runs again": lambda bench: _was_evicted(bench) and _has_run(LENT)(bench),
}
ENDS: dict[str, Reached] = {
    "the borrower was evicted once": _was_evicted,
    "that is remembered once": _counted_once,
    "limits are as they were": _nothing_is_lent,
}


def _flow(name: str, can: Capabilities, mode: ResumeMode | None) -> Flow:
    return Flow(name=name, make=_two_teams(can, mode), begin=_owner_comes, node=N3, steps=STEPS, ends=ENDS)


RECLAIMS = (_flow("reclaim by Slurm", LISTS, None), _flow("reclaim by Steward", WEAK, ON))
