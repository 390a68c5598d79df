"""What Slurm requeues by itself counts against a job's resumes."""

from steward.model.action import NudgeJob
from tests.builders.picture import Picture
from tests.builders.resumed import memory, opted, rules, wishes


def slurm_requeues(picture: Picture) -> Picture:
    return picture.lost("n2").then().marked("n2").requeued().then(1.1)


def test_a_job_that_slurm_requeued_beyond_its_budget_is_left_to_slurm() -> None:
    spent = slurm_requeues(opted("1,max=0"))
    assert wishes(spent, NudgeJob) == []
    assert rules(spent) == ["resume.budget"]
    assert memory(spent).resumes == 0


def test_launch_failures_that_slurm_requeues_count_as_resumes() -> None:
    held = opted("1").requeued(reason="launch failed requeued held").then(1.1)
    assert rules(held) == ["resume.by_slurm"]
    (nudge,) = wishes(held, NudgeJob)
    assert isinstance(nudge, NudgeJob)
    assert nudge.release
