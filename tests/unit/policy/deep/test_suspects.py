"""Suspicion and shared faults: looked into or told, no node is touched."""

from dataclasses import replace

from steward.model.health import Advice, Scope, Severity
from steward.policy.draft import Draft
from steward.policy.facts.doubts import nodes_to_deep_check
from tests.builders.picture import Picture, a_cluster


def of(picture: Picture) -> dict[str, str]:
    draft = Draft(picture.seen, picture.want, picture.memory, picture.now)
    return {str(node): why for node, why in nodes_to_deep_check(draft).items()}


def doubtful(picture: Picture, *given: str) -> Picture:
    for name in given:
        picture = picture.failing(name, Severity.SUSPECT, check="gpu.slow", text="70 % of its peers", event=False)
    return picture


def shared(picture: Picture, *given: str, severity: Severity = Severity.FATAL) -> Picture:
    for name in given:
        picture = picture.failing(name, severity, check="mount.hung", scope=Scope.CLUSTER, text="/home hangs")
    return picture


def test_a_suspicion_names_the_node_and_why_and_takes_nothing_out() -> None:
    picture = doubtful(a_cluster(), "n2")
    assert of(picture) == {"n2": "check gpu.slow: 70 % of its peers"}
    later = picture.wait(60.0)
    assert (later.memory.cases, later.plan().actions) == ({}, ())


def test_neither_somebody_elses_node_nor_one_under_repair_is_suspected() -> None:
    assert of(doubtful(a_cluster(), "n2").drained("n2", "mine")) == {}
    assert of(doubtful(a_cluster().failing("n2").then(), "n2")) == {}


def test_a_check_that_only_reports_raises_no_suspicion() -> None:
    picture = doubtful(a_cluster(), "n2")
    assert of(replace(picture, want=replace(picture.want, modes={"gpu.*": "report"}))) == {}


def test_a_shared_fault_is_an_incident_from_the_first_node_on_and_touches_none() -> None:
    picture = shared(a_cluster(), "n2")
    (opened,) = [event.text for event in picture.plan().events if event.kind == "incident.opened"]
    assert "mount.hung" in opened
    assert "no node is touched" in opened
    for count in (1, 3, 6):
        many = shared(a_cluster(), *[f"n{i}" for i in range(1, count + 1)]).wait(120.0)
        assert (many.memory.cases, many.plan().actions) == ({}, ())
        assert list(many.memory.incidents) == ["shared:mount.hung"]


def test_a_shared_fault_is_over_when_nobody_tells_of_it_any_more() -> None:
    picture = shared(a_cluster(), "n2").then(60.0).agent("n2", findings=()).wait(60.0)
    assert all(one.over is not None for one in picture.memory.incidents.values())


def test_a_shared_fault_hides_no_fault_of_the_nodes_own() -> None:
    picture = shared(a_cluster(), "n1", "n2").failing("n3", advice=Advice.REPLACE)
    assert [case.node for case in picture.then().memory.cases.values()] == ["n3"]
