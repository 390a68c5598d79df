"""What agents see the ranks of job 7 do."""

from steward.model.ids import JobId
from steward.model.job_sight import Doing, RankGroup, StepSight
from tests.builders.picture import Picture, n


def a_sight(
    picture: Picture,
    node: str,
    *doings: Doing,
    ranks: int = 1,
    first: int = 0,
    for_s: float = 60.0,
    usual_s: float = 0.0,
    step: str = "0",
    job: int = 7,
) -> StepSight:
    """A step of the job on the node; `ranks` of its ranks do each of `doings`, numbered from `first` on."""
    groups = (
        RankGroup(
            doing=doing, ranks=ranks, for_s=for_s, rank=first + ranks * at, pid=4000 + first + at, usual_s=usual_s
        )
        for at, doing in enumerate(doings)
    )
    began = picture.seen.jobs[JobId(job)].started or picture.now
    return StepSight(
        job=JobId(job),
        step=step,
        node=n(node),
        step_s=picture.now - began,
        groups=tuple(groups),
        at=picture.now,
    )
