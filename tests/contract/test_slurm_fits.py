"""What every SlurmPort promises about the question whether a job would start, on the fake and on real Slurm."""

from steward.model.fit import UNKNOWN, Fit, FitState, Question
from steward.model.ids import JobId, NodeName
from steward.model.reservation import keep_name
from tests.contract.slurm_worlds import RealWorld, SlurmWorld

N1, N2, N3 = ALL = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
NAME = keep_name(JobId(7))
HOUR_S = 3600.0


def asked(world: SlurmWorld, job: JobId, *without: NodeName, through: str = "") -> Fit:
    return world.port.fits(Question(job=job, without=frozenset(without), reservation=through))


def a_busy_world(world: SlurmWorld) -> JobId:
    """n1 and n2 are busy; a job waits for n1."""
    for node in ("n1", "n2"):
        world.running(world.submit(on=node, minutes=10))
    return world.submit(on="n1", minutes=10)


def test_a_job_would_start_now_where_a_node_is_free(slurm_world: SlurmWorld) -> None:
    for node in ("n1", "n2"):
        slurm_world.running(slurm_world.submit(on=node, minutes=10))
    held = slurm_world.submit(hold=True, minutes=10)

    found = asked(slurm_world, held)
    assert (found.state, *found.nodes) == (FitState.NOW, N3)
    assert slurm_world.job(held).is_pending


def test_it_would_start_later_where_others_run_and_the_missing_thing_is_named(slurm_world: SlurmWorld) -> None:
    waiting = a_busy_world(slurm_world)

    found = asked(slurm_world, waiting)
    assert (found.state, found.missing, *found.nodes) == (FitState.LATER, "nodelist", N1)
    assert found.in_s > 1.0


def test_it_would_never_start_on_other_nodes_than_those_that_it_can_have(slurm_world: SlurmWorld) -> None:
    held = slurm_world.submit(on="n1", hold=True, minutes=10)

    assert asked(slurm_world, held).starts
    assert asked(slurm_world, held, N2, N3).starts
    assert asked(slurm_world, held, N1).state is FitState.NEVER
    any_node = slurm_world.submit(hold=True, minutes=10)
    assert asked(slurm_world, any_node, *ALL).state is FitState.NEVER


def test_jobs_that_wait_before_it_do_not_count(slurm_world: SlurmWorld) -> None:
    a_busy_world(slurm_world)
    held = slurm_world.submit(hold=True, minutes=10)

    assert asked(slurm_world, held, N1, N2).starts


def test_nodes_that_are_kept_are_free_only_through_their_reservation(slurm_world: SlurmWorld) -> None:
    slurm_world.running(slurm_world.submit(on="n3", minutes=10))
    slurm_world.port.keep_nodes(NAME, [N1, N2], HOUR_S)
    held = slurm_world.submit(hold=True, minutes=10)

    assert not asked(slurm_world, held).starts
    assert asked(slurm_world, held, through=NAME).starts
    assert asked(slurm_world, held, N1, through=NAME).nodes == {N2}


def test_nodes_out_of_service_are_none(slurm_world: SlurmWorld) -> None:
    slurm_world.admin("n1", "drain", "for a test")
    held = slurm_world.submit(hold=True, minutes=10)

    assert asked(slurm_world, held).starts
    assert asked(slurm_world, held, N2, N3).state is FitState.NEVER


def test_of_a_job_that_runs_it_tells_where_another_one_like_it_would(slurm_world: SlurmWorld) -> None:
    running = slurm_world.running(slurm_world.submit(minutes=10))

    assert asked(slurm_world, running.id).starts
    assert asked(slurm_world, running.id, *set(ALL) - running.nodes).state is FitState.LATER


def test_of_a_job_that_is_unknown_nothing_is_known(slurm_world: SlurmWorld) -> None:
    assert asked(slurm_world, JobId(4711)).state is FitState.UNKNOWN


def test_a_controller_that_is_away_costs_a_moment(slurm_world: SlurmWorld) -> None:
    held = slurm_world.submit(hold=True, minutes=10)
    slurm_world.break_off()
    assert asked(slurm_world, held) == UNKNOWN
    slurm_world.mend()
    if isinstance(slurm_world, RealWorld):
        return  # it is not asked again for a while
    assert asked(slurm_world, held).starts


def test_the_gres_of_jobs_is_not_told(slurm_world: SlurmWorld) -> None:
    """Where nothing runs, where a job has it, and when it ends: one answer tells both the GRES and whether the node is
    idle."""
    assert slurm_world.port.gres_used() == {}
    job = slurm_world.running(slurm_world.submit()).id
    assert slurm_world.port.gres_used() == {}
    slurm_world.finish(job, 0)
    while not slurm_world.job(job).is_over:
        assert slurm_world.port.gres_used() == {}
        slurm_world.step()
    assert slurm_world.port.gres_used() == {}
