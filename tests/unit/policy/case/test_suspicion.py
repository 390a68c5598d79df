"""What was only suspected when it could not be acted on, and what is never acted on at all."""

from dataclasses import replace

import pytest

from steward.model.action import DownNode, DrainNode
from steward.model.agent_tables import HealthPolicy
from steward.model.case import CaseStep
from steward.model.deep import DeepResult
from steward.model.health import Finding, Outcome, Severity, Trial, TrialState
from steward.model.node import NodeBase
from steward.model.witness import Witness
from steward.policy.controls import pause, reset_breakers, resume_actions
from steward.policy.trust import trial_key
from tests.builders.deep import done, with_run
from tests.builders.picture import Picture, a_cluster, n


def touched(picture: Picture) -> set[str]:
    return {a.node for a in picture.plan().actions if isinstance(a, DownNode | DrainNode)}


def bad(check: str, at: float, severity: Severity = Severity.DEGRADED) -> Finding:
    return Finding(check=check, outcome=Outcome.FAILED, severity=severity, text="bad", at=at)


def three_at_once() -> Picture:
    """Two nodes may be out for one check; the third one is suspected when the breaker trips."""
    picture = a_cluster(20, correlated_min=100, breaker_min=100)
    for name in ("n1", "n2", "n3"):
        picture = picture.agent(name, findings=(bad("disk", picture.now),))
    picture = picture.then(1.0)
    assert [case.step for case in picture.memory.cases.values() if case.node == "n3"] == [CaseStep.SUSPECT]
    return picture


def reset(picture: Picture) -> Picture:
    return replace(picture, memory=reset_breakers(picture.memory, "", picture.now)).after(1.0)


def test_a_suspect_that_is_still_bad_when_the_breaker_is_reset_is_taken_out() -> None:
    assert "n3" in touched(reset(three_at_once()))


def test_a_suspect_that_became_well_meanwhile_is_left_alone() -> None:
    well = three_at_once().agent("n3", findings=())
    assert "n3" not in touched(reset(well))
    assert not any(case.node == "n3" for case in reset(well).plan().memory.cases.values())


def test_a_suspect_that_became_well_during_a_pause_is_left_alone() -> None:
    picture = three_at_once()
    paused = replace(picture, memory=pause(picture.memory)).agent("n3", findings=()).then(7200.0)
    resumed = replace(paused, memory=resume_actions(paused.memory, paused.now)).after(1.0)
    assert "n3" not in touched(resumed)


def test_a_suspect_whose_check_may_not_act_any_more_is_left_alone() -> None:
    picture = three_at_once()
    quiet = replace(picture, want=replace(picture.want, modes={"disk": "report"}))
    assert "n3" not in touched(reset(quiet))


@pytest.mark.parametrize("trigger", ["lost", "degraded"])
def test_a_suspect_of_a_group_that_is_not_to_be_repaired_any_more_is_left_alone(trigger: str) -> None:
    picture = a_cluster().agent_lost("n3").then(1.0) if trigger == "lost" else three_at_once()
    told = picture.after(5.0).witnessed("n3", Witness.REFUSED) if trigger == "lost" else reset(picture)
    assert "n3" in touched(told)
    quiet = replace(told, want=replace(told.want, unrepaired=frozenset({"main"})))
    assert touched(quiet) <= {"n1", "n2"}
    closed = quiet.wait(60.0).memory.cases.values()
    assert not any(case.node == "n3" for case in closed)


def test_a_suspect_whose_fault_is_everybodys_by_now_is_left_alone() -> None:
    picture = three_at_once()
    for number in range(4, 12):
        picture = picture.agent(f"n{number}", findings=(bad("disk", picture.now),))
    assert touched(reset(picture.repair(correlated_min=3))) == touched(picture.repair(correlated_min=3)) == set()


def test_a_reset_is_remembered_while_a_repair_from_before_it_goes_on_and_a_day_after() -> None:
    picture = three_at_once()
    memory = reset_breakers(picture.memory, "check:disk", picture.now)
    picture = replace(picture, memory=memory).then(90_000.0)
    assert "check:disk" in picture.then().memory.breaker_resets
    none_open = replace(picture, memory=replace(picture.memory, cases={}), seen=a_cluster(20).seen).then()
    assert none_open.then().memory.breaker_resets == {}


def draining(severity: Severity = Severity.FATAL, check: str = "fabric", others: int = 0) -> Picture:
    """n1 drains for its disk under a job, when another check begins to fail on it and on `others`."""
    picture = a_cluster(20).job(on=("n1",)).node("n1", base=NodeBase.ALLOCATED)
    picture = picture.agent("n1", findings=(bad("disk", 0.0),)).then().marked("n1").then(5.0)
    for number in range(1, others + 2):
        own = (bad("disk", 0.0),) if number == 1 else ()
        picture = picture.agent(f"n{number}", findings=(*own, bad(check, picture.now, severity)))
    return picture


def test_a_fatal_fault_of_a_draining_node_ends_its_jobs() -> None:
    assert touched(draining()) == {"n1"}


def test_a_fatal_fault_that_many_nodes_have_at_once_ends_no_job_on_a_draining_one() -> None:
    assert touched(draining(others=8)) == set()


def test_a_check_whose_breaker_is_tripped_ends_no_job_on_a_draining_node() -> None:
    picture = a_cluster(20, correlated_min=100, breaker_min=100).job(on=("n1",))
    picture = (
        picture.node("n1", base=NodeBase.ALLOCATED)
        .agent("n1", findings=(bad("disk", 0.0),))
        .then()
        .marked("n1")
        .then(5.0)
    )
    for name in ("n2", "n3", "n4"):
        picture = picture.agent(name, findings=(bad("fabric", picture.now, Severity.FATAL),))
    picture = picture.then(1.0)
    assert "check:fabric" in picture.memory.breakers
    worse = picture.agent("n1", findings=(bad("disk", 0.0), bad("fabric", picture.now, Severity.FATAL)))
    assert "n1" not in touched(worse)


def failed_deep(*names: str) -> Picture:
    picture = a_cluster(20, breaker_min=100, check_breaker_min=100)
    return with_run(picture, done(DeepResult.FAILED, *names))


def test_few_nodes_that_fail_a_deep_check_are_repaired() -> None:
    assert touched(failed_deep("n2", "n3")) == {"n2", "n3"}


def test_many_nodes_that_fail_a_deep_check_are_one_incident_and_no_node_is_touched() -> None:
    picture = failed_deep("n2", "n3", "n4", "n5")
    assert touched(picture) == set()
    assert picture.plan().memory.incidents["check:deep.stress"].nodes == {"n2", "n3", "n4", "n5"}
    assert touched(picture.then(600.0)) == set(), "nor later, while nobody looked"


def test_after_a_person_looked_those_nodes_are_judged_one_by_one() -> None:
    picture = failed_deep("n2", "n3", "n4", "n5").then(60.0)
    resumed = replace(picture, memory=resume_actions(picture.memory, picture.now)).after(1.0)
    assert touched(resumed) == {"n2", "n3", "n4", "n5"}


@pytest.mark.parametrize("state", list(TrialState))
def test_a_site_check_without_a_version_acts_on_nothing_whatever_its_versions_may(state: TrialState) -> None:
    trial = Trial(check="site.fabric", version="abc", since=0.0, state=state)
    picture = a_cluster().failing("n1", check="site.fabric")
    known = replace(picture, memory=replace(picture.memory, trials={trial_key("site.fabric", "abc"): trial}))
    assert touched(known) == set()


def test_where_nothing_is_tried_first_a_site_check_without_a_version_acts() -> None:
    picture = a_cluster().failing("n1", check="site.fabric")
    want = replace(picture.want, health=HealthPolicy(features=False, canary_node_count=0))
    assert touched(replace(picture, want=want)) == {n("n1")}
