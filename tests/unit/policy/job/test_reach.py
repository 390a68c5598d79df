"""A fault explains a failure only where the failing thing used that node, at that time; and it costs one resume."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import AnswerAsk, RequeueJob
from steward.model.ask import Answer, AskKind
from steward.model.ids import JobId, NodeName
from steward.model.job import JobState
from steward.model.job_report import TaskExit
from steward.model.memory import NodeMemory
from steward.model.node import NodeBase
from steward.model.observed import Freshness
from steward.model.resume import JobMemory
from steward.model.resume_mode import ResumeMode
from tests.builders.picture import Picture, a_cluster, n, names

STEP, BATCH = AskKind.STEP, AskKind.BATCH
J = JobId(7)
OWN = 7 << 8
STOPS, GOES_BACK = [(Answer.STOP, frozenset[NodeName]())], [RequeueJob]


def memory(picture: Picture) -> JobMemory:
    return picture.plan().memory.jobs[J]


def done(picture: Picture) -> Any:
    """The answers, or that the job goes back."""
    acts = [a for a in picture.plan().actions if isinstance(a, AnswerAsk | RequeueJob)]
    return [type(a) if isinstance(a, RequeueJob) else (a.answer, a.exclude) for a in acts]


def running(mode: str = "1", *, steps: bool = True) -> Picture:
    """A job on n1 to n3 that runs on without a node; its script is on n1."""
    picture = a_cluster().job().opted_in(mode=ResumeMode.parse(mode))
    words = tuple(replace(word, has_steps=steps, told_by=names("n1")) for word in picture.seen.opted_in)
    return picture.see(opted_in=words).then(100)


def without(picture: Picture, name: str) -> Picture:
    """The node is dead, and Slurm takes it out of the job."""
    gone = picture.lost(name).then(0.1).marked(name)
    (job,) = gone.seen.jobs.values()
    return gone.change_job(nodes=job.nodes - names(name))


def asks(picture: Picture, kind: AskKind, **fields: Any) -> Picture:
    asked = picture.then(0.1).see(asks=()).ask(kind, **{"status": OWN, "age": 50 if kind is STEP else None, **fields})
    return asked.then(0.1).checked("n1", "n2", "n3").after(7.0)


def settled(picture: Picture) -> Picture:
    """What was answered is done."""
    return picture.then(0.1).see(asks=())


def survived(picture: Picture) -> Picture:
    """A step on all three nodes lost n2 and runs again in place."""
    lost = without(picture.ask(STEP, nodes="n[1-3]", age=90).then(), "n2")
    assert done(lost) == [(Answer.RETRY, names("n2"))]
    return settled(lost)


def test_a_node_that_no_step_of_the_job_used_explains_neither_its_scripts_nor_its_steps_failures() -> None:
    lost = without(running(), "n3")
    assert done(asks(lost.then(45), BATCH)) == STOPS
    assert done(asks(lost.then(2), STEP, nodes="n1")) == STOPS
    assert done(asks(lost.then(2), STEP, nodes="n[1-2]")) == STOPS


def test_of_a_step_that_no_srun_waits_for_nothing_asks_so_the_scripts_failure_tells_of_it() -> None:
    """`srun --async`."""
    picture = running()
    words = tuple(replace(word, has_detached=True) for word in picture.seen.opted_in)
    lost = without(picture.see(opted_in=words), "n3")
    assert done(asks(lost.then(25), BATCH)) == GOES_BACK
    assert done(asks(lost.then(2), STEP, nodes="n1")) == STOPS


@pytest.mark.parametrize("later_s", [1.0, 25.0, 45.0])
def test_a_fault_that_a_step_survived_explains_no_other_failure(later_s: float) -> None:
    after = survived(running()).then(later_s)
    assert done(asks(after, BATCH)) == STOPS
    assert done(asks(after, STEP, node="n3", step="1", nodes="n[1,3]", age=int(later_s))) == STOPS


def test_nor_does_what_is_seen_later_of_a_node_that_has_left() -> None:
    after = survived(running()).then(40).failing("n2")
    assert done(asks(after, BATCH)) == STOPS
    assert done(asks(after.node("n2", base=NodeBase.DOWN), BATCH)) == STOPS


def test_a_node_that_the_user_gave_up_was_not_taken_out_by_slurm() -> None:
    smaller = running().change_job(nodes=names("n1", "n2")).then(0.1).wait(10.0)
    dead = smaller.lost("n3").then(1.0).marked("n3").then(1.0)
    for steps in (True, False):
        picture = dead.see(opted_in=tuple(replace(w, has_steps=steps) for w in dead.seen.opted_in))
        assert done(asks(picture, BATCH)) == STOPS
    assert done(asks(dead, STEP, nodes="n[1-2]")) == STOPS


def test_nor_was_one_whose_loss_is_seen_in_the_same_look_as_that_it_was_given_up() -> None:
    both = running(steps=False).change_job(nodes=names("n1", "n2")).lost("n3")
    dead = both.then(0.1).marked("n3").wait(10.0)
    assert done(asks(dead, BATCH)) == STOPS


@pytest.mark.parametrize("kind", [STEP, BATCH])
def test_a_fault_of_a_node_that_it_used_explains_a_failure(kind: AskKind) -> None:
    asked = running().ask(kind, nodes="n[2-3]" if kind is STEP else "", age=60).then(0.1)
    bad = asked.failing("n2" if kind is STEP else "n1").then(0.1).marked("n2" if kind is STEP else "n1")
    gone = bad.change_job(nodes=names("n1", "n3")) if kind is STEP else bad.then(3.1)
    assert done(gone) == ([(Answer.RETRY, names("n2"))] if kind is STEP else GOES_BACK)


def test_without_a_known_step_the_scripts_tasks_may_be_anywhere() -> None:
    """`mpirun` over ssh, `torchrun` by pdsh."""
    assert done(asks(without(running(steps=False), "n3"), BATCH)) == GOES_BACK


def test_a_step_that_failed_before_its_nodes_fault_was_found_is_why_the_script_ends() -> None:
    """The step was told to stop, the script ends with its code, and only then the node is found dead."""
    stopped = asks(running(), STEP, nodes="n[2-3]")
    assert done(stopped) == STOPS
    asked = asks(settled(stopped), BATCH)
    assert done(asked) == STOPS
    over = settled(asked).change_job(state=JobState.FAILED, ended=asked.now, exit_status=OWN).then(0.1)
    assert done(over.then(20)) == []
    assert done(over.then(20).lost("n3")) == GOES_BACK
    assert done(over.then(20).lost("n4")) == []


def test_a_step_that_was_held_until_its_deadline_is_why_the_script_ends_when_it_is_let_go() -> None:
    """slurmctld hung for so long; its srun ended 60 s after its tasks."""
    held = running().ask(STEP, nodes="n[1-3]", age=90).lost("n2").then(0.1).see(slurm=Freshness.OLD)
    late = held.after(60.5)
    assert done(late) == STOPS
    assert done(asks(settled(late).see(slurm=Freshness.FRESH).marked("n2"), BATCH)) == GOES_BACK


def test_a_step_that_nobody_was_asked_about_may_have_been_anywhere() -> None:
    """`srun --auto-resume=0`: how its tasks ended is told, and it may be why the script ends."""
    lost = without(running(), "n3")
    exit = TaskExit(job=J, restart=0, step="4", node=n("n2"), task=1, status=9, at=lost.now)
    assert done(asks(lost.agent("n2", exits=(exit,)), BATCH)) == GOES_BACK


def test_a_step_that_began_after_an_outage_was_over_has_nothing_of_it() -> None:
    picture = running().then()
    was = replace(picture.memory.nodes.get(n("n2"), NodeMemory()), lost_at=picture.now)
    blip = replace(picture, memory=replace(picture.memory, nodes={**picture.memory.nodes, n("n2"): was})).after(20.0)
    assert done(asks(blip, STEP, nodes="n[1-2]", age=10)) == STOPS
    assert done(asks(blip, STEP, nodes="n[1-2]", age=90)) == [(Answer.RETRY, frozenset())]


# One fault costs one resume


def test_steps_side_by_side_that_lose_the_same_node_each_run_again_and_cost_one_resume() -> None:
    picture = running("1,max=1").ask(STEP, step="1", nodes="n2", age=60).ask(STEP, step="2", nodes="n[2-3]", age=60)
    lost = without(picture.then(), "n2")
    assert done(lost) == [(Answer.RETRY, names("n2"))] * 2
    assert memory(lost).resumes == 1


def test_a_retry_that_cannot_work_and_the_requeue_that_follows_cost_one_resume() -> None:
    after = survived(running("1,max=1"))
    assert memory(after).resumes == 1
    flop = after.then(0.5).ask(STEP, node="n3", step="1", nodes="n[1,3]", attempt=2, age=0)
    assert done(flop) == GOES_BACK
    assert memory(flop).resumes == 1


def test_a_batch_host_that_dies_right_after_a_retry_costs_no_second_resume() -> None:
    after = survived(running("1,max=1")).then(2.0)
    dead = after.lost("n1").then(0.1).marked("n1").requeued().then(1.0)
    assert memory(dead).pending_from is not None
    assert (memory(dead).resumes, memory(dead).attempts[-1].decision.value) == (1, "requeue")


def test_a_second_fault_long_after_the_first_costs_another_one() -> None:
    after = survived(running("1,max=1")).wait(100.0)
    second = after.ask(STEP, node="n3", step="1", nodes="n[1,3]", attempt=2, age=100).then().failing("n3")
    assert done(second) == STOPS
    assert memory(second).attempts[-1].why.rule == "resume.budget"
