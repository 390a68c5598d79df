"""Many nodes lost in one second: their jobs run again on the others, and nothing is harmed where it may be us."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.action import DownNode, DrainNode, LaunchInstance, RequeueJob, TerminateInstance
from steward.model.ids import JobId, NodeName
from steward.model.instance import Slot
from steward.model.job import JobState
from tests.builders.want import a_want
from tests.fakes.head import Head
from tests.fakes.machines import Machines
from tests.fakes.sim_slurm import SLURMD_TIMEOUT_S
from tests.fakes.world import World
from tests.property.law import Law
from tests.property.liveness import Liveness
from tests.property.stories import QUICK

SIZES = (8, 40)
SOON_S = 60.0
"""For a lost job to run again where somebody says that its nodes are gone, or most others are heard."""
LONG_S = 1800.0
COARSE_S = 5.0
HARSH = (DownNode, DrainNode, LaunchInstance, TerminateInstance, RequeueJob)
HOW_MANY: dict[str, Callable[[int], int]] = {
    "one": lambda size: 1,
    "three": lambda size: 3,
    "half": lambda size: size // 2,
    "all": lambda size: size,
}


def a_head(size: int, *, within_s: float = SOON_S, fixed: bool = False) -> tuple[Head, list[JobId]]:
    """A quarter of its nodes works for opted-in jobs of two nodes, the first by name."""
    world = World.of(size)
    world.tick_s = 0.5
    world.machines.fixed = fixed
    want = a_want(repair=QUICK, slots={n: Slot(node=n, group="main", fixed=fixed) for n in world.slurm.nodes})
    live = Liveness(world, within_s)
    law = Law(want, live=live)
    head = Head(world=world, want=want, watch=law if size == min(SIZES) else live)
    jobs = [world.submit(2, works_s=LONG_S, spare=number % 2 == 1) for number in range(max(1, size // 8))]
    law.opted.update(jobs)
    head.run(2.0)
    return head, jobs


def first(count: int, head: Head) -> list[NodeName]:
    """The nodes of jobs are among them."""
    return sorted(head.world.slurm.nodes)[:count]


def open_incidents(head: Head) -> list[str]:
    assert head.memory is not None
    return [one.text for one in head.memory.incidents.values() if one.over is None]


def runs(head: Head, job: JobId) -> bool:
    found = head.world.slurm.jobs[job]
    return found.state is JobState.RUNNING and all(head.world.is_alive(name) for name in found.nodes)


def harsh(head: Head) -> list[str]:
    return [action.key for action in head.done if isinstance(action, HARSH)]


def let(head: Head, nodes: list[NodeName], happen: Callable[[Machines, NodeName, float], None]) -> None:
    for node in nodes:
        happen(head.world.machines, node, head.world.now)


def still_away(head: Head) -> set[NodeName]:
    return {name for name, view in head.world.machines.views.items() if not view.connected}


def heal(head: Head) -> None:
    for node in head.world.slurm.nodes:
        head.world.machines.unmute(node)


def power_back(machines: Machines, node: NodeName, now: float) -> None:
    machine = machines.of(node)
    assert machine is not None
    machines.reboot(machine.id, now)


def agent_breaks(machines: Machines, node: NodeName, now: float) -> None:
    machines.restart_agent(node, now, math.inf)


def all_serve(head: Head) -> bool:
    nodes = head.world.slurm.shown_nodes(head.world.now)
    return all(node.is_schedulable and head.world.is_alive(name) for name, node in nodes.items())


sizes = pytest.mark.parametrize("size", SIZES)


@sizes
@pytest.mark.parametrize("many", ["one", "three", "half"])
def test_when_power_is_cut_and_the_provider_says_so_jobs_run_again_and_all_is_repaired(size: int, many: str) -> None:
    head, jobs = a_head(size)
    let(head, first(HOW_MANY[many](size), head), Machines.power_off)
    head.run(SOON_S)
    assert [job for job in jobs if not runs(head, job)] == []
    head.run(LONG_S / 3, COARSE_S)
    assert open_incidents(head) == []
    assert all_serve(head)


@sizes
@pytest.mark.parametrize("many", ["one", "three"])
@pytest.mark.parametrize("loss", [Machines.mute, lambda machines, node, now: machines.kill(node)])
def test_where_most_are_heard_jobs_run_again_though_nobody_else_speaks_against_the_lost(
    size: int, many: str, loss: Callable[[Machines, NodeName, float], None]
) -> None:
    """Power or network cut, and the provider lists the machines as running or not at all."""
    head, jobs = a_head(size)
    let(head, first(HOW_MANY[many](size), head), loss)
    head.run(SOON_S)
    assert [job for job in jobs if not runs(head, job) or head.world.slurm.jobs[job].nodes & still_away(head)] == []
    head.run(SLURMD_TIMEOUT_S + LONG_S / 3, COARSE_S)
    assert open_incidents(head) == []
    assert all_serve(head)


@sizes
def test_half_that_lose_their_power_unheard_are_found_gone_by_agents_that_are_heard_and_jobs_run_again(
    size: int,
) -> None:
    head, jobs = a_head(size)
    let(head, first(size // 2, head), Machines.mute)
    head.run(SOON_S)
    assert [job for job in jobs if not runs(head, job)] == []
    head.run(SLURMD_TIMEOUT_S + LONG_S / 3, COARSE_S)
    assert open_incidents(head) == []
    assert all_serve(head)


@sizes
@pytest.mark.parametrize("many", ["three", "half"])
def test_nodes_that_only_the_head_does_not_reach_keep_their_jobs_until_slurm_gives_them_up(
    size: int, many: str
) -> None:
    head, jobs = a_head(size, within_s=SLURMD_TIMEOUT_S + SOON_S)
    let(head, first(HOW_MANY[many](size), head), Machines.cut_off)
    head.run(SOON_S)
    assert harsh(head) == []
    head.run(SLURMD_TIMEOUT_S, COARSE_S)
    assert [job for job in jobs if not runs(head, job)] == []


@sizes
@pytest.mark.parametrize("away_s", [20.0, 100.0])
@pytest.mark.parametrize("many", ["half", "all"])
def test_a_cut_that_may_be_the_heads_own_harms_nobody_and_jobs_go_on(size: int, many: str, away_s: float) -> None:
    head, jobs = a_head(size)
    let(head, first(HOW_MANY[many](size), head), Machines.cut_off)
    head.run(away_s)
    assert len(open_incidents(head)) == 1
    heal(head)
    head.run(SOON_S)
    assert harsh(head) == []
    assert open_incidents(head) == []
    assert [head.world.slurm.jobs[job].restarts for job in jobs] == [0] * len(jobs)


@sizes
def test_a_head_that_was_cut_off_until_slurm_gave_all_nodes_up_replaces_none_of_them(size: int) -> None:
    head, jobs = a_head(size, within_s=SLURMD_TIMEOUT_S)
    let(head, first(size, head), Machines.cut_off)
    head.world.provider_hangs_until = head.world.now + SLURMD_TIMEOUT_S + SOON_S
    head.run(SLURMD_TIMEOUT_S + SOON_S, COARSE_S)
    assert harsh(head) == []
    assert "the head reaches no node" in open_incidents(head)[0]
    for node in first(size, head):
        head.world.machines.unmute(node)
        head.run(0.3)
    head.run(SOON_S)
    assert harsh(head) == []
    assert all_serve(head)
    assert [job for job in jobs if not runs(head, job)] == []


@sizes
def test_all_that_lose_their_power_are_waited_for_and_their_jobs_run_again_when_it_is_back(size: int) -> None:
    head, jobs = a_head(size)
    let(head, first(size, head), Machines.mute)
    head.run(SOON_S)
    assert harsh(head) == []
    let(head, first(size, head), power_back)
    head.run(SOON_S)
    assert harsh(head) == []
    assert [job for job in jobs if not runs(head, job)] == []
    assert open_incidents(head) == []


@sizes
@pytest.mark.parametrize("fixed", [False, True], ids=["replaced", "fixed"])
def test_a_rack_whose_power_comes_back_serves_again_and_nobody_has_to_come(size: int, fixed: bool) -> None:
    head, jobs = a_head(size, fixed=fixed)
    let(head, rack := first(3, head), Machines.power_off)
    head.run(SOON_S)
    let(head, [node for node in rack if (m := head.world.machines.of(node)) and m.off], power_back)
    head.run(SOON_S)
    assert all_serve(head)
    assert [job for job in jobs if not runs(head, job)] == []


@sizes
def test_where_the_agents_package_is_broken_everywhere_nothing_is_touched_while_slurmd_answers(size: int) -> None:
    head, jobs = a_head(size)
    let(head, first(size, head), agent_breaks)
    head.run(LONG_S / 2, COARSE_S)
    assert harsh(head) == []
    assert [head.world.slurm.jobs[job].restarts for job in jobs] == [0] * len(jobs)


@sizes
def test_a_node_that_dies_later_is_no_part_of_the_incident_and_its_job_runs_again(size: int) -> None:
    head, jobs = a_head(size)
    let(head, sorted(head.world.slurm.nodes)[-size // 2 :], Machines.cut_off)
    head.run(SOON_S)
    host = head.world.slurm.jobs[jobs[0]].batch_host
    assert host is not None
    head.world.machines.kill(host)
    head.run(SOON_S)
    assert runs(head, jobs[0])
    assert len(open_incidents(head)) == 1
    assert {action.node for action in head.done if isinstance(action, DownNode)} == {host}


@settings(max_examples=15)
@given(
    lost=st.sets(st.integers(1, 8), min_size=1, max_size=3),
    gaps=st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=3, max_size=3),
    loss=st.sampled_from([Machines.power_off, Machines.mute, lambda m, node, now: m.kill(node)]),
    restart=st.booleans(),
)
def test_however_fewer_than_half_are_lost_their_jobs_run_again(
    lost: set[int], gaps: list[float], loss: Callable[[Machines, NodeName, float], None], restart: bool
) -> None:
    """One after the other, too: those that come before it is an incident, and one that a breaker would hold."""
    head, jobs = a_head(8)
    for number, gap in zip(sorted(lost), gaps, strict=False):
        let(head, [NodeName(f"n{number}")], loss)
        head.run(gap)
    if restart:
        head.memory = None
        head.world.restart_head()
    head.run(1.5 * SOON_S)
    assert [job for job in jobs if not runs(head, job)] == []
