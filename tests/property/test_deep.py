"""Deep checks on a simulated cluster: users first, caps kept, nothing left behind, and a restart changes nothing."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun
from steward.model.desired import DeepPolicy
from steward.model.health import Advice, Severity
from steward.model.ids import JobId, NodeName
from steward.model.instance import Slot
from steward.model.job import JobState
from steward.model.reservation import Reservation
from tests.builders.want import a_want, but
from tests.fakes.deep_world import DeepWorld
from tests.fakes.head import Head
from tests.fakes.world_cluster import START
from tests.property.deep_law import DeepLaw

ALL = frozenset(DeepKind)
FAST = DeepPolicy(
    budget_s=60.0, start_timeout_s=20.0, busy_wait_s=60.0, gather_s=2.0, at_once_percent=50.0, command=("/bin/true",)
)
N1, N2, N3 = (NodeName(f"n{i}") for i in (1, 2, 3))


def a_head(nodes: int = 4, deep: DeepPolicy = FAST) -> Head:
    world = DeepWorld.deep_of(nodes)
    slots = {name: Slot(node=name, group="main") for name in world.slurm.nodes}
    want = a_want(slots=slots, deep=deep)
    head = Head(world=world, want=replace(want, repair=but(want.repair, concurrent_min=2)))
    head.run(3.0)
    return head


def world_of(head: Head) -> DeepWorld:
    assert isinstance(head.world, DeepWorld)
    return head.world


def ask(head: Head, *nodes: NodeName, kinds: frozenset[DeepKind] = ALL) -> None:
    run = DeepRun(
        id="d900",
        cause=DeepCause.ASKED,
        who="ann",
        kinds=kinds,
        nodes=frozenset(nodes),
        asked=head.world.now,
        entered=head.world.now,
    )
    head.order(lambda memory: replace(memory, deeps={**memory.deeps, run.id: run}))


def runs(head: Head) -> list[DeepRun]:
    assert head.memory is not None
    return sorted(head.memory.deeps.values(), key=lambda run: run.id)


def results(head: Head) -> dict[NodeName, DeepResult]:
    return {node: result for run in runs(head) for node, result in run.results.items()}


def nothing_left(head: Head) -> None:
    world = world_of(head)
    assert world.slurm.reservations == {}
    ours = [job for job in world.slurm.jobs.values() if job.partition.startswith("steward-deep-")]
    assert all(job.is_over for job in ours)


def watched(head: Head, most: int = 2) -> Head:
    head.watch = DeepLaw(head.want, most)
    return head


def test_idle_nodes_that_were_asked_for_are_checked_and_nothing_is_left() -> None:
    head = watched(a_head())
    ask(head, N1, N2)
    head.run(20.0)

    assert results(head) == {N1: DeepResult.PASSED, N2: DeepResult.PASSED}
    nothing_left(head)


def test_more_nodes_than_may_be_taken_at_once_come_in_their_turn() -> None:
    head = watched(a_head(6), most=3)
    ask(head, *(NodeName(f"n{i}") for i in range(1, 7)))
    head.run(60.0)

    assert set(results(head).values()) == {DeepResult.PASSED}
    assert len(results(head)) == 6
    nothing_left(head)


def test_a_busy_node_is_waited_for_and_checked_when_its_job_is_over() -> None:
    head = watched(a_head(2))
    job = head.world.submit(1, mode=None, works_s=20.0)
    head.run(2.0)
    ask(head, N1, N2)
    head.run(60.0)

    assert head.world.slurm.jobs[job].state is JobState.COMPLETED
    assert results(head) == {N1: DeepResult.PASSED, N2: DeepResult.PASSED}
    nothing_left(head)


def test_a_node_that_stays_busy_is_skipped_and_that_is_said() -> None:
    head = watched(a_head(2))
    head.world.submit(1, mode=None, works_s=1000.0)
    head.run(2.0)
    ask(head, N1)
    head.run(90.0)

    (run,) = runs(head)
    assert run.results[N1] is DeepResult.SKIPPED
    assert "jobs run on the node" in run.why[N1]


def test_a_waiting_job_that_needs_the_nodes_has_them_at_once() -> None:
    head = watched(a_head(2))
    ask(head, N1, N2)
    head.run(3.0)
    assert world_of(head).slurm.reservations
    job = head.world.submit(2, mode=None, works_s=5.0)
    head.run(4.0)

    assert head.world.slurm.jobs[job].state is JobState.RUNNING
    head.run(40.0)
    assert results(head) == {N1: DeepResult.PASSED, N2: DeepResult.PASSED}
    nothing_left(head)


def test_a_job_for_which_other_nodes_are_idle_disturbs_no_check() -> None:
    head = watched(a_head(4))
    ask(head, N1, N2)
    head.run(4.0)
    head.world.submit(1, mode=None, works_s=5.0)
    head.run(20.0)

    assert [run.tries for run in runs(head)] == [0]
    assert results(head) == {N1: DeepResult.PASSED, N2: DeepResult.PASSED}


def test_a_node_that_fails_is_taken_out_and_replaced_and_the_other_is_not() -> None:
    head = watched(a_head(4))
    world_of(head).bad = {N2}
    old = head.world.machines.of(N2)
    ask(head, N1, N2)
    head.run(14.0)
    assert results(head) == {N1: DeepResult.PASSED, N2: DeepResult.FAILED}
    assert head.memory is not None
    (case,) = head.memory.cases.values()
    assert (case.node, case.check, case.trigger.value) == (N2, "deep.stress", "degraded")
    world_of(head).bad = set()
    head.run(60.0)

    assert head.world.machines.of(N2) is not old
    assert not any(case.is_open for case in head.memory.cases.values())
    nothing_left(head)


def test_a_runner_that_tells_nothing_condemns_nobody() -> None:
    head = watched(a_head(4))
    world_of(head).mute_runner = True
    ask(head, N1, N2)
    head.run(80.0)

    assert results(head) == {N1: DeepResult.INCONCLUSIVE, N2: DeepResult.INCONCLUSIVE}
    assert head.memory is not None
    assert not head.memory.cases
    assert any(re.search(r"its job is over \(job \d+: COMPLETED, exit code 0:0\)", event.text) for event in head.events)
    nothing_left(head)


def test_what_is_named_as_ours_and_belongs_to_no_check_is_released() -> None:
    head = a_head(2)
    world = world_of(head)
    world.slurm.reservations["steward-deep-d7-0"] = _reservation("steward-deep-d7-0", world.now)
    world.slurm.reservations["maintenance"] = _reservation("maintenance", world.now)
    head.run(5.0)

    assert set(world.slurm.reservations) == {"maintenance"}


def _reservation(name: str, now: float) -> Reservation:
    return Reservation(name=name, nodes=frozenset({N1}), starts=now, ends=now + 3600)


def test_nodes_in_a_reservation_of_somebody_else_are_left_alone() -> None:
    head = watched(a_head(2))
    world = world_of(head)
    world.slurm.reservations["maintenance"] = _reservation("maintenance", world.now)
    ask(head, N1)
    head.run(80.0)

    assert results(head) == {N1: DeepResult.SKIPPED}
    assert not world.submitted


def test_a_repaired_machine_serves_only_after_its_deep_check_passed() -> None:
    head = watched(a_head(4, but(FAST, on_start=(DeepKind.STRESS,))))
    world = world_of(head)
    world.machines.fail_check(N3, Severity.FATAL, Advice.REPLACE, world.now, "kernel_log")
    served: list[JobId] = []
    head.run(2.0)
    for _ in range(60):
        head.run(1.0)
        if any(name.startswith("steward-deep-") for name in world.slurm.reservations):
            served += [job.id for job in world.slurm.jobs.values() if N3 in job.nodes and job.partition == "main"]
    assert head.memory is not None
    (case,) = head.memory.cases.values()

    assert not case.is_open
    assert case.returned is not None
    assert [run.cause for run in runs(head)] == [DeepCause.ON_START]
    assert results(head) == {N3: DeepResult.PASSED}
    assert not served
    assert world.slurm.nodes[N3].is_schedulable
    nothing_left(head)


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_repaired_machine_whose_job_is_lost_is_tested_again_and_no_user_sees_it_before(lost: int) -> None:
    head = watched(a_head(2, but(FAST, on_start=(DeepKind.STRESS,))))
    world = world_of(head)
    world.lose_jobs = lost
    world.machines.fail_check(N2, Severity.FATAL, Advice.REPLACE, world.now, "kernel_log")
    head.run(1.0)
    wanted = world.submit(2, mode=None, works_s=1.0)
    while not results(head).get(N2) and world.now < START + 300.0:
        head.run(0.2)
        assert world.slurm.jobs[wanted].is_pending or results(head).get(N2) is DeepResult.PASSED
    head.run(60.0)

    assert results(head)[N2] is DeepResult.PASSED
    assert world.slurm.jobs[wanted].state is JobState.COMPLETED
    told = [event.text for event in head.events]
    assert any("its job was lost; the check starts again (job" in text and "CANCELLED" in text for text in told)
    nothing_left(head)


def test_a_repaired_machine_that_fails_its_deep_check_is_replaced_again() -> None:
    head = watched(a_head(4, but(FAST, on_start=(DeepKind.STRESS,))))
    world = world_of(head)
    world.bad = {N3}
    world.machines.fail_check(N3, Severity.FATAL, Advice.REPLACE, world.now, "kernel_log")
    for _ in range(200):
        head.run(0.5)
        if DeepResult.FAILED in results(head).values():
            world.bad = set()
    assert head.memory is not None
    (case,) = head.memory.cases.values()

    assert (case.is_open, case.launches) == (False, 1)
    assert [run.results[N3] for run in runs(head)] == [DeepResult.FAILED, DeepResult.PASSED]
    nothing_left(head)


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize("kill_at", range(1, 30))
def test_a_kill_at_any_point_changes_nothing_but_time(kill_at: int, bad: bool) -> None:
    head = a_head(3)
    world_of(head).bad = {N2} if bad else set()
    head.kill_at = head.point + kill_at
    ask(head, N1, N2)
    head.run(15.0)
    world_of(head).bad = set()
    head.run(80.0)

    assert results(head) == {N1: DeepResult.PASSED, N2: DeepResult.FAILED if bad else DeepResult.PASSED}
    assert all(count == 1 for count in world_of(head).submitted.values())
    nothing_left(head)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0.2, 8.0), st.integers(1, 3), st.floats(1.0, 30.0)), max_size=6))
def test_users_jobs_of_any_kind_are_all_done_and_nothing_is_left(jobs: list[tuple[float, int, float]]) -> None:
    head = watched(a_head(3))
    ask(head, N1, N2, N3)
    for wait, nodes, works in jobs:
        head.run(wait)
        head.world.submit(nodes, mode=None, works_s=works)
    head.run(sum(works for _, _, works in jobs) + 120.0)

    mine = [job for job in head.world.slurm.jobs.values() if job.partition == "main"]
    assert all(job.state is JobState.COMPLETED for job in mine)
    assert set(results(head)) == {N1, N2, N3}
    nothing_left(head)
