"""A job that Slurm runs on without its script is requeued."""

from steward.model.action import RequeueJob
from tests.builders.picture import Picture, a_cluster, names
from tests.builders.requeued import J


def without_its_script() -> Picture:
    """The job was submitted with --no-kill: n1, where its script ran, died, and Slurm goes on with the other nodes."""
    return a_cluster().job().opted_in().then().lost("n1").then().marked("n1").change_job(nodes=names("n2", "n3"))


def test_a_job_that_slurm_runs_on_without_its_script_is_requeued_once() -> None:
    requeues = [a for a in without_its_script().plan().actions if isinstance(a, RequeueJob)]
    assert [(a.job, a.why.rule) for a in requeues] == [(J, "resume.no_script")]
    assert [a for a in without_its_script().then(0.1).plan().actions if isinstance(a, RequeueJob)] == []


def test_a_job_without_its_script_and_without_the_option_is_left_alone() -> None:
    picture = a_cluster().job().lost("n1").then().marked("n1").change_job(nodes=names("n2", "n3"))
    assert [a for a in picture.plan().actions if isinstance(a, RequeueJob)] == []


def test_a_job_without_its_script_that_used_up_its_resumes_is_told_to_people() -> None:
    plan = without_its_script().resume(max_resumes=0).plan()
    assert [a for a in plan.actions if isinstance(a, RequeueJob)] == []
    assert "cancel it" in next(e.text for e in plan.events if e.kind == "job.budget")
