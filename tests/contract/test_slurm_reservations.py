"""What every SlurmPort promises about the reservations of deep checks, on the fake and on real Slurm."""

import contextlib

import pytest

from steward.model.ids import JobId, NodeName
from steward.model.mark import Mark
from steward.ports import Permanent, Retryable, Stale
from tests.contract.slurm_worlds import SlurmWorld

N1, N2, N3 = (NodeName(name) for name in ("n1", "n2", "n3"))
NAME = "steward-deep-d1"
HOUR_S = 3600.0
SLEEP = ("/bin/sleep", "60")


def deep_job(world: SlurmWorld) -> JobId | None:
    mine = [job.id for job in world.port.jobs().values() if job.deep_check == NAME and not job.is_over]
    return mine[0] if mine else None


def release(world: SlurmWorld) -> None:
    """As the cycle does: again and again until nothing is left."""

    def gone() -> bool:
        with contextlib.suppress(Retryable):
            world.port.release(NAME)
        return NAME not in world.port.reservations()

    world.wait("the reservation is gone", gone)


def test_no_reservation_is_a_real_answer(slurm_world: SlurmWorld) -> None:
    assert slurm_world.port.reservations() == {}


def test_a_reservation_is_read_with_its_nodes_and_times(slurm_world: SlurmWorld) -> None:
    slurm_world.port.reserve(NAME, [N1, N2], HOUR_S)
    found = slurm_world.port.reservations()[NAME]

    assert found.is_ours
    assert found.nodes == {N1, N2}
    assert found.ends - found.starts == HOUR_S


def test_reserving_again_is_success_and_other_nodes_are_not(slurm_world: SlurmWorld) -> None:
    slurm_world.port.reserve(NAME, [N1], HOUR_S)
    slurm_world.port.reserve(NAME, [N1], HOUR_S)

    with pytest.raises(Stale):
        slurm_world.port.reserve(NAME, [N2], HOUR_S)
    assert slurm_world.port.reservations()[NAME].nodes == {N1}


def test_jobs_of_others_keep_off_and_one_that_runs_goes_on(slurm_world: SlurmWorld) -> None:
    running = slurm_world.running(slurm_world.submit(on="n1")).id
    slurm_world.port.reserve(NAME, [N1, N2, N3], HOUR_S)
    waiting = slurm_world.submit(on="n2")
    for _ in range(20):
        slurm_world.step()

    assert slurm_world.job(running).is_active
    assert slurm_world.job(waiting).is_pending


def test_its_job_runs_on_all_its_nodes_once_though_the_partition_is_closed(slurm_world: SlurmWorld) -> None:
    slurm_world.port.set_gate("main", open=False)
    slurm_world.port.reserve(NAME, [N1, N2], HOUR_S)
    slurm_world.port.submit_deep(NAME, [N1, N2], SLEEP, seconds=HOUR_S, output="/dev/null")
    slurm_world.port.submit_deep(NAME, [N1, N2], SLEEP, seconds=HOUR_S, output="/dev/null")
    slurm_world.wait("it is there", lambda: deep_job(slurm_world) is not None)
    job = slurm_world.port.jobs()[deep_job(slurm_world) or JobId(0)]
    slurm_world.wait("it runs", lambda: slurm_world.job(job.id).is_active)

    assert slurm_world.job(job.id).nodes == {N1, N2}
    assert [each.id for each in slurm_world.port.jobs().values() if each.deep_check == NAME and not each.is_over] == [
        job.id
    ]


def test_a_job_that_is_moved_into_its_partition_is_not_its_job(slurm_world: SlurmWorld) -> None:
    """Slurm lets each user do that with his waiting jobs."""
    slurm_world.port.reserve(NAME, [N1], HOUR_S)
    others = slurm_world.submit(on="n1")
    slurm_world.pending(others)
    slurm_world.move(others, NAME)
    slurm_world.wait("it was moved", lambda: slurm_world.job(others).partition == NAME)
    slurm_world.port.submit_deep(NAME, [N1], SLEEP, seconds=HOUR_S, output="/dev/null")
    slurm_world.wait("its own runs", lambda: slurm_world.job(deep_job(slurm_world) or others).is_active)

    assert slurm_world.job(others).deep_check == ""
    assert deep_job(slurm_world) != others


def test_its_partition_is_nobodys_concern(slurm_world: SlurmWorld) -> None:
    slurm_world.port.reserve(NAME, [N1], HOUR_S)

    assert set(slurm_world.port.partitions()) == {"main"}
    assert slurm_world.node("n1").partitions == {"main"}


def test_a_drained_node_takes_its_job_when_it_is_given_back_inside(slurm_world: SlurmWorld) -> None:
    mark = Mark(check="setup", action="hold", id="x")
    slurm_world.port.drain(dict.fromkeys([N1], mark))
    slurm_world.port.reserve(NAME, [N1], HOUR_S)
    slurm_world.port.give_back([N1], mark)
    others = slurm_world.submit(on="n1")
    slurm_world.port.submit_deep(NAME, [N1], SLEEP, seconds=HOUR_S, output="/dev/null")
    slurm_world.wait("it is there", lambda: deep_job(slurm_world) is not None)
    slurm_world.wait("it runs", lambda: slurm_world.job(deep_job(slurm_world) or JobId(0)).is_active)

    assert slurm_world.job(others).is_pending


def test_released_with_its_job_running_the_nodes_are_everybodys_again(slurm_world: SlurmWorld) -> None:
    slurm_world.port.reserve(NAME, [N1, N2, N3], HOUR_S)
    slurm_world.port.submit_deep(NAME, [N1, N2, N3], SLEEP, seconds=HOUR_S, output="/dev/null")
    slurm_world.wait("it is there", lambda: deep_job(slurm_world) is not None)
    waiting = slurm_world.submit()
    release(slurm_world)

    slurm_world.running(waiting)
    assert deep_job(slurm_world) is None


def test_releasing_what_is_gone_is_success(slurm_world: SlurmWorld) -> None:
    slurm_world.port.release(NAME)


@pytest.mark.parametrize("name", ["maintenance", "steward-deep-", "steward-deep-a,b", "steward-deep-x y"])
def test_only_names_of_deep_checks_are_made_or_released(slurm_world: SlurmWorld, name: str) -> None:
    with pytest.raises(Permanent):
        slurm_world.port.reserve(name, [N1], HOUR_S)
    with pytest.raises(Permanent):
        slurm_world.port.release(name)


def test_a_controllers_restart_ends_the_job_and_keeps_the_nodes(slurm_world: SlurmWorld) -> None:
    """Slurm forgets partitions made at run time, with their jobs: the job is submitted again."""
    slurm_world.port.reserve(NAME, [N1], HOUR_S)
    slurm_world.restart()

    assert slurm_world.port.reservations()[NAME].nodes == {N1}
    slurm_world.port.submit_deep(NAME, [N1], SLEEP, seconds=HOUR_S, output="/dev/null")
    slurm_world.wait("it is there", lambda: deep_job(slurm_world) is not None)
