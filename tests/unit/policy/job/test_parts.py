"""A heterogeneous job is one job: a fault under any of its parts speaks for it, and only its leader is acted on."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import AnswerAsk, CheckNow, DownNode, NudgeJob, RequeueJob
from steward.model.agent_action import Action
from steward.model.ask import Answer, AskKind
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.resume_policy import ResumeDefault
from tests.builders.picture import Picture, a_cluster, names

LEADER, PART = JobId(7), JobId(8)
TOLD = "n3: check kernel_log failed: Xid 79"


def running() -> Picture:
    """The leader, where the script runs, has n1 and n2, the other part n3; somebody else's part has n4."""
    picture = a_cluster().job(7, on=("n1", "n2"), het_job_id=LEADER).job(8, on=("n3",), het_job_id=LEADER)
    return picture.job(9, on=("n4",), het_job_id=JobId(9)).opted_in(7).then()


def asked(kind: AskKind = AskKind.BATCH) -> Picture:
    return running().ask(kind)


def of(picture: Picture, *kinds: type[Action]) -> list[Action]:
    return [a for a in picture.plan().actions if isinstance(a, kinds)]


def both(picture: Picture, **fields: Any) -> Picture:
    return picture.change_job(7, **fields).change_job(8, **fields)


def test_the_nodes_of_all_its_parts_are_checked_and_nobody_elses() -> None:
    (check,) = of(asked(), CheckNow)
    assert isinstance(check, CheckNow)
    assert check.nodes == names("n1", "n2", "n3")


def test_a_fault_under_another_part_is_evidence_and_the_whole_job_is_requeued_without_that_node() -> None:
    picture = asked().then(0.1).checked("n1", "n2", "n3").failing("n3")
    assert [a.node for a in of(picture, DownNode) if isinstance(a, DownNode)] == ["n3"]
    out = picture.then().marked("n3").then(4)
    (requeue,) = of(out, RequeueJob)
    assert isinstance(requeue, RequeueJob)
    assert (requeue.job, TOLD in requeue.why.evidence) == (LEADER, True)
    assert out.plan().memory.jobs[LEADER].attempts[-1].culprits == names("n3")
    assert requeue.exclude == names("n3")


def test_a_fault_of_somebody_elses_part_is_none() -> None:
    picture = asked().then(0.1).checked("n1", "n2", "n3").failing("n4")
    (answer,) = of(picture, AnswerAsk)
    assert isinstance(answer, AnswerAsk)
    assert (answer.answer, answer.why.rule) == (Answer.STOP, "resume.no_evidence")


def test_a_part_of_which_nobody_heard_yet_is_waited_for() -> None:
    picture = asked().then(0.1).checked("n1", "n2")
    assert of(picture, AnswerAsk) == []
    frozen = asked().agent("n3", late=True).then(0.1).checked("n1", "n2", "n3").agent("n3", late=True)
    assert of(frozen, AnswerAsk) == []


def test_a_step_is_not_run_again_in_place_where_another_part_has_the_bad_node() -> None:
    picture = asked(AskKind.STEP).then(0.1).checked("n1", "n2", "n3").failing("n3").then().marked("n3").then(4)
    assert [type(a) for a in of(picture, AnswerAsk, RequeueJob)] == [RequeueJob]


def test_what_slurm_requeues_for_a_fault_under_another_part_counts_and_is_kept_off_that_node() -> None:
    hurt = running().lost("n3").then().marked("n3")
    picture = hurt.requeued(7).requeued(8).then(1.1)
    (attempt,) = picture.plan().memory.jobs[LEADER].attempts
    assert (attempt.why.rule, attempt.culprits) == ("resume.by_slurm", names("n3"))
    (nudge,) = of(picture, NudgeJob)
    assert isinstance(nudge, NudgeJob)
    assert (nudge.job, nudge.exclude) == (LEADER, names("n3"))


def test_what_slurm_itself_excludes_from_the_leader_is_not_excluded_from_the_part_that_wants_it() -> None:
    """A node that one part asks for by name Slurm excludes from the others; a list that is set is all parts'."""
    picture = running().change_job(7, excluded=names("n3", "n6")).opted_in(7)
    fresh = replace(picture, memory=replace(picture.memory, jobs={})).then()
    (nudge,) = of(fresh.requeued(7).requeued(8).then(1.1), NudgeJob)
    assert isinstance(nudge, NudgeJob)
    assert nudge.exclude == names("n6")


def test_a_job_that_ended_by_a_fault_under_another_part_is_requeued_once_as_a_whole() -> None:
    picture = running().then(100)
    ended = both(picture, state=JobState.FAILED, ended=picture.now - 5, exit_status=256).lost("n3")
    assert [a.job for a in of(ended, RequeueJob) if isinstance(a, RequeueJob)] == [LEADER]


def test_what_a_step_of_another_part_tells_is_of_the_whole_job() -> None:
    picture = running().opted_in(8).then()
    assert set(picture.memory.jobs) == {LEADER}


def test_a_site_opts_in_the_whole_job_not_its_parts() -> None:
    picture = a_cluster().job(7, on=("n1", "n2"), het_job_id=LEADER).job(8, on=("n3",), het_job_id=LEADER)
    default = ResumeDefault(partition="main", mode="1")
    assert set(picture.resume(default=(default,)).then(20).then().memory.jobs) == {LEADER}


def test_a_new_run_has_other_parts() -> None:
    back = running().requeued(7).requeued(8).then(5)
    again = both(back, state=JobState.RUNNING, started=back.now)
    again = again.change_job(7, nodes=names("n1", "n2")).change_job(8, nodes=names("n5"))
    assert again.then().memory.jobs[LEADER].parts == names("n5")


def test_a_job_of_one_part_has_no_others() -> None:
    single: Job = a_cluster().job().seen.jobs[LEADER]
    assert not single.is_part
    assert a_cluster().job().opted_in().then().memory.jobs[LEADER].parts == frozenset()


def test_a_step_of_another_part_is_told_who_asks_for_it() -> None:
    (stop,) = of(running().ask(AskKind.STEP, id=8, node="n3"), AnswerAsk)
    assert isinstance(stop, AnswerAsk)
    assert (stop.answer, stop.why.text) == (Answer.STOP, "the script of job 7 asks for its parts")


def left_behind(**part: Any) -> Picture:
    """Slurm requeued the leader, whose node it lost; the other part is as `part` says."""
    return running().lost("n1").then().marked("n1").requeued(7).change_job(8, **part)


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.FAILED, JobState.NODE_FAIL])
def test_a_part_that_slurm_left_in_the_last_run_goes_back_into_the_queue_before_the_job_begins(state: JobState) -> None:
    picture = left_behind(state=state)
    (requeue,) = of(picture, RequeueJob, NudgeJob)
    assert isinstance(requeue, RequeueJob)
    assert (requeue.job, requeue.restart) == (LEADER, 1)
    assert [e.kind for e in picture.plan().events if "left over of the last run: 7+1" in e.text] == ["job.parts"]
    (nudge,) = of(picture.then().requeued(8).then(1.1), RequeueJob, NudgeJob)
    assert isinstance(nudge, NudgeJob)


def test_a_part_that_was_read_after_both_began_again_is_not_left_over() -> None:
    back = left_behind(state=JobState.PENDING, nodes=frozenset()).then().after(3)
    begun = back.change_job(8, state=JobState.RUNNING, nodes=names("n3"), started=back.now - 0.5)
    assert of(begun, RequeueJob) == []


def test_a_job_that_is_requeued_once_more_for_its_parts_is_hurried_on_all_the_same() -> None:
    """Slurm may have begun it in that moment: no run is seen of it, and Slurm is not the one that put it back."""
    again = left_behind(state=JobState.RUNNING).then().requeued(7).requeued(8).then(1.1)
    (nudge,) = of(again, RequeueJob, NudgeJob)
    assert isinstance(nudge, NudgeJob)
    assert not again.plan().memory.jobs[LEADER].unbegun


def test_a_requeue_for_its_parts_is_no_start_that_the_head_missed() -> None:
    """The fault that Slurm requeued it for costs one resume; Steward's own requeue after it costs none."""
    again = left_behind(state=JobState.RUNNING).then().requeued(7).requeued(8)
    seen = again.plan()
    assert [event.text for event in seen.events if event.kind == "job.unseen"] == []
    mem = again.then(1.1).then().memory.jobs[LEADER]
    assert (mem.resumes, len(mem.attempts), mem.restarts) == (1, 1, 1)
    missed = again.requeued(7).requeued(8).plan()
    (told,) = [event.text for event in missed.events if event.kind == "job.unseen"]
    assert "started again once" in told
    assert missed.memory.jobs[LEADER].resumes == 2


def test_a_requeue_for_its_parts_that_slurm_refused_is_no_act_of_ours() -> None:
    first = left_behind(state=JobState.RUNNING)
    (requeue,) = of(first, RequeueJob)
    refused = first.then().requeued(7).requeued(8).see(failures={requeue.key: "refused: job 7 is pending"})
    assert refused.plan().memory.jobs[LEADER].resumes == 2


def test_a_part_that_cleans_up_is_waited_for_and_one_that_was_cancelled_is_its_users_wish() -> None:
    cleaning = left_behind(state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"}))
    assert of(cleaning, RequeueJob, NudgeJob) == []
    assert of(cleaning.then(1.1), RequeueJob, NudgeJob) == []
    cancelled = left_behind(state=JobState.CANCELLED).then(1.1)
    assert [type(action) for action in of(cancelled, RequeueJob, NudgeJob)] == [NudgeJob]
