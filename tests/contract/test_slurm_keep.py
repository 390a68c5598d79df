"""What every SlurmPort promises about nodes that are kept for a resumed job, its place in the queue and its time limit,
on the fake and on real Slurm."""

import pytest

from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.reservation import hot_name, keep_name
from steward.ports import Permanent, PortError, Stale
from tests.contract.slurm_worlds import SlurmWorld

N1, N2, N3 = (NodeName(name) for name in ("n1", "n2", "n3"))
NAME = keep_name(7)  # type: ignore[arg-type]
LEAST = 1
"""Of every job under priority/multifactor without weights, the default since 24.11: nice -1 changes nothing there."""
HOUR_S = 3600.0


def some_time(world: SlurmWorld) -> None:
    for _ in range(20):
        world.step()


def test_no_new_job_starts_on_kept_nodes_and_one_that_runs_there_goes_on(slurm_world: SlurmWorld) -> None:
    running = slurm_world.running(slurm_world.submit(on="n1")).id
    slurm_world.port.keep_nodes(NAME, [N1, N2], HOUR_S)
    waiting, other = slurm_world.submit(on="n2"), slurm_world.submit(on="n3")
    slurm_world.running(other)
    some_time(slurm_world)

    assert slurm_world.job(running).is_active
    assert slurm_world.job(waiting).is_pending
    assert slurm_world.port.reservations()[NAME].kept_for == 7


def test_freed_nodes_are_everybodys_again_and_freeing_twice_is_success(slurm_world: SlurmWorld) -> None:
    slurm_world.port.keep_nodes(NAME, [N1, N2], HOUR_S)
    waiting = slurm_world.submit(on="n2")
    slurm_world.port.free_nodes(NAME)
    slurm_world.port.free_nodes(NAME)

    slurm_world.running(waiting)
    assert slurm_world.port.reservations() == {}


def test_keeping_again_changes_the_nodes(slurm_world: SlurmWorld) -> None:
    name = hot_name("main")
    slurm_world.port.keep_nodes(name, [N1, N2], HOUR_S)
    slurm_world.port.keep_nodes(name, [N2, N3], 2 * HOUR_S)

    found = slurm_world.port.reservations()[name]
    assert found.nodes == {N2, N3}
    assert found.hot_group == "main"
    assert found.ends - found.starts == pytest.approx(2 * HOUR_S, abs=120)
    slurm_world.running(slurm_world.submit(on="n1"))


def test_nodes_of_another_reservation_are_not_taken(slurm_world: SlurmWorld) -> None:
    slurm_world.port.keep_nodes(hot_name("main"), [N1], HOUR_S)

    with pytest.raises(PortError):
        slurm_world.port.keep_nodes(NAME, [N1, N2], HOUR_S)
    assert NAME not in slurm_world.port.reservations()


def test_a_job_that_runs_when_its_nodes_are_kept_and_freed_again_is_not_touched(slurm_world: SlurmWorld) -> None:
    running = slurm_world.running(slurm_world.submit(on="n1"))
    slurm_world.port.keep_nodes(NAME, [N1], HOUR_S)
    slurm_world.port.free_nodes(NAME)
    some_time(slurm_world)

    after = slurm_world.job(running.id)
    assert (after.state, after.nodes, after.restarts) == (running.state, running.nodes, running.restarts)


@pytest.mark.parametrize(
    "name", ["maintenance", "steward-deep-d1", "steward-keep-", "steward-keep-a,b", "steward-hot-x y"]
)
def test_only_our_own_names_are_kept_or_freed(slurm_world: SlurmWorld, name: str) -> None:
    with pytest.raises(Permanent):
        slurm_world.port.keep_nodes(name, [N1], HOUR_S)
    with pytest.raises(Permanent):
        slurm_world.port.free_nodes(name)


def test_a_job_whose_nice_value_is_lowered_goes_before_an_older_one(slurm_world: SlurmWorld) -> None:
    slurm_world.port.keep_nodes(NAME, [N1], HOUR_S)
    older, younger = slurm_world.submit(on="n1"), slurm_world.submit(on="n1")
    some_time(slurm_world)
    theirs, own = slurm_world.job(older).priority, slurm_world.job(younger).priority
    assert theirs >= own
    ahead = theirs - own + 1 + (own == LEAST)
    slurm_world.port.set_nice(younger, -ahead)
    assert slurm_world.job(younger).nice == -ahead
    assert slurm_world.job(younger).priority == slurm_world.job(older).priority + 1
    slurm_world.port.free_nodes(NAME)

    slurm_world.running(younger)
    assert slurm_world.job(older).is_pending
    slurm_world.port.set_nice(younger, 0)
    assert slurm_world.job(younger).nice == 0


def test_the_nice_value_of_a_job_that_is_over_is_not_set(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.finish(job, 0)
    slurm_world.wait("it is over", lambda: slurm_world.job(job).is_over)

    with pytest.raises(Stale):
        slurm_world.port.set_nice(job, -5)


def test_the_nice_value_of_a_held_job_is_not_set_which_would_start_it(slurm_world: SlurmWorld) -> None:
    job = slurm_world.submit(hold=True)

    with pytest.raises(Stale):
        slurm_world.port.set_nice(job, -5)
    assert (slurm_world.job(job).nice, slurm_world.job(job).priority) == (0, 0)


def test_a_time_limit_is_extended_in_whole_minutes_and_never_shortened(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(minutes=10)).id
    slurm_world.port.extend(job, 12 * 60.0 + 1)
    assert slurm_world.job(job).time_limit_s == 13 * 60.0
    slurm_world.port.extend(job, 12 * 60.0 + 1)
    slurm_world.port.extend(job, 60.0)

    assert slurm_world.job(job).time_limit_s == 13 * 60.0


def test_a_time_limit_is_not_extended_beyond_what_the_partition_allows(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit(minutes=10)).id
    slurm_world.longest(15)
    slurm_world.port.extend(job, HOUR_S)

    assert slurm_world.job(job).time_limit_s == 15 * 60.0


def test_a_job_without_limit_stays_so_and_one_that_waits_is_not_extended(slurm_world: SlurmWorld) -> None:
    endless = slurm_world.running(slurm_world.submit())
    slurm_world.port.extend(endless.id, HOUR_S)
    waiting = slurm_world.submit(hold=True, minutes=10)

    assert slurm_world.job(endless.id).time_limit_s == endless.time_limit_s
    with pytest.raises(Stale):
        slurm_world.port.extend(waiting, HOUR_S)


def test_one_task_of_an_array_is_extended_alone(slurm_world: SlurmWorld) -> None:
    tasks = slurm_world.submit_array(2)
    slurm_world.port.set_nice(tasks[2], -3)

    assert [slurm_world.job(tasks[index]).nice for index in (1, 2)] == [0, -3]


def test_the_waiting_tasks_of_an_array_begin_later_and_the_running_ones_go_on(slurm_world: SlurmWorld) -> None:
    running = slurm_world.submit_array(1, rest=2)[1]
    array = slurm_world.job(running).array_job_id
    assert array is not None

    def waiting() -> list[Job]:
        found = slurm_world.port.jobs().values()
        return [job for job in found if job.array_job_id == array and job.is_pending]

    begun = slurm_world.job(running)
    before = max(job.submitted or 0.0 for job in waiting())
    slurm_world.port.delay_tasks(array, 600)
    assert all((job.eligible or 0.0) >= before + 590 for job in waiting())
    after = slurm_world.job(running)
    assert (after.state, after.eligible, after.nodes) == (begun.state, begun.eligible, begun.nodes)
    slurm_world.port.delay_tasks(array, 0)
    assert all((job.eligible or 0.0) <= before + 500 for job in waiting())
    slurm_world.port.delay_tasks(JobId(4711), 10)
