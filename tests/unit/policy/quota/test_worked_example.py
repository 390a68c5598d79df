"""Three teams on two machines of four GPUs, step by step, with the figures of HyperPod's own walk-through."""

from typing import Any

import pytest

from steward.model.machine_types import MachineType
from steward.model.quota import CPU, GPU, MEM, Reclaimed, Resource, Share, resource
from steward.policy.quota.decide import UnitStanding
from steward.policy.quota.fill_in import owned
from steward.policy.quota.requests import Unit
from tests.builders.quota import C5, G6, P5, POOL, TYPES, Site, a_quota, a_unit, needs

GIB = 1024
TEAMS = (
    a_quota("onlygputeam", Share(machine_type=G6.name, accelerators=2, vcpu=48), borrow_percent=50, weight=10),
    a_quota("onlygputeam2", Share(machine_type=G6.name, accelerators=2), borrow_percent=10, weight=10),
    a_quota(
        "mixquotatype",
        Share(machine_type=G6.name, accelerators=2),
        Share(machine_type=P5.name, count=3),
        Share(machine_type=C5.name, vcpu=2),
        borrow_percent=10,
        weight=10,
    ),
)
CAPACITY = needs(8, 96, 384)
G, G2, M = (quota.team for quota in TEAMS)


def job(id: int, team: str, gpus: int, cpus: int, gib: int, **fields: Any) -> Unit:
    return a_unit(id, team, options=(needs(gpus, cpus, gib),), **fields)


def of(values: dict[str, int], machine: str = G6.name) -> dict[Resource, int]:
    return {resource(machine, kind): amount for kind, amount in values.items()}


@pytest.mark.parametrize(
    ("team", "nominal", "borrow"),
    [
        (0, of({GPU: 2, CPU: 48, MEM: 192 * GIB}), of({GPU: 1, CPU: 24, MEM: 96 * GIB})),
        (1, of({GPU: 2, CPU: 24, MEM: 96 * GIB}), of({GPU: 0, CPU: 2, MEM: 9830})),
    ],
)
def test_what_was_not_said_is_filled_in(team: int, nominal: dict[Resource, int], borrow: dict[Resource, int]) -> None:
    found = owned(TEAMS[team], TYPES)
    assert (found.nominal, found.may_borrow) == (nominal, borrow)


G5 = MachineType(name="ml.g5.2xlarge", cpus=8, memory_mb=32 * GIB, gpus=1)


@pytest.mark.parametrize(
    ("asked", "filled"),
    [
        (Share(machine_type=P5.name, accelerators=2), {GPU: 2, CPU: 48, MEM: 512 * GIB}),
        (Share(machine_type=P5.name, count=2), {GPU: 16, CPU: 384, MEM: 4096 * GIB}),
        (Share(machine_type=P5.name, vcpu=48), {CPU: 48, MEM: 512 * GIB}),
        (Share(machine_type=P5.name, memory_gib=512), {CPU: 48, MEM: 512 * GIB}),
        (Share(machine_type=G5.name, accelerators=2), {GPU: 2, CPU: 16, MEM: 64 * GIB}),
        (Share(machine_type=C5.name, vcpu=2), {CPU: 2, MEM: 4 * GIB}),
    ],
)
def test_the_articles_defaults_follow_the_ratio_of_one_machine(asked: Share, filled: dict[str, int]) -> None:
    """Without accelerators in the question there are none in the quota."""
    found = owned(a_quota("team", asked), {**TYPES, G5.name: G5})
    assert {name: amount for name, amount in found.nominal.items() if amount} == of(filled, asked.machine_type)


def test_a_team_owns_of_several_machine_types() -> None:
    found = owned(TEAMS[2], TYPES)
    assert found.nominal == {
        **of({GPU: 2, CPU: 24, MEM: 96 * GIB}),
        **of({GPU: 24, CPU: 576, MEM: 6144 * GIB}, P5.name),
        **of({CPU: 2, MEM: 4 * GIB}, C5.name),
    }
    assert found.may_borrow[resource(P5.name, GPU)] == 2


def test_a_borrow_limit_that_is_rounded_to_nothing_is_warned_of() -> None:
    assert owned(TEAMS[1], TYPES).warnings == (f"10 % of 2 {POOL} is 0: onlygputeam2 can never borrow it",)
    assert owned(TEAMS[0], TYPES).warnings == ()


@pytest.mark.parametrize("count_filled", [False, True])
def test_the_six_steps(count_filled: bool) -> None:
    site = Site(TEAMS, CAPACITY, count_filled=count_filled)
    first = job(1, G, 2, 48, 96)
    assert site.decide([], [first]).rulings[first.id].standing is UnitStanding.OWN

    running = [job(1, G, 2, 48, 96, running=True, qos="stw-onlygputeam-g")]
    second = job(2, G, 1, 12, 48)
    found = site.decide(running, [second])
    assert found.rulings[second.id].standing is UnitStanding.BORROWED
    running.append(job(2, G, 1, 12, 48, running=True))
    share, _ = site.ledger(running).rank(G)
    assert share == pytest.approx((1 / 6) / 10 if not count_filled else max(1 / 6, 12 / 96) / 10)

    third = job(3, G, 1, 12, 48)
    found = site.decide(running, [third])
    assert (found.rulings[third.id].standing, found.rulings[third.id].short) == (UnitStanding.WAITS, {POOL: 1})

    fourth = job(4, G2, 2, 24, 96)
    found = site.decide(running, [third, fourth])
    assert found.rulings[fourth.id].standing is UnitStanding.OWN
    assert found.yielding == []
    running.append(job(4, G2, 2, 24, 96, running=True, qos="stw-onlygputeam2-g"))

    fifth = job(5, G2, 1, 12, 48)
    found = site.decide(running, [third, fifth])
    assert not found.rulings[fifth.id].may_run
    assert POOL in found.rulings[fifth.id].short

    sixth = job(6, M, 2, 24, 96)
    found = site.decide(running, [third, fifth, sixth])
    assert found.rulings[sixth.id].standing is UnitStanding.OWN
    assert [(each.unit.id, each.to.id, each.cause) for each in found.yielding] == [(2, 6, Reclaimed.RECLAIM)]
