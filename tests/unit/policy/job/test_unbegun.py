"""A job that Slurm puts back without a run is left to Slurm's own delay: hurried on, it would be put back for ever."""

from dataclasses import replace

from steward.model.job import JobState
from steward.policy.job.nudge import MOST_UNBEGUN
from steward.views.explain import explain_job
from tests.builders.picture import Picture, a_cluster, names
from tests.builders.requeued import J, by_slurm, nudges


def waiting() -> Picture:
    """It never ran; since Slurm 22.05 cannot make its credential, it is put back at each start."""
    first = a_cluster().job(on=(), state=JobState.PENDING, started=None, restarts=0).opted_in()
    return first.then(1)


def put_back(picture: Picture) -> Picture:
    """It is hurried on, and Slurm puts it back without a run."""
    return picture.then(1.1).then(0.1).requeued()


def put_back_twice() -> Picture:
    return put_back(put_back(waiting().requeued())).then(30)


def looks(picture: Picture, seconds: int) -> int:
    """The nudges of a job that is put back by Slurm once for each."""
    count = 0
    for _ in range(seconds):
        picture = picture.then(1.1)
        if nudges(picture):
            count += 1
            picture = picture.then(0.1).requeued()
    return count


def test_a_job_whose_first_run_never_began_is_hurried_on_once_more_and_then_left_to_slurm() -> None:
    """Of a first run that nobody saw it is not known whether a fault ended it."""
    back = waiting().requeued()
    assert looks(back, 30) == MOST_UNBEGUN
    later = put_back_twice()
    said = str(explain_job(J, later.seen, later.want, later.memory, later.now))
    assert "without a run" in said
    assert "left to Slurm's own delay" in said


def test_a_run_that_never_began_because_its_node_died_in_that_moment_costs_no_two_minutes() -> None:
    """The bench of stops saw it once in 300: Slurm's own delay of 121 s, beside six machines that stopped at once."""
    again = by_slurm().then(1).requeued().then(2)
    assert len(nudges(again)) == 1


def test_a_resume_whose_run_never_began_is_left_to_slurm_until_it_runs() -> None:
    """Its user is gone from LDAP between two runs."""
    assert looks(by_slurm(), 30) == MOST_UNBEGUN, "for the fault and once more, and none for what Slurm put back since"
    again = by_slurm().then(1).requeued().then(2).then(0.1).requeued().then(2)
    assert nudges(again) == []
    runs = again.change_job(state=JobState.RUNNING, nodes=names("n1", "n3", "n4"), started=again.now).then(600)
    assert not runs.plan().memory.jobs[J].unbegun
    assert len(nudges(runs.requeued(submitted=runs.now).then(1.1))) == 1, "a person's requeue of a run is hurried on"


def test_a_short_run_that_a_person_requeues_is_hurried_on() -> None:
    """Slurm showed it running, or the agent of a node told of it."""
    start = a_cluster().job().opted_in().then(5)
    blink = start.change_job(started=start.now).then(0.5)
    assert looks(blink.requeued(submitted=start.now + 1), 1) == 1
    told = replace(by_slurm().seen.opted_in[0], restart=2, told_by=names("n1"))
    again = put_back(by_slurm().then(1).requeued())
    assert nudges(again.see(opted_in=(told,)).then(1.1)) != []
    assert nudges(again.then(1.1)) == []


def test_what_slurm_holds_since_its_launch_failed_is_not_left_there() -> None:
    held = by_slurm().then(1).requeued(reason="launch_failed_requeued_held")
    assert looks(held.then(5), 2) > 0
