"""A node that is in somebody's hands may ask and tell what it likes: of jobs that it does not have, nothing counts."""

import pytest

from steward.model.action import AnswerAsk, RequeueJob
from steward.model.ask import Answer, AskKind
from steward.model.ids import JobId
from tests.builders.picture import Picture, a_cluster

STEP, BATCH = AskKind.STEP, AskKind.BATCH
JOB = JobId(7)


def is_sent_away(picture: Picture) -> bool:
    plan = picture.plan()
    stopped = [a.answer for a in plan.actions if isinstance(a, AnswerAsk)] == [Answer.STOP]
    acted = [a for a in plan.actions if isinstance(a, RequeueJob)]
    mem = plan.memory.jobs.get(JOB)
    said = "ask.foreign" in [event.kind for event in plan.events]
    return stopped and said and not acted and (mem is None or mem.attempts == ())


def a_job(**fields: object) -> Picture:
    return a_cluster().job(**fields).opted_in(by=("n1",)).then()  # type: ignore[arg-type]


@pytest.mark.parametrize("node", ["n2", "n5"])
def test_of_a_script_only_its_batch_host_may_say_that_it_failed(node: str) -> None:
    assert is_sent_away(a_job().ask(BATCH, node=node).lost("n3"))
    assert not is_sent_away(a_job().ask(BATCH, node="n1").lost("n3"))


def test_of_a_step_no_node_may_ask_that_the_job_does_not_have() -> None:
    assert is_sent_away(a_job().ask(STEP, node="n5").lost("n3"))
    assert not is_sent_away(a_job().ask(STEP, node="n2").lost("n3"))


def test_a_run_that_has_not_begun_is_no_way_around() -> None:
    assert is_sent_away(a_job().ask(BATCH, node="n5", restart=99).lost("n3"))


def test_a_step_of_an_allocation_is_asked_for_where_its_user_works() -> None:
    salloc = a_job(is_batch=False, submit_host="n6.example.org")
    assert not is_sent_away(salloc.ask(STEP, node="n6"))
    assert not is_sent_away(salloc.ask(STEP, node="login1")), "a host of which Slurm has no node"
    assert is_sent_away(salloc.ask(STEP, node="n5"))


def test_where_slurm_does_not_tell_the_submit_host_it_may_be_any() -> None:
    assert not is_sent_away(a_job(is_batch=False).ask(STEP, node="n6"))
    assert is_sent_away(a_job().ask(STEP, node="n6")), "a script's steps run in the job"


def test_a_node_that_slurm_took_out_of_the_job_may_still_ask() -> None:
    assert not is_sent_away(a_job().change_job(nodes=frozenset({"n1", "n3"})).ask(STEP, node="n2"))


def test_a_job_is_not_opted_in_by_a_node_that_does_not_have_it() -> None:
    plan = a_cluster().job().opted_in(by=("n5",)).plan()
    assert JOB not in plan.memory.jobs
    (event,) = plan.events
    assert (event.kind, event.node) == ("job.elsewhere", "n5")


def test_a_job_is_not_opted_in_by_a_foreign_nodes_ask() -> None:
    assert JOB not in a_cluster().job().ask(BATCH, node="n5").plan().memory.jobs


def test_a_job_that_never_ran_was_on_no_node() -> None:
    waiting = a_cluster().job().requeued(restarts=0)
    assert JOB not in waiting.opted_in(by=("n5",)).plan().memory.jobs


def test_one_nodes_lie_does_not_hide_what_the_jobs_own_nodes_told() -> None:
    picture = a_cluster().job().opted_in(by=("n5", "n2"))
    assert JOB in picture.plan().memory.jobs


def test_a_job_that_was_requeued_before_anybody_looked_has_opted_in() -> None:
    assert JOB in a_cluster().job().requeued().opted_in(by=("n1",)).plan().memory.jobs
