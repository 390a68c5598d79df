"""Scores of hardware: what counts, how it fades, and that nothing is done for a score alone."""

from dataclasses import replace

import pytest

from steward.model.case import Blow, Mishap, Remedy
from steward.model.health import Advice
from steward.model.ids import CaseId, InstanceId, JobId
from steward.model.job import Job, JobState
from steward.model.memory import Memory
from steward.policy.guards.lemons import lemons, score_text
from tests.builders.picture import T0, Picture, a_cluster, n, names

DAY_S = 86400.0
GPU = "GPU-0b1b63b9-6f0a-4d0e-9d06-2d6f0f6b7a11"


def remedy(rung: Advice, *, days: float = 0.0, case: str = "c1", node: str = "n1") -> Remedy:
    return Remedy(
        at=T0 - days * DAY_S, rung=rung, node=n(node), instance=InstanceId("i"), case=CaseId(case), check="kernel_log"
    )


def mishap(blow: Blow, *, days: float = 0.0) -> Mishap:
    return Mishap(at=T0 - days * DAY_S, blow=blow, node=n("n1"))


def score(memory: Memory) -> float:
    (lemon,) = lemons(memory, 100, T0)
    return lemon.score


@pytest.mark.parametrize(("rung", "points"), [(Advice.REPLACE, 5.0), (Advice.REBOOT, 2.0), (Advice.RESET_GPU, 2.0)])
def test_a_repair_counts_by_its_grade(rung: Advice, points: float) -> None:
    assert score(Memory(remedies={GPU: (remedy(rung),)})) == points


@pytest.mark.parametrize(
    ("blow", "points"), [(Blow.NODE_FAIL_OF_MANY, 3.0), (Blow.NODE_FAIL, 1.0), (Blow.EXCLUDED, 1.0)]
)
def test_what_befell_it_counts(blow: Blow, points: float) -> None:
    assert score(Memory(mishaps={GPU: (mishap(blow),)})) == points


def test_a_score_is_halved_every_fortnight_and_gone_after_four_weeks() -> None:
    assert score(Memory(remedies={GPU: (remedy(Advice.REPLACE, days=14),)})) == pytest.approx(2.5)
    assert lemons(Memory(remedies={GPU: (remedy(Advice.REPLACE, days=28),)}), 100, T0) == ()


def test_a_case_counts_once_by_its_highest_rung() -> None:
    climbed = (remedy(Advice.RESET_GPU), remedy(Advice.REBOOT), remedy(Advice.REPLACE))
    assert score(Memory(remedies={GPU: climbed})) == 5.0
    assert score(Memory(remedies={GPU: (remedy(Advice.REBOOT), remedy(Advice.REBOOT, case="c2"))})) == 4.0


def test_services_and_checks_say_nothing_of_hardware() -> None:
    assert lemons(Memory(remedies={GPU: (remedy(Advice.RESTART_SERVICE), remedy(Advice.NONE))}), 100, T0) == ()


def test_the_worst_come_first_and_candidates_and_the_top_are_named() -> None:
    twice = (remedy(Advice.REPLACE), remedy(Advice.REPLACE, case="c2"))
    memory = Memory(
        remedies={"a": (remedy(Advice.REBOOT),), "b": twice, "c": (remedy(Advice.REPLACE),)},
        mishaps={"b": (mishap(Blow.NODE_FAIL),)},
    )
    found = lemons(memory, 40, T0)
    assert [(one.piece, one.score, one.is_candidate, one.is_top) for one in found] == [
        ("b", 11.0, True, True),
        ("c", 5.0, False, True),
        ("a", 2.0, False, False),
    ]


def test_the_arithmetic_adds_up_to_the_score() -> None:
    memory = Memory(remedies={GPU: (remedy(Advice.REPLACE, days=14),)}, mishaps={GPU: (mishap(Blow.EXCLUDED),)})
    (lemon,) = lemons(memory, 1, T0)
    assert score_text(lemon.parts) == "2.5 (case c1: replace for kernel_log) + 1.0 (excluded by a user)"


def confirmed(picture: Picture) -> Picture:
    return picture.then(1.0).then()


@pytest.mark.parametrize(("on", "blow"), [(("n2", "n3"), Blow.NODE_FAIL_OF_MANY), (("n2",), Blow.NODE_FAIL)])
def test_a_node_that_is_lost_under_a_job_is_noted(on: tuple[str, ...], blow: Blow) -> None:
    picture = confirmed(a_cluster().job(on=on).lost("n2"))
    assert [one.blow for one in picture.memory.mishaps["i-n2"]] == [blow]
    assert picture.then(30.0).memory.mishaps == picture.memory.mishaps


def test_an_idle_node_that_is_lost_is_none() -> None:
    assert confirmed(a_cluster().job(on=("n3",)).lost("n2")).memory.mishaps == {}


def excluding(picture: Picture, id: int = 9, user: int = 7, *given: str) -> Picture:
    job = Job(
        id=JobId(id),
        name="x",
        state=JobState.PENDING,
        user_id=user,
        node_count=1,
        partition="main",
        submitted=T0,
        excluded=names(*(given or ("n2",))),
    )
    return picture.see(jobs={**picture.seen.jobs, job.id: job})


def test_a_user_who_keeps_away_from_a_node_counts_once_a_day() -> None:
    picture = excluding(excluding(a_cluster(), 9), 10).then(60.0)
    assert [one.blow for one in picture.then().memory.mishaps["i-n2"]] == [Blow.EXCLUDED]
    two_users = excluding(picture, 11, 8).then()
    assert len(two_users.memory.mishaps["i-n2"]) == 2
    assert len(two_users.after(DAY_S + 60.0).then().then().memory.mishaps["i-n2"]) == 4


def test_an_exclude_list_of_half_the_cluster_says_nothing_of_its_nodes() -> None:
    many = [f"n{i}" for i in range(1, 21)]
    assert excluding(a_cluster(40), 9, 7, *many).then().memory.mishaps == {}


def test_nothing_is_done_for_a_score_alone() -> None:
    bad = tuple(remedy(Advice.REPLACE, case=f"c{i}", node="n2", days=10.0) for i in range(9))
    picture = a_cluster()
    picture = replace(picture, memory=replace(picture.memory, remedies={"i-n2": bad}))
    assert (picture.plan().actions, picture.then().memory.cases) == ((), {})
