"""How much Steward may break at once, and what a person can do about it."""

from dataclasses import replace

import pytest

from steward.model.action import DownNode, DrainNode, LaunchInstance
from steward.model.case import CaseStep
from steward.model.health import Advice, Severity
from steward.model.setting_types import RepairMode
from steward.model.witness import Witness
from steward.policy.controls import pause, resume_actions
from steward.views.explain import explain_node
from tests.builders.picture import T0, Picture, a_cluster, action_types, n

GPU = "GPU-0b1b63b9-6f0a-4d0e-9d06-2d6f0f6b7a11"


def touched(picture: Picture) -> list[str]:
    return [a.node for a in picture.plan().actions if isinstance(a, DownNode | DrainNode)]


def two_out() -> Picture:
    return a_cluster().lost("n1", "n2").then().marked("n1").marked("n2").then(60)


def test_the_third_of_six_nodes_trips_the_breaker_and_is_left_alone() -> None:
    picture = two_out().lost("n3")
    decided = picture.plan()
    assert touched(picture) == []
    assert set(decided.memory.breakers) == {"group:main"}
    assert "breaker.tripped" in [event.kind for event in decided.events]


def test_a_tripped_breaker_stays_when_the_nodes_are_back_and_running_cases_go_on() -> None:
    picture = two_out().lost("n3").then(1)
    assert any(isinstance(a, LaunchInstance) for a in _without_old_instance(picture).plan().actions)
    healthy = replace(a_cluster(), memory=replace(picture.memory, cases={}), now=picture.now)
    assert touched(healthy.lost("n4")) == []


def _without_old_instance(picture: Picture) -> Picture:
    return picture.see(instances={k: v for k, v in picture.seen.instances.items() if k not in ("i-n1", "i-n2")})


def test_a_person_resets_the_breaker_and_what_was_out_before_does_not_count() -> None:
    picture = two_out().lost("n3").then(1)
    go_on = replace(picture, memory=resume_actions(picture.memory, picture.now), now=picture.now + 1)
    assert touched(go_on.witnessed("n3", Witness.REFUSED)) == ["n3"]


def test_a_silent_node_trips_nothing_before_the_witness_has_spoken() -> None:
    assert two_out().agent_lost("n3").plan().memory.breakers == {}


def test_a_paused_head_touches_no_node_and_says_once_what_it_would_do() -> None:
    picture = a_cluster().lost("n2")
    paused = replace(picture, memory=pause(picture.memory))
    assert touched(paused) == []
    assert [event.kind for event in paused.plan().events] == ["case.withheld"]
    assert paused.then(1).witnessed("n2", Witness.REFUSED).plan().events == ()


def test_report_only_touches_no_node() -> None:
    picture = a_cluster(mode=RepairMode.REPORT).lost("n2")
    assert touched(picture) == []
    assert "report only" in picture.plan().events[0].text


def test_a_case_stands_still_while_paused_and_has_its_whole_time_afterwards() -> None:
    picture = a_cluster(drain_deadline_s=30).lost("n2").then(1)
    paused = replace(picture, memory=pause(picture.memory))
    assert paused.then(3600).plan().actions == ()
    later = paused.then(3600)
    resumed = replace(later, memory=resume_actions(later.memory, later.now))
    assert [case.step for case in resumed.plan().memory.cases.values()] == [CaseStep.DRAIN]


def test_a_node_repaired_too_often_is_left_to_a_person() -> None:
    picture = a_cluster(node_repairs=2)
    history = {n("n2"): (T0 - 1000, T0 - 2000)}
    worn = replace(picture, memory=replace(picture.memory, history=history)).lost("n2").then().marked("n2").then()
    assert [case.step for case in worn.memory.cases.values()] == [CaseStep.HELD]


def test_repairs_wait_when_too_many_began_within_the_hour() -> None:
    picture = a_cluster(replacements_per_hour=1)
    history = {n("n5"): (T0 - 1800,)}
    waiting = replace(picture, memory=replace(picture.memory, history=history)).lost("n2").then().marked("n2")
    decided = waiting.plan()
    assert [case.step for case in decided.memory.cases.values()] == [CaseStep.RELEASE]
    assert [event.kind for event in decided.events] == ["case.release", "case.waiting"]
    assert [case.step for case in waiting.then(1801).then().memory.cases.values()] == [CaseStep.LAUNCH]


def a_day_later(picture: Picture) -> Picture:
    """The same world, in which the head has looked on for more than a day."""
    cases = {id: replace(case, entered=case.entered - 90_000) for id, case in picture.memory.cases.items()}
    return replace(picture, memory=replace(picture.memory, cases=cases)).then(1)


@pytest.mark.parametrize("trigger", ["lost", "degraded", "light"])
def test_a_repair_that_waits_longer_than_a_day_for_its_turn_is_carried_out_then(trigger: str) -> None:
    picture = a_cluster(20, concurrent_min=0, concurrent_percent=0.0)
    if trigger == "lost":
        picture = picture.lost("n2")
    else:
        advice = Advice.RESET_GPU if trigger == "light" else Advice.REPLACE
        picture = picture.failing("n2", Severity.DEGRADED, check="gpu", hardware=GPU, advice=advice)
    picture = a_day_later(picture.then().marked("n2").then(1))
    assert [case.step for case in picture.memory.cases.values()] == [CaseStep.RELEASE]
    lines = explain_node(n("n2"), picture.seen, picture.want, picture.memory, picture.now)
    assert "at the latest" not in "\n".join(lines)

    picture = picture.repair(concurrent_min=5).then()
    assert [case.step for case in picture.memory.cases.values()] == [
        CaseStep.MEND if trigger == "light" else CaseStep.LAUNCH
    ]


@pytest.mark.parametrize("severity", [Severity.DEGRADED, Severity.FATAL])
def test_jobs_that_do_not_leave_the_node_within_a_day_are_left_to_a_person(severity: Severity) -> None:
    picture = a_cluster(20).failing("n2", severity, check="gpu", hardware=GPU, advice=Advice.RESET_GPU)
    picture = picture.then().marked("n2")
    busy = picture.node("n2", flags=frozenset({"DRAIN", "COMPLETING"})).then(1)
    assert [case.step for case in busy.memory.cases.values()] == [CaseStep.RELEASE]
    assert [case.step for case in a_day_later(busy).memory.cases.values()] == [CaseStep.HELD]


def test_a_degraded_node_drains_and_waits_for_its_jobs() -> None:
    busy = a_cluster().job(on=("n2",), is_batch=True).failing("n2", Severity.DEGRADED, check="disk", event=False)
    assert action_types(busy.plan()) == [DrainNode]


def test_a_check_set_to_report_touches_nothing() -> None:
    picture = a_cluster().failing("n2", check="gpu")
    report = replace(picture, want=replace(picture.want, modes={"gpu": "report"}))
    assert touched(picture) == ["n2"]
    assert touched(report) == []
