"""Only jobs whose own user asked for it are touched."""

import pytest

from steward.model.action import AllowRequeue, AnswerAsk, DownNode
from steward.model.ask import Answer, AskKind
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.resume_mode import ResumeMode
from steward.views.explain import explain_job
from tests.builders.failures import an_exit
from tests.builders.picture import ON, Picture, a_cluster, action_types, names

J = JobId(7)
THREE = ("n1", "n2", "n3")


def answers(picture: Picture) -> list[Answer]:
    return [a.answer for a in picture.plan().actions if isinstance(a, AnswerAsk)]


def explained(picture: Picture) -> str:
    return "\n".join(explain_job(J, picture.seen, picture.want, picture.memory, picture.now))


def test_another_users_word_about_a_job_is_worth_nothing() -> None:
    picture = a_cluster().job().opted_in().then().ask(AskKind.BATCH, uid=1001).lost("n2")
    assert answers(picture) == [Answer.STOP]
    assert "ask.foreign" in [event.kind for event in picture.plan().events]
    assert picture.plan().memory.jobs[7].attempts == ()  # type: ignore[index]


def test_a_job_without_the_option_is_never_touched() -> None:
    picture = a_cluster().job().then().ask(AskKind.BATCH, mode=ResumeMode.parse("0")).lost("n2")
    assert answers(picture) == [Answer.STOP]
    assert action_types(picture.plan()) == [DownNode, AnswerAsk]


def test_a_job_that_switched_the_option_off_is_never_touched() -> None:
    picture = a_cluster().job(requeue=False).opted_in(mode=ResumeMode.parse("0"))
    assert picture.plan().actions == ()
    assert picture.plan().memory.jobs == {}


def test_a_word_about_a_job_of_somebody_else_is_worth_nothing() -> None:
    assert a_cluster().job(requeue=False).opted_in(uid=1001).plan().memory.jobs == {}


def test_requeue_is_switched_on_for_a_job_that_opted_in() -> None:
    picture = a_cluster().job(requeue=False).opted_in()
    assert action_types(picture.plan()) == [AllowRequeue]
    assert picture.then(30).plan().actions == ()


NO, YES = ResumeMode.parse("1,requeue=0"), ResumeMode.parse("1,requeue=1")


@pytest.mark.parametrize(
    ("mode", "sites", "allowed"),
    [(ON, True, False), (ON, False, True), (ON, None, True), (NO, False, False), (YES, True, True)],
)
def test_requeue_stays_off_where_the_user_said_so_and_not_only_the_site(
    mode: ResumeMode, sites: bool | None, allowed: bool
) -> None:
    picture = a_cluster().job(requeue=False).opted_in(mode=mode).see(job_requeue=sites)
    assert action_types(picture.plan()) == ([AllowRequeue] if allowed else [])
    assert ("the job is not requeued" in explained(picture.then())) is not allowed
    lost = picture.then().see(job_requeue=True).change_job(requeue=allowed).lost("n2").then().marked("n2")
    over = lost.change_job(state=JobState.NODE_FAIL, ended=lost.now, requeue=allowed).then()
    (attempt,) = over.memory.jobs[J].attempts
    assert attempt.why.rule == ("resume.late" if allowed else "resume.no_requeue")


def test_who_switches_requeue_on_in_slurm_has_the_last_word() -> None:
    picture = a_cluster().job(requeue=False).opted_in().see(job_requeue=True).then()
    assert picture.memory.jobs[J].stays_in_place
    assert not picture.change_job(requeue=True).then().memory.jobs[J].stays_in_place


def test_a_step_of_a_job_that_is_not_requeued_runs_again_in_its_place() -> None:
    picture = a_cluster().job(requeue=False).opted_in(mode=NO).then(600).lost("n2").then().marked("n2")
    asked = picture.change_job(nodes=names("n1", "n3")).ask(mode=NO).then(4).checked("n1", "n3")
    (answer,) = [a for a in asked.plan().actions if isinstance(a, AnswerAsk)]
    assert answer.answer is Answer.RETRY


def test_requeue_is_not_switched_on_for_a_job_that_did_not_opt_in() -> None:
    assert a_cluster().job(requeue=False).plan().actions == ()


def test_a_task_that_ended_badly_while_its_step_goes_on_is_named_with_the_cure() -> None:
    """srun lets the others wait for it for ever."""
    picture = a_cluster().job().opted_in().then()
    lame = picture.agent("n1", exits=(an_exit(3 << 8, at=picture.now),)).then(60.0)
    line = "Task 0 of step 0 on n1 ended with exit code 3 60 s ago, and no end of its step was told"
    assert line in explained(lame)
    assert "--kill-on-bad-exit" in explained(lame)
    untrue = (
        picture.then(60.0),
        lame.ask(AskKind.STEP),
        lame.ask(AskKind.STEP).then(0.1).checked(*THREE).then(8.0).see(asks=()),
        lame.change_job(state=JobState.COMPLETED, ended=lame.now),
        lame.change_job(restarts=1, started=lame.now).then(),
    )
    assert not any("no end of its step" in explained(each) for each in untrue)


@pytest.mark.parametrize(
    ("ago", "status", "rule"),
    [
        (30.0, 1 << 8, "resume.no_evidence"),
        (30.0, 93 << 8, "resume.final_code"),
        (1.0, 1 << 8, "resume.final_code"),
    ],
    ids=["the script handled it", "the script passed it on", "the script ended at once"],
)
def test_a_steps_exit_code_is_the_scripts_only_where_the_script_ended_because_of_it(
    ago: float, status: int, rule: str
) -> None:
    mode = ResumeMode.parse("1,codes=93")
    picture = a_cluster().job().opted_in(mode=mode).then(60.0)
    bad = picture.agent("n1", exits=(an_exit(93 << 8, at=picture.now - ago),))
    asked = bad.ask(AskKind.BATCH, status=status).then(0.1).checked("n1", "n2", "n3").then(1.0)
    (attempt,) = asked.memory.jobs[JobId(7)].attempts
    assert attempt.why.rule == rule
    assert any("exit code 93" in fact for fact in attempt.why.evidence) == (rule == "resume.final_code")
