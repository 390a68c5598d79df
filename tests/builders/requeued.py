"""Job 7 after Slurm put it back into the queue, and the nudges that a plan gives it."""

from steward.model.action import NudgeJob
from steward.model.ids import JobId
from steward.model.job import JobState
from tests.builders.picture import Picture, a_cluster

J = JobId(7)


def nudges(picture: Picture) -> list[NudgeJob]:
    return [a for a in picture.plan().actions if isinstance(a, NudgeJob)]


def by_slurm(count: int = 6) -> Picture:
    """n2 died, was marked down, and Slurm put the job back into the queue; the second in which that was is over."""
    return a_cluster(count).job().opted_in().then().lost("n2").then().marked("n2").requeued().then(1.1)


def later(picture: Picture, delay_s: float) -> Picture:
    """Somebody says `scontrol update starttime=now+...` of a job that was nudged before."""
    return picture.then(1.0).change_job(reason="BeginTime", eligible=picture.now + 1.0 + delay_s)


def failed(state: JobState = JobState.FAILED) -> Picture:
    """The job ended while the head was away: nobody could be asked."""
    return a_cluster().job().opted_in().then(100).change_job(state=state, ended=a_cluster().now + 95, exit_status=256)
