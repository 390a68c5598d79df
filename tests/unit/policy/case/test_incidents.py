"""Many nodes at once are one incident of the cluster; one node three times is not."""

from dataclasses import replace

import pytest

from steward.model.action import DownNode, DrainNode, ProbeNode, TerminateInstance
from steward.model.case import CaseStep
from steward.model.health import Severity
from steward.model.node import NodeBase
from steward.model.slot import SlotStep
from steward.model.witness import Witness
from steward.policy.controls import resume_actions
from steward.policy.facts.incidents import close_in_time
from tests.builders.capacity import NODE, a_slot_at
from tests.builders.picture import Picture, a_cluster, n, names


def touched(picture: Picture) -> list[str]:
    return [a.node for a in picture.plan().actions if isinstance(a, DownNode | DrainNode)]


def test_all_agents_gone_at_once_touch_no_node_and_make_one_incident() -> None:
    picture = a_cluster().lost("n1", "n2", "n3", "n4", "n5", "n6")
    decided = picture.plan()
    assert touched(picture) == []
    assert [e.kind for e in decided.events if e.kind.startswith("incident")] == ["incident.opened"]
    assert list(decided.memory.incidents) == ["agents"]


def test_agents_that_are_late_count_before_they_are_lost() -> None:
    picture = a_cluster().lost("n1").agent("n2", late=True).agent("n3", late=True)
    assert touched(picture) == []
    assert touched(a_cluster().lost("n1").agent("n2", late=True)) == ["n1"]


@pytest.mark.parametrize(("step", "expected"), [(SlotStep.VERIFY, []), (SlotStep.PROVISION, ["n1", "n2"])])
def test_a_new_machine_that_is_verified_counts_among_those_that_vanish(step: SlotStep, expected: list[str]) -> None:
    """One that never spoke, or was ended by us, says nothing about a cause in common."""
    old, new = a_cluster(), a_slot_at(step)
    both = new.see(nodes={**old.seen.nodes, **new.seen.nodes}, agents={**old.seen.agents, **new.seen.agents})
    assert touched(both.lost("n1", "n2", NODE)) == expected


@pytest.mark.parametrize(
    ("step", "expected"), [(CaseStep.VERIFY, []), (CaseStep.RETURN, []), (CaseStep.PROVISION, ["n1", "n2"])]
)
def test_so_does_one_that_is_verified_after_a_repair(step: CaseStep, expected: list[str]) -> None:
    repaired = a_cluster(breaker_min=5).lost("n3").then().marked("n3").then(1.0)
    cases = {id: replace(case, step=step, entered=repaired.now) for id, case in repaired.memory.cases.items()}
    verified = replace(repaired, memory=replace(repaired.memory, cases=cases)).after(60.0)
    assert touched(verified.lost("n1", "n2", "n3")) == expected
    after = verified.lost("n1", "n2", "n3").then()
    assert after.memory.cases.keys() >= cases.keys(), "its repair goes on: it bears our mark"
    assert all(after.memory.cases[id].is_open for id in cases)


@pytest.mark.parametrize("step", [CaseStep.DRAIN, CaseStep.RELEASE])
def test_so_does_one_that_is_drained_for_a_finding_and_whose_machine_still_works(step: CaseStep) -> None:
    drained = a_cluster(breaker_min=5).failing("n3", Severity.DEGRADED, check="disk").then()
    waiting = (
        drained.marked("n3").node("n3", base=NodeBase.ALLOCATED).then(1.0) if step is CaseStep.RELEASE else drained
    )
    assert [case.step for case in waiting.memory.cases.values()] == [step]
    assert {*touched(waiting.after(60.0).lost("n1", "n2", "n3"))} <= {"n3"}


def test_the_machine_of_a_drained_node_that_is_silent_with_others_is_not_ended_under_its_job() -> None:
    drained = a_cluster(breaker_min=5).failing("n3", Severity.DEGRADED, check="disk").then()
    waiting = drained.marked("n3").node("n3", base=NodeBase.ALLOCATED).then(1.0).after(60.0)
    assert touched(waiting.lost("n3")) == ["n3"]
    together = waiting.lost("n1", "n2", "n3")
    assert [action for action in together.plan().actions if isinstance(action, TerminateInstance)] == []
    assert {case.step for case in together.wait(20.0).memory.cases.values()} == {CaseStep.RELEASE}


def test_during_an_incident_a_node_that_dies_is_not_touched_either() -> None:
    picture = a_cluster(8).lost("n1", "n2", "n3").then(5).lost("n4")
    assert touched(picture) == []


def test_an_incident_is_over_when_the_agents_are_back() -> None:
    picture = a_cluster().lost("n1", "n2", "n3").then(5).heard("n1", "n2", "n3")
    decided = picture.plan()
    assert [event.kind for event in decided.events] == ["incident.over"]


def test_agents_that_were_heard_once_and_are_gone_again_are_one_incident_again() -> None:
    """A network that flaps: the last word of each came before the incident was called over."""
    back = a_cluster().lost("n1", "n2", "n3").then(5).heard("n1", "n2", "n3").then(1)
    again = back.lost("n1", "n2", "n3")
    assert touched(again) == []
    assert "incident.opened" in [event.kind for event in again.plan().events]


def test_a_node_that_stays_away_after_an_incident_is_repaired() -> None:
    picture = a_cluster().lost("n1", "n2", "n3").then(5).heard("n1", "n2").then(16)
    assert touched(picture.then(1).witnessed("n3", Witness.REFUSED)) == ["n3"]


def test_one_node_that_dies_three_times_is_no_incident() -> None:
    picture = a_cluster()
    for _ in range(3):
        picture = picture.lost("n2")
        assert touched(picture) == ["n2"]
        picture = a_cluster().after(picture.now + 60 - a_cluster().now).heard("n2")


def test_losses_far_apart_in_time_have_no_cause_in_common() -> None:
    picture = a_cluster(10, breaker_min=5).agent_lost("n1", "n2", ago_s=4000)
    for name in ("n1", "n2"):
        picture = picture.witnessed(name, Witness.ALIVE)
    assert touched(picture.then().lost("n3")) == ["n3"]


def test_a_person_may_have_the_nodes_of_an_incident_judged_one_by_one() -> None:
    picture = a_cluster(8, breaker_min=5).lost("n1", "n2", "n3").then(5)
    memory = resume_actions(picture.plan().memory, picture.now)
    judged = Picture(seen=picture.seen, want=picture.want, memory=memory, now=picture.now + 1)
    for name in ("n1", "n2", "n3"):
        judged = judged.witnessed(name, Witness.REFUSED)
    assert touched(judged) == ["n1", "n2", "n3"]


def test_a_check_that_fails_on_many_nodes_is_the_clusters_fault() -> None:
    picture = a_cluster()
    for name in ("n1", "n2", "n3"):
        picture = picture.failing(name, Severity.DEGRADED, check="mounts", event=False)
    assert touched(picture) == []
    assert list(picture.plan().memory.incidents) == ["check:mounts"]


def begun_anew(picture: Picture, *connected: str, told: bool = True) -> Picture:
    """A head that was just started has heard these agents, and what they found if they `told` of it."""
    views = {n(name): picture.seen.agents[n(name)] for name in connected}
    if not told:
        views = {name: replace(view, findings=(), reported_at=0.0) for name, view in views.items()}
    return picture.see(agents=views, agents_since=picture.now)


def test_an_incident_of_a_check_goes_on_while_a_head_that_began_anew_has_not_heard_its_nodes_again() -> None:
    picture = a_cluster()
    for name in ("n1", "n2", "n3"):
        picture = picture.failing(name, check="mounts", event=False)
    before = picture.then(5)
    alone = begun_anew(before).then(1.0)
    assert touched(begun_anew(replace(before, memory=alone.memory), "n1")) == []
    silent = begun_anew(replace(before, memory=alone.memory), "n1", "n2", "n3", told=False).then(1.0)
    assert touched(begun_anew(replace(before, memory=silent.memory), "n1", "n4")) == []
    sound = begun_anew(replace(before, memory=silent.memory), "n4", "n5", "n6").wait(40.0, 5.0)
    assert [one for one in sound.memory.incidents.values() if one.over is None and one.kind != "agents"] == []


def one_was_early() -> Picture:
    """n1 told of its disk before the others did, and was drained."""
    early = a_cluster(breaker_min=100, concurrent_min=6).failing("n1", Severity.DEGRADED, check="disk", event=False)
    drained = early.then().marked("n1")
    for name in ("n2", "n3"):
        drained = drained.failing(name, Severity.DEGRADED, check="disk", event=False)
    return drained.then(1)


def replaced(picture: Picture) -> list[str]:
    return [case.node for case in picture.memory.cases.values() if case.step is CaseStep.LAUNCH]


@pytest.mark.parametrize("check", ["slurm.gres", "deep.own"])
def test_an_agents_check_named_like_those_of_slurm_or_of_deep_checks_is_counted_too(check: str) -> None:
    picture = a_cluster()
    for name in ("n1", "n2", "n3"):
        picture = picture.failing(name, Severity.DEGRADED, check=check, event=False)
    assert touched(picture) == []
    assert list(picture.plan().memory.incidents) == [f"check:{check}"]


def test_a_node_that_was_drained_before_the_incident_is_not_replaced_during_it() -> None:
    picture = one_was_early()
    assert [kind for kind, one in picture.memory.incidents.items() if one.over is None] == ["check:disk"]
    assert replaced(picture.then(30)) == []


def test_it_is_replaced_when_the_incident_is_over() -> None:
    picture = one_was_early()
    for name in ("n2", "n3"):
        picture = picture.agent(name, findings=())
    assert replaced(picture.then(30).then(60).then(60)) == ["n1"]


def test_different_checks_have_different_causes() -> None:
    picture = a_cluster(breaker_min=5)
    for name in ("n1", "n2", "n3"):
        picture = picture.failing(name, check=f"check_{name}")
    assert touched(picture) == ["n1", "n2", "n3"]


def test_a_crowd_is_those_that_are_within_any_window() -> None:
    times = {n(f"n{i}"): at for i, at in enumerate([0.0, 5.0, 20.0, 24.0, 29.0, 60.0])}
    assert close_in_time({}, 10, 1) == frozenset()
    assert close_in_time(times, 10, 3) == names("n2", "n3", "n4")
    assert close_in_time(times, 10, 4) == frozenset()
    assert close_in_time(times, 10, 2) == names("n0", "n1", "n2", "n3", "n4")


def test_while_nobody_is_heard_one_node_of_each_job_that_may_be_resumed_is_looked_at() -> None:
    """Whether it was really gone speaks for the job later; a look at each of thousands would cost too much."""
    picture = a_cluster(8).job(on=("n1", "n2", "n3")).opted_in().then(60)
    for name in (f"n{i}" for i in range(1, 9)):
        picture = picture.agent(name, connected=False, lost_at=picture.now, lost_why="silent")
    looked_at = [a.node for a in picture.then(0.1).then(5).plan().actions if isinstance(a, ProbeNode)]
    assert looked_at == ["n1"]
