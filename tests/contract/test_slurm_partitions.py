"""What every SlurmPort promises about partitions, dynamic nodes and signals, on the fake and on real Slurm."""

import pytest

from steward.model.ids import JobId, NodeName
from steward.model.mark import Mark
from steward.model.partition import PartitionState
from steward.ports import Permanent, Retryable, Stale
from tests.contract.slurm_worlds import SlurmWorld

UP, DOWN = PartitionState.UP, PartitionState.DOWN
N1, N2, N3, D1 = (NodeName(name) for name in ("n1", "n2", "n3", "d1"))
HOLD = Mark(check="setup", action="hold", id="d1")


def file(state: str = "DOWN", partition: str = "dev", nodes: str = " Nodes=n[1-2]") -> str:
    return (
        f"# ours\nNodeSet=steward-w-1 Feature=w-1{nodes}\n"
        f"PartitionName={partition} Nodes=steward-w-1 State={state} MaxTime=INFINITE\n"
    )


def states(world: SlurmWorld) -> dict[str, PartitionState]:
    return {name: partition.state for name, partition in world.port.partitions().items()}


def test_partitions_are_read_with_their_state_and_nodes(slurm_world: SlurmWorld) -> None:
    (main,) = slurm_world.port.partitions().values()

    assert (main.name, main.state, main.nodes) == ("main", UP, frozenset({N1, N2, N3}))
    assert main.loaded > 0


def test_a_controller_that_is_away_is_not_no_partitions(slurm_world: SlurmWorld) -> None:
    slurm_world.break_off()
    try:
        with pytest.raises(Retryable):
            slurm_world.port.partitions()
    finally:
        slurm_world.mend()


def test_a_closed_partition_goes_on_with_its_jobs_takes_more_and_starts_none(slurm_world: SlurmWorld) -> None:
    running = slurm_world.running(slurm_world.submit()).id
    slurm_world.port.set_gate("main", open=False)
    waiting = slurm_world.submit()
    slurm_world.wait("it is seen why it waits", lambda: slurm_world.job(waiting).reason == "PartitionDown")

    assert states(slurm_world) == {"main": DOWN}
    assert slurm_world.job(running).is_active
    slurm_world.port.set_gate("main", open=True)
    slurm_world.running(waiting)


def test_a_gate_of_a_partition_that_is_not_there_is_stale(slurm_world: SlurmWorld) -> None:
    with pytest.raises(Stale):
        slurm_world.port.set_gate("nowhere", open=True)


@pytest.mark.parametrize("state", ["INACTIVE", "DRAIN"])
def test_states_that_people_set_are_read(slurm_world: SlurmWorld, state: str) -> None:
    slurm_world.set_partition("main", state)

    assert states(slurm_world) == {"main": PartitionState(state)}


def test_a_partition_of_ours_is_there_after_it_was_written(slurm_world: SlurmWorld) -> None:
    slurm_world.port.write_partitions(file("DOWN"))
    dev = slurm_world.port.partitions()["dev"]

    assert (dev.state, dev.nodes) == (DOWN, frozenset({N1, N2}))


def test_writing_changes_no_state_of_what_is_there(slurm_world: SlurmWorld) -> None:
    slurm_world.port.write_partitions(file("DOWN"))
    slurm_world.port.set_gate("dev", open=True)
    slurm_world.set_partition("main", "DOWN")
    slurm_world.port.write_partitions(file("DOWN", nodes=" Nodes=n1"))

    assert slurm_world.port.partitions()["dev"].nodes == {N1}
    assert states(slurm_world) == {"dev": UP, "main": DOWN}


def test_only_another_state_in_the_file_is_for_the_next_start(slurm_world: SlurmWorld) -> None:
    slurm_world.port.write_partitions(file("DOWN"))
    before = slurm_world.port.partitions()["dev"].loaded
    slurm_world.port.write_partitions(file("UP"))

    assert slurm_world.port.partitions()["dev"].state is DOWN
    slurm_world.restart()
    assert slurm_world.port.partitions()["dev"].state is UP
    assert slurm_world.port.partitions()["dev"].loaded > before


def test_a_restart_forgets_what_was_set_and_keeps_what_the_file_says(slurm_world: SlurmWorld) -> None:
    slurm_world.port.write_partitions(file("DOWN"))
    slurm_world.port.set_gate("dev", open=True)
    slurm_world.restart()

    assert states(slurm_world)["dev"] is DOWN


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (file(partition="main"), Permanent),
        (file(nodes=" Nodes=n[1-9]"), Stale),
        ("PartitionName=dev Nodes=ALL State=DOWN MaxTime=INFINITE\n", Permanent),
        ("PartitionName=dev Nodes=nowhere State=DOWN MaxTime=INFINITE\n", Permanent),
        (file("SIDEWAYS"), Permanent),
        ("SlurmctldPort=1\n", Permanent),
        ("include /etc/passwd\n", Permanent),
        (file() + file(), Permanent),
        ("garbage\n", Permanent),
    ],
)
def test_what_slurm_would_not_survive_is_never_written(slurm_world: SlurmWorld, text: str, kind: type) -> None:
    slurm_world.port.write_partitions(file("DOWN"))
    with pytest.raises(kind):
        slurm_world.port.write_partitions(text)

    assert states(slurm_world) == {"main": UP, "dev": DOWN}
    slurm_world.port.write_partitions(file("DOWN", nodes=" Nodes=n3"))
    assert slurm_world.port.partitions()["dev"].nodes == {N3}


def test_a_partition_with_jobs_does_not_go(slurm_world: SlurmWorld) -> None:
    slurm_world.port.write_partitions(file("UP"))
    job = slurm_world.running(slurm_world.submit(partition="dev")).id

    with pytest.raises(Stale, match=str(job)):
        slurm_world.port.write_partitions("# nothing\n")
    assert slurm_world.job(job).is_active
    slurm_world.cancel(job)
    slurm_world.wait("the job is gone", lambda: slurm_world.job(job).is_over)
    slurm_world.port.write_partitions("# nothing\n")
    assert states(slurm_world) == {"main": UP}


def test_a_dynamic_node_comes_drained_for_us_to_mark_and_joins_its_partition(slurm_world: SlurmWorld) -> None:
    slurm_world.port.write_partitions(file("UP", nodes=""))
    slurm_world.register("d1", "w-1")
    came = slurm_world.node("d1")

    assert came.is_dynamic
    assert came.is_drain
    assert came.reason is None
    assert not came.is_foreign
    assert slurm_world.port.partitions()["dev"].nodes == {D1}
    slurm_world.port.drain(dict.fromkeys([D1], HOLD))
    assert slurm_world.node("d1").mark == HOLD
    slurm_world.port.give_back([D1], HOLD)
    slurm_world.running(slurm_world.submit(partition="dev"))


def test_who_is_in_a_partition_is_read_anew_when_a_node_comes_or_goes_long_after(slurm_world: SlurmWorld) -> None:
    slurm_world.port.write_partitions(file("UP", nodes=""))
    slurm_world.let_pass(2.2)  # the seconds of the writing are over: Slurm's stamp of its partitions is an old one
    assert slurm_world.port.partitions()["dev"].nodes == set()
    slurm_world.register("d1", "w-1")

    assert slurm_world.port.partitions()["dev"].nodes == {D1}
    assert slurm_world.node("d1").partitions >= {"dev"}
    slurm_world.let_pass(2.2)
    assert slurm_world.port.partitions()["dev"].nodes == {D1}
    slurm_world.port.forget_nodes([D1])
    assert slurm_world.port.partitions()["dev"].nodes == set()


def test_a_dynamic_node_survives_the_writing_of_partitions_with_its_mark(slurm_world: SlurmWorld) -> None:
    slurm_world.register("d1", "w-1")
    slurm_world.port.drain(dict.fromkeys([D1], HOLD))
    slurm_world.port.write_partitions(file("UP", nodes=""))

    assert slurm_world.node("d1").mark == HOLD
    assert slurm_world.port.partitions()["dev"].nodes == {D1}


def test_a_dynamic_node_that_somebody_drained_is_his(slurm_world: SlurmWorld) -> None:
    slurm_world.register("d1", "w-1")
    slurm_world.admin("d1", "drain", "mine")

    with pytest.raises(Stale, match="mine"):
        slurm_world.port.drain(dict.fromkeys([D1], HOLD))


def test_a_dynamic_node_is_forgotten_and_others_are_not(slurm_world: SlurmWorld) -> None:
    slurm_world.register("d1", "w-1")
    slurm_world.port.forget_nodes([D1, N1, NodeName("n99")])
    slurm_world.port.forget_nodes([D1])

    assert set(slurm_world.port.nodes()) == {N1, N2, N3}


def test_a_dynamic_node_with_a_job_is_not_forgotten(slurm_world: SlurmWorld) -> None:
    slurm_world.register("d1", "w-1")
    slurm_world.port.drain(dict.fromkeys([D1], HOLD))
    slurm_world.port.give_back([D1], HOLD)
    slurm_world.running(slurm_world.submit(on="d1"))

    with pytest.raises(Retryable):
        slurm_world.port.forget_nodes([D1])
    assert D1 in slurm_world.port.nodes()


def test_a_replica_of_an_elastic_run_is_ended_and_no_other_job(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    with pytest.raises(Permanent):
        slurm_world.port.cancel_replica(job, JobId(7))
    slurm_world.comment_by_admin(job, "steward-elastic:7:r1", "comment")
    with pytest.raises(Permanent):
        slurm_world.port.cancel_replica(job, JobId(8))
    assert slurm_world.job(job).is_active

    slurm_world.port.cancel_replica(job, JobId(7))
    slurm_world.wait("it is over", lambda: not slurm_world.job(job).is_active)
    with pytest.raises(Stale):
        slurm_world.port.cancel_replica(job, JobId(7))


def test_a_signal_reaches_the_script_of_a_running_job(slurm_world: SlurmWorld) -> None:
    job = slurm_world.running(slurm_world.submit()).id
    slurm_world.port.signal(job, "USR1")

    slurm_world.wait("the script got it", lambda: slurm_world.has_got(job, "USR1"))
    assert slurm_world.job(job).is_active


def test_a_signal_reaches_one_task_of_an_array_of_which_others_wait(slurm_world: SlurmWorld) -> None:
    """slurmctld delivers it, and answers `try again later`."""
    one, other = slurm_world.submit_array(2, rest=2).values()
    slurm_world.port.signal(one, "USR1")

    slurm_world.wait("the script got it", lambda: slurm_world.has_got(one, "USR1"))
    assert not slurm_world.has_got(other, "USR1")


def test_a_job_that_does_not_run_is_not_signalled(slurm_world: SlurmWorld) -> None:
    with pytest.raises(Stale):
        slurm_world.port.signal(slurm_world.submit(hold=True), "USR1")
