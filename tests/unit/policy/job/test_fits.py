"""Slurm's own test of whether a job would start counts, not the number of idle nodes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from steward.model.action import FreeNodes, KeepNodes, NudgeJob
from steward.model.agent_action import Action
from steward.model.fit import MISSING, UNKNOWN, Fit, FitState, Question
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.reservation import Reservation, hot_name
from steward.policy.draft import Draft
from steward.policy.job.keep import BLOCKED_S
from steward.views.explain_fit import NOT_ASKED, lack_lines
from tests.builders.kept import NAME, J, full, n2_is_back, rival, waiting
from tests.builders.picture import Picture, a_cluster, names

Slurm = Callable[[Question], Fit]
NOW = Fit(state=FitState.NOW, nodes=names("n1", "n3", "n4"))
LATER, NEVER = Fit(state=FitState.LATER, in_s=600.0), Fit(state=FitState.NEVER, missing="features")


def answered(picture: Picture, slurm: Slurm) -> Picture:
    """The picture with all that its plan asks of Slurm."""
    for _ in range(4):
        questions = picture.plan().questions
        if not questions:
            return picture
        fits = {**picture.seen.fits, **{one: replace(slurm(one), at=picture.now) for one in questions}}
        picture = picture.see(fits=fits)
    raise AssertionError("it asks on and on")


def of(kind: type[Action], picture: Picture) -> list[Action]:
    return [a for a in picture.plan().actions if isinstance(a, kind)]


def says(fit: Fit) -> Slurm:
    return lambda question: fit


def with_another_idle_node(picture: Picture) -> Picture:
    return picture.node("n4", base=NodeBase.IDLE).change_job(8, state=JobState.COMPLETED, nodes=frozenset())


def test_its_nodes_are_kept_where_the_idle_ones_cannot_serve_it() -> None:
    lost = with_another_idle_node(full()).lost("n2")

    assert of(KeepNodes, answered(lost, says(UNKNOWN))) == []
    assert of(KeepNodes, answered(lost, says(LATER))) == []  # its own are still busy with the lost run
    assert len(of(KeepNodes, answered(lost, says(NEVER)))) == 1


def test_slurm_is_asked_without_the_node_that_goes_down() -> None:
    (question, *_) = with_another_idle_node(full()).lost("n2").plan().questions
    assert (question.job, question.nodes, question.without, question.reservation) == (J, 3, names("n2"), "")


def test_they_stay_kept_until_slurm_says_that_it_starts() -> None:
    picture = with_another_idle_node(waiting()).after(5)

    assert of(FreeNodes, answered(picture, says(NEVER))) == of(FreeNodes, answered(picture, says(LATER))) == []
    there = answered(picture, says(NOW))
    assert [type(a) for a in there.plan().actions if isinstance(a, FreeNodes | NudgeJob)] == [FreeNodes, NudgeJob]
    assert all(question.reservation == NAME for question in there.seen.fits)


def test_slurm_may_find_places_where_no_node_is_idle() -> None:
    assert len(of(FreeNodes, answered(waiting().after(5), says(NOW)))) == 1


def test_where_slurm_cannot_be_asked_nodes_are_counted() -> None:
    assert of(FreeNodes, answered(waiting().after(5), says(UNKNOWN))) == []
    assert len(of(FreeNodes, answered(n2_is_back(waiting().then(60)), says(UNKNOWN)))) == 1


@pytest.mark.parametrize(
    "reason", ["JobArrayTaskLimit", "Licenses", "QOSGrpGRES", "AssocGrpCpuLimit", "Dependency", "PartitionDown"]
)
def test_nothing_is_kept_for_a_job_that_waits_for_something_else_than_nodes(reason: str) -> None:
    picture = waiting().change_job(reason=reason)

    assert of(FreeNodes, answered(picture.after(1), says(NEVER))) == []  # perhaps its lost run still counted
    (freed,) = of(FreeNodes, answered(picture.after(BLOCKED_S + 1), says(NEVER)))
    assert reason in freed.why.text


def test_nothing_is_kept_while_a_license_is_in_use() -> None:
    in_use = replace(LATER, missing="licenses")
    (freed,) = of(FreeNodes, answered(waiting().after(BLOCKED_S + 1), says(in_use)))
    assert "license" in freed.why.text


def test_who_cannot_use_the_kept_nodes_does_not_take_them() -> None:
    picture = rival(waiting().resume(keep_others_s=60.0), node_count=1).after(120)
    other = JobId(9)

    def slurm(question: Question) -> Fit:
        return theirs if question.job == other else LATER

    theirs = LATER
    assert of(FreeNodes, answered(picture, slurm)) == []
    theirs = NOW
    assert len(of(FreeNodes, answered(picture, slurm))) == 1


def test_it_is_asked_again_ever_more_rarely_and_at_once_after_a_repair() -> None:
    picture = answered(waiting().after(5), says(NEVER))

    assert picture.plan().questions == picture.after(0.5).plan().questions == ()
    assert picture.after(1.5).plan().questions != ()
    old = answered(waiting().after(600), says(NEVER))
    assert old.after(55).plan().questions == ()
    assert old.after(65).plan().questions != ()
    cases = {id: replace(case, returned=old.now + 1) for id, case in old.memory.cases.items()}
    assert replace(old, memory=replace(old.memory, cases=cases)).after(2).plan().questions != ()


def test_a_hot_spare_that_is_like_its_nodes_is_let_out_in_the_plan_that_frees_them() -> None:
    """Slurm's test sees the nodes of one reservation: with those that are kept it does not see the spare."""
    shown = with_a_hot_spare()
    actions = shown.plan().actions
    assert [a.name for a in actions if isinstance(a, FreeNodes) and a.name == NAME] == [NAME]
    assert "job.hot_spare" in [event.kind for event in shown.plan().events]
    unlike = answered(shown.node("n4", gres="gpu:l4:1").see(fits={}), says(NEVER))
    assert [a for a in unlike.plan().actions if isinstance(a, FreeNodes) and a.name == NAME] == []


def with_a_hot_spare() -> Picture:
    """n4 is a hot spare like the nodes of job 7, which waits beside those that are kept for it."""
    picture = (
        waiting().then(10).node("n4", base=NodeBase.IDLE).change_job(8, state=JobState.COMPLETED, nodes=frozenset())
    )
    hot = Reservation(name=hot_name("main"), nodes=names("n4"), starts=picture.now, ends=picture.now + 3600)
    there = {**picture.seen.reservations, hot.name: hot}
    return answered(picture.see(reservations=there, reservations_at=picture.now), says(NEVER))


def explained(picture: Picture, fit: Fit, *, reason: str = "Resources") -> list[str]:
    shown = answered(picture.change_job(reason=reason), says(fit))
    job = shown.seen.jobs[J]
    return lack_lines(job, Draft(shown.seen, shown.want, shown.memory, shown.now))


@pytest.mark.parametrize("missing", sorted(MISSING))
def test_explain_names_what_is_missing(missing: str) -> None:
    (line,) = explained(waiting().after(2), replace(LATER, missing=missing))
    assert MISSING[missing] in line


def test_explain_names_a_limit_before_what_a_test_of_nodes_says() -> None:
    (line,) = explained(waiting().after(2), NOW, reason="JobArrayTaskLimit")
    assert "JobArrayTaskLimit" in line
    assert "would start" not in line


def test_explain_says_where_slurm_could_not_be_asked_and_nothing_of_a_job_that_runs() -> None:
    assert explained(waiting().after(2), UNKNOWN) == [NOT_ASKED]
    running = full()
    job = running.seen.jobs[J]
    assert lack_lines(job, Draft(running.seen, running.want, running.memory, running.now)) == []


def test_one_users_many_questions_leave_a_place_for_each_others_first() -> None:
    """Slurm is asked for half a second a turn; what comes later is counted as well as the head can."""
    picture = a_cluster()
    for id in range(1, 41):
        picture = picture.job(id, on=(), user_id=1001 if id <= 38 else 1000 + id, state=JobState.PENDING)
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    for id in range(1, 41):
        draft.ask(Question(job=JobId(id)), since=0.0)
    asked = [int(question.job) for question in draft.plan().questions]
    assert asked[:4] == [1, 39, 40, 2]
    assert sorted(asked) == list(range(1, 41))
