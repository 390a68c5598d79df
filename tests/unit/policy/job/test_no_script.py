"""A job that Slurm runs on without its script is requeued."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import RequeueJob
from steward.model.ask import AskKind
from steward.model.job import JobState
from steward.model.resume import Decision
from tests.builders.picture import T0, Picture, a_cluster, names
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


# A node that was dead and is back while no head looked, and that Slurm did not miss.


def booted(host: str = "n1", *, by: str = "n1", slurmd: float = 650.0, **job: Any) -> Picture:
    """`by` has booted since the run began there, 700 s ago; `slurmd`: when its slurmd began, in seconds after the
    run."""
    running = a_cluster().job(batch_host=host, **job).opted_in(by=("n1", "n2")).then(100.0)
    began = running.seen.jobs[J].started or T0
    return running.see(opted_in=()).opted_in(by=("n1", "n2"), gone=(by,)).node(by, slurmd_started=began + slurmd)


def test_a_node_that_boots_in_the_second_in_which_the_run_began_has_lost_it_too() -> None:
    """Slurm tells whole seconds."""
    assert len(requeues(booted(slurmd=0.0))) == 1


def requeues(picture: Picture) -> list[RequeueJob]:
    return [action for action in picture.plan().actions if isinstance(action, RequeueJob)]


def test_a_job_whose_batch_host_has_booted_under_it_is_requeued_once_and_the_node_is_not_blamed() -> None:
    (requeue,) = requeues(booted())
    assert (requeue.why.rule, requeue.exclude) == ("resume.no_script", frozenset())
    assert requeue.why.evidence == ("Slurm runs it without its script", "n1: it has booted since the run began there")
    assert requeues(booted().then(0.1)) == []
    again = booted().then(0.1).requeued().then(1.0)
    (mem,) = again.plan().memory.jobs.values()
    assert (mem.resumes, mem.excluded) == (1, frozenset())


@pytest.mark.parametrize(
    "picture",
    [
        booted(by="n2"),  # its script lives on n1
        booted(slurmd=-5.0),  # another job's number: the agent was away when this one began
        booted(state=JobState.SUSPENDED, restarts=1),  # it speaks of the run before
        booted(is_batch=False),
        booted().see(opted_in=()).opted_in(by=("n1", "n2")),
    ],
    ids=["another node", "another job", "another run", "no script", "it told of the job anew"],
)
def test_no_other_job_is_touched(picture: Picture) -> None:
    assert requeues(picture) == []


def test_another_users_claim_on_the_job_moves_nothing() -> None:
    picture = booted()
    words = tuple(replace(word, uid=word.uid + 1) if word.gone_from else word for word in picture.seen.opted_in)
    assert requeues(picture.see(opted_in=words)) == []


def test_a_step_that_lost_a_node_so_is_run_again_on_the_nodes_evidence() -> None:
    """Its srun is held until the head is back."""
    asked = booted(by="n2").ask(AskKind.STEP, nodes="n[1-3]", status=256)
    told = asked.then(0.1).checked("n1", "n2", "n3").then(0.1)
    (attempt,) = told.plan().memory.jobs[J].attempts
    assert (attempt.decision, attempt.culprits) == (Decision.RETRY, frozenset())
    assert "n2: it has booted since the run began there" in attempt.why.evidence
    assert names("n2") <= told.seen.jobs[J].nodes
