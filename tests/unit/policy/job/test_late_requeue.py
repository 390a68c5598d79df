"""A job that ended with nobody to ask is requeued until Slurm does it or says no, and never lost without a word."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import AllowRequeue, AnswerAsk, RequeueJob
from steward.model.agent_action import Action
from steward.model.ask import AskKind
from steward.model.events import Level
from steward.model.ids import JobId
from steward.model.instance import Slot
from steward.model.job import JobState
from steward.model.resume import Decision, JobMemory
from steward.model.resume_mode import ResumeMode
from steward.model.witness import Witness
from steward.policy.facts.blame import EVIDENCE_AFTER_S
from steward.workflows.attention import is_busy
from tests.builders.picture import T0, Picture, a_cluster
from tests.fakes.head import Head
from tests.fakes.world import World

J = JobId(7)
TIMED_OUT = "retry: scontrol did not come back within 10 s"
NOT_TRIED = "not tried: the Slurm command before it did not return"
OLD_HEAD = "slurm_load_jobs error: Unable to contact slurm controller"
"""As a head before this one wrote it down."""


def tries(picture: Picture) -> list[Action]:
    return [a for a in picture.plan().actions if isinstance(a, RequeueJob)]


def of(picture: Picture, *kinds: type[Action]) -> list[type[Action]]:
    return [type(a) for a in picture.plan().actions if isinstance(a, kinds)]


def memory(picture: Picture) -> JobMemory:
    return picture.plan().memory.jobs[J]


def ended(state: JobState = JobState.NODE_FAIL, **fields: Any) -> Picture:
    picture = a_cluster().job().opted_in().then(100)
    return picture.change_job(state=state, ended=picture.now - 5, **fields)


def failing(picture: Picture, error: str) -> Picture:
    """What was just wished for ended like that."""
    return picture.then().see(failures={action.key: error for action in picture.plan().actions})


@pytest.mark.parametrize("error", [TIMED_OUT, NOT_TRIED, OLD_HEAD, "error: KeyError: 'jobs'"])
def test_a_requeue_that_failed_for_a_passing_reason_is_tried_again(error: str) -> None:
    picture = failing(ended(), error)
    assert tries(picture) == []
    picture = picture.then(picture.want.repair.retry_s + 0.1)
    assert len(tries(picture)) == 1
    assert memory(picture).ended is None


def test_it_is_tried_until_the_bound_and_then_people_are_told() -> None:
    picture, count = failing(ended(), TIMED_OUT), 0
    for _ in range(29):
        count += len(tries(picture))
        picture = picture.then(10.0)
    assert count >= 25
    assert memory(picture).ended is None
    over = picture.then(10.0)
    assert tries(over) == []
    (event,) = [e for e in over.plan().events if e.kind == "job.ended"]
    assert event.level is Level.WARNING
    assert "could not be requeued" in event.text
    assert "scontrol did not come back" in event.text


@pytest.mark.parametrize("error", ["refused: Access/permission denied", "stale: Invalid job id specified"])
def test_a_requeue_that_slurm_refuses_is_given_up_at_once_and_people_are_told(error: str) -> None:
    picture = failing(ended(), error).then(6)
    assert tries(picture.after(6)) == []
    picture = failing(ended(), error).after(6)
    assert tries(picture) == []
    (event,) = [e for e in picture.plan().events if e.kind == "job.ended"]
    assert event.level is Level.WARNING
    assert error.split(": ")[1] in event.text


def test_a_refusal_counts_only_when_slurm_was_told_that_the_job_may_be_requeued() -> None:
    picture = ended(requeue=False)
    assert of(picture, AllowRequeue, RequeueJob) == [AllowRequeue, RequeueJob]
    refused = "refused: Requested operation is presently disabled"
    allow, requeue = (a.key for a in picture.plan().actions if isinstance(a, AllowRequeue | RequeueJob))
    again = picture.then(6).see(failures={allow: TIMED_OUT, requeue: refused})
    assert len(tries(again)) == 1


def promised(mode: str, error: str) -> Picture:
    """Its script failed, a requeue was decided and failed like that, and the shim's patience came to its end."""
    picture = a_cluster().job().opted_in(mode=ResumeMode.parse(mode)).then(1000)
    asked = picture.ask(AskKind.BATCH, node="n1", mode=ResumeMode.parse(mode)).then(0.1).checked("n1", "n2", "n3")
    asked = asked if mode.startswith("any") else asked.lost("n2").then().marked("n2")
    asked = asked.wait(20)
    assert memory(asked).last_attempt is not None
    return failing(asked.then(6), error).see(asks=()).then(1)


@pytest.mark.parametrize("mode", ["1,max=1", "any:1,age=0"])
@pytest.mark.parametrize("error", [TIMED_OUT, "stale: Job/step already completing or completed"])
def test_a_requeue_that_was_promised_is_kept_to_when_the_job_ends_before_it_came(mode: str, error: str) -> None:
    picture = promised(mode, error)
    over = picture.change_job(state=JobState.FAILED, ended=picture.now, exit_status=256).after(0.1)
    assert len(tries(over)) == 1
    after = over.then(0.1)
    assert tries(after) == []
    assert (memory(after).resumes, memory(after).ended) == (1, None)
    back = after.requeued().then(1.1)
    assert memory(back).resumes == 1


def test_a_requeue_whose_run_nobody_saw_was_kept_and_the_next_one_is_counted_as_well() -> None:
    picture = ended(restarts=0).then(0.1)
    for restart in range(1, 6):
        picture = picture.change_job(state=JobState.NODE_FAIL, restarts=restart, ended=picture.now).then(0.1)
    assert memory(picture).resumes == picture.want.resume.max_resumes == 5
    assert tries(picture.then(1)) == []
    assert memory(picture).attempts[-1].why.rule == "resume.budget"


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING, JobState.NODE_FAIL])
def test_runs_that_were_over_between_two_looks_cost_a_resume_each(state: JobState) -> None:
    picture = a_cluster().job().opted_in().then(100)
    after = picture.change_job(state=state, restarts=4, ended=picture.now if state is JobState.NODE_FAIL else None)
    seen = memory(after.then(0.1))
    assert seen.resumes == (4 if state is JobState.NODE_FAIL else 3)
    assert memory(after.then(0.1).then(0.1)).resumes == seen.resumes


def test_runs_before_the_first_that_the_head_saw_cost_nothing() -> None:
    picture = a_cluster().job(restarts=4).opted_in().then(1)
    assert (memory(picture).resumes, memory(picture).restarts) == (0, 4)


def test_a_job_cancelled_while_it_waited_for_its_next_run_had_none() -> None:
    picture = ended().then(0.1).requeued().then(0.1)
    over = picture.change_job(state=JobState.CANCELLED, ended=picture.now).plan()
    assert "job.resumed" not in [event.kind for event in over.events]
    assert over.memory.jobs[J].resumes == 1


@pytest.mark.parametrize("mode", ["1,max=1", "any:1,age=0"])
def test_a_script_that_asks_after_its_step_was_promised_a_requeue_gets_that_one(mode: str) -> None:
    picture = promised(mode, TIMED_OUT).then(6).ask(AskKind.BATCH, mode=ResumeMode.parse(mode), status=512)
    assert of(picture, AnswerAsk, RequeueJob) == [RequeueJob]
    assert memory(picture.then(20)).resumes == 1


def test_a_promise_of_long_ago_says_nothing_about_what_ends_the_job_now() -> None:
    healthy = a_cluster().seen
    picture = promised("any:1,age=0", TIMED_OUT).then(3600).see(agents=healthy.agents)
    over = picture.change_job(state=JobState.FAILED, ended=picture.now, exit_status=256).after(0.1)
    assert tries(over) == []


@pytest.mark.parametrize("end", [{"state": JobState.CANCELLED}, {"state": JobState.FAILED, "exit_status": 93 << 8}])
def test_a_promise_is_not_kept_to_a_job_that_was_cancelled_or_said_never_again(end: dict[str, Any]) -> None:
    picture = promised("1", TIMED_OUT)
    over = picture.change_job(ended=picture.now, **end).after(0.1)
    assert tries(over) == []
    assert memory(over).ended is not None


def over_unseen() -> Picture:
    """It failed when its node fell silent, and nobody has looked since."""
    return a_cluster().job().opted_in().then(100).agent_lost("n2").change_job(state=JobState.FAILED, ended=T0 + 100)


def spoken(picture: Picture) -> Picture:
    """The second witness finds the node gone."""
    return picture.witnessed("n2", Witness.REFUSED)


HOUR_S = 3600.0


def test_the_time_to_look_into_an_end_begins_when_it_is_first_seen_though_the_clock_was_set_forward_before() -> None:
    picture = over_unseen().after(HOUR_S).then(1.0)
    assert memory(picture).ended is None
    assert len(tries(spoken(picture))) == 1


def test_it_is_not_over_because_the_clock_is_set_forward_after_the_end_was_seen() -> None:
    picture = over_unseen().then(HOUR_S).then(1.0)
    assert memory(picture).ended is None
    assert len(tries(spoken(picture))) == 1


def test_nor_because_the_head_was_away_meanwhile() -> None:
    before = over_unseen().then(1.0)
    anew = before.after(HOUR_S).see(agents_since=before.now + HOUR_S).then(1.0)
    assert memory(anew).ended is None


def test_an_end_that_an_earlier_head_saw_and_did_not_note_counts_from_now() -> None:
    seen = over_unseen().then(1.0)
    noted = replace(seen.memory.jobs[J], leaving=None)
    picture = replace(seen, memory=replace(seen.memory, jobs={J: noted}, looked=0.0)).after(HOUR_S).then(1.0)
    assert memory(picture).ended is None
    assert len(tries(spoken(picture))) == 1


CLEANS_UP: dict[str, Any] = {"flags": frozenset({"COMPLETING"})}
LONG_EPILOG_S = 320.0


def clean(picture: Picture) -> Picture:
    return picture.change_job(flags=frozenset())


@pytest.mark.parametrize(("state", "mode"), [(JobState.NODE_FAIL, "1"), (JobState.TIMEOUT, "1,timeout=1")])
def test_a_job_is_requeued_though_its_nodes_cleaned_up_for_longer_than_its_end_is_looked_into(
    state: JobState, mode: str
) -> None:
    picture = a_cluster().job().opted_in(mode=ResumeMode.parse(mode)).then(100)
    cleaning = picture.change_job(state=state, ended=picture.now, **CLEANS_UP).wait(LONG_EPILOG_S)
    assert tries(cleaning) == []
    assert memory(cleaning).ended is None
    assert len(tries(clean(cleaning))) == 1


def test_the_time_for_a_requeue_that_fails_begins_when_the_run_has_cleaned_up() -> None:
    picture = clean(ended(**CLEANS_UP).wait(LONG_EPILOG_S))
    most_s = EVIDENCE_AFTER_S
    picture = failing(picture, TIMED_OUT).wait(most_s - 10.0).then(5.1)
    assert len(tries(picture)) == 1
    assert memory(picture.then(5.1)).ended is not None


def test_a_promise_is_kept_to_a_job_that_cleans_up_for_long() -> None:
    picture = promised("1", TIMED_OUT)
    over = picture.change_job(state=JobState.FAILED, ended=picture.now, exit_status=256, **CLEANS_UP)
    assert len(tries(clean(over.wait(LONG_EPILOG_S)))) == 1


def test_a_job_that_failed_by_itself_is_over_after_that_time_though_it_still_cleans_up() -> None:
    picture = a_cluster().job().opted_in().then(100)
    failed = picture.change_job(state=JobState.FAILED, ended=picture.now, exit_status=256, **CLEANS_UP)
    assert memory(failed.wait(LONG_EPILOG_S)).attempts[-1].why.rule == "resume.no_evidence"


def test_a_head_looks_often_while_it_looks_into_an_end_and_forgets_that_it_did_when_it_is_decided() -> None:
    picture = over_unseen().then(1.0)
    assert is_busy(picture.memory, picture.now)
    over = picture.agent("n2", connected=True, lost_at=None).wait(310.0).then()
    assert not is_busy(over.memory, over.now)
    assert over.memory.head.looked_at_ends is None


def test_a_requeue_is_not_given_up_because_the_clock_was_set_forward() -> None:
    picture = failing(ended(), TIMED_OUT).then(HOUR_S)
    assert len(tries(picture)) == 1
    assert memory(picture).ended is None


def test_a_job_that_slurm_forgets_before_its_requeue_is_told_of() -> None:
    late = failing(ended(), TIMED_OUT).then(10.0).then(10.0)
    (event,) = [e for e in late.see(jobs={}).plan().events if e.kind == "job.ended"]
    assert event.level is Level.WARNING
    assert "should have been resumed, and Slurm forgot it" in event.text


@pytest.mark.parametrize("ahead_s", [0.0, HOUR_S])
def test_what_no_fault_speaks_for_is_its_own_failure_after_that_time_also_when_the_clock_was_set_back(
    ahead_s: float,
) -> None:
    picture = a_cluster().job().opted_in().then(100)
    picture = picture.change_job(state=JobState.FAILED, ended=picture.now + ahead_s)
    time_s = EVIDENCE_AFTER_S
    assert memory(picture.wait(time_s - 10.0)).ended is None
    assert memory(picture.wait(time_s + 10.0)).attempts[-1].why.rule == "resume.no_evidence"


def test_a_job_goes_on_though_slurm_takes_no_orders_for_a_while_after_its_end() -> None:
    world = World.of(4)
    slots = {node: Slot(node=node, group="main") for node in world.slurm.nodes}
    head = Head(world=world, want=replace(a_cluster().want, slots=slots))
    job = world.submit(2, works_s=20.0)
    head.run(5.0)
    host, other = world.slurm.jobs[job].batch_host, max(world.slurm.jobs[job].nodes)
    assert host is not None
    world.machines.restart_agent(host, world.now, 3.0)
    world.machines.kill(other)
    world.slurm_writes_fail_until = world.now + 40.0
    head.run(30.0)
    assert world.slurm.jobs[job].state is JobState.FAILED
    head.run(60.0)
    assert (world.slurm.jobs[job].state, world.slurm.jobs[job].restarts) == (JobState.COMPLETED, 1)


def test_an_allocation_that_ended_with_its_node_is_not_brought_back_and_says_why() -> None:
    picture = ended(is_batch=False)
    assert tries(picture) == []
    (attempt,) = memory(picture).attempts
    assert (attempt.decision, attempt.why.rule) == (Decision.STOP, "resume.not_batch")
    assert memory(picture).ended is not None


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.CANCELLED, JobState.FAILED, JobState.TIMEOUT])
def test_an_allocation_that_ended_otherwise_is_over_without_a_word(state: JobState) -> None:
    picture = ended(state, is_batch=False)
    assert memory(picture).ended is not None
    assert memory(picture).attempts == ()


def test_of_an_allocation_nobody_is_promised_that_it_comes_back() -> None:
    (told,) = [e.text for e in a_cluster().job(is_batch=False).opted_in().plan().events if e.kind == "job.opted_in"]
    assert told == "steps of job 7 run again inside its allocation if a node fails (--auto-resume=1)"
