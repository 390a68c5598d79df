"""Only jobs whose own user asked for it are touched."""

from steward.model.action import AllowRequeue, AnswerAsk, DownNode
from steward.model.ask import Answer, AskKind
from steward.model.resume_mode import ResumeMode
from tests.builders.picture import Picture, a_cluster


def answers(picture: Picture) -> list[Answer]:
    return [a.answer for a in picture.plan().actions if isinstance(a, AnswerAsk)]


def test_another_users_word_about_a_job_is_worth_nothing() -> None:
    picture = a_cluster().job().opted_in().then().ask(AskKind.BATCH, uid=1001).lost("n2")
    assert answers(picture) == [Answer.STOP]
    assert "ask.foreign" in [event.kind for event in picture.plan().events]
    assert picture.plan().memory.jobs[7].attempts == ()  # type: ignore[index]


def test_a_job_without_the_option_is_never_touched() -> None:
    picture = a_cluster().job().then().ask(AskKind.BATCH, mode=ResumeMode.parse("0")).lost("n2")
    assert answers(picture) == [Answer.STOP]
    assert [type(a) for a in picture.plan().actions] == [DownNode, AnswerAsk]


def test_a_job_that_switched_the_option_off_is_never_touched() -> None:
    picture = a_cluster().job(requeue=False).opted_in(mode=ResumeMode.parse("0"))
    assert picture.plan().actions == ()
    assert picture.plan().memory.jobs == {}


def test_a_word_about_a_job_of_somebody_else_is_worth_nothing() -> None:
    assert a_cluster().job(requeue=False).opted_in(uid=1001).plan().memory.jobs == {}


def test_requeue_is_switched_on_for_a_job_that_opted_in() -> None:
    picture = a_cluster().job(requeue=False).opted_in()
    assert [type(a) for a in picture.plan().actions] == [AllowRequeue]
    assert picture.then(30).plan().actions == ()


def test_requeue_is_not_switched_on_for_a_job_that_did_not_opt_in() -> None:
    assert a_cluster().job(requeue=False).plan().actions == ()
