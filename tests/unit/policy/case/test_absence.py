"""Who is powered down, comes up or is rebooted on purpose is neither lost nor part of an outage, and its agent has time
to come when the node is there again."""

from dataclasses import replace

import pytest

from steward.model.action import DownNode, DrainNode
from steward.model.case import CaseStep, Trigger
from steward.model.health import Advice
from steward.model.ids import InstanceId
from steward.model.instance import InstanceState
from steward.model.memory import NodeMemory
from steward.model.node import NodeBase, Reason
from steward.model.witness import Witness
from steward.policy.draft import Draft
from steward.policy.job.evidence import may_still_turn_up
from tests.builders.picture import Picture, a_cluster, changed, n, names

SILENT_FOR_S = 3600.0
DAY_S = 86_400.0


def touched(picture: Picture) -> list[str]:
    return [a.node for a in picture.plan().actions if isinstance(a, DownNode | DrainNode)]


def flagged(picture: Picture, name: str, *flags: str, responding: bool = True, **fields: object) -> Picture:
    return picture.node(name, flags=frozenset(flags), responding=responding, **fields)


def asleep(*given: str, breaker_min: int = 2) -> Picture:
    """Slurm suspended these nodes an hour ago."""
    picture = a_cluster(breaker_min=breaker_min).then()
    for name in given:
        picture = flagged(picture, name, "POWERED_DOWN")
    return picture.agent_lost(*given).then(SILENT_FOR_S)


def coming(picture: Picture, name: str) -> Picture:
    """Slurm wants it for a job, and it boots."""
    return flagged(picture, name, "POWERING_UP", responding=False, base=NodeBase.ALLOCATED)


def registered(picture: Picture, name: str) -> Picture:
    """Its slurmd is there; its agent is not yet. The provider's list still shows it stopped."""
    stopped = changed(
        picture.seen.instances, InstanceId(f"i-{name}"), lambda i: replace(i, state=InstanceState.STOPPED)
    )
    return flagged(picture, name, base=NodeBase.ALLOCATED).see(instances=stopped, listed_at=picture.now)


def incidents(picture: Picture) -> list[str]:
    return [kind for kind, one in picture.plan().memory.incidents.items() if one.over is None]


def test_a_node_that_slurm_powers_up_for_a_job_is_left_to_come() -> None:
    picture = coming(asleep("n2"), "n2")
    assert (touched(picture), picture.plan().memory.cases) == ([], {})
    later = picture.wait(120.0)
    assert (touched(later), later.memory.cases) == ([], {})


def test_when_it_is_there_its_agent_has_a_while_to_come() -> None:
    there = registered(coming(asleep("n2"), "n2").wait(60.0), "n2")
    assert touched(there) == []
    assert touched(there.wait(14.0)) == []


def test_one_whose_agent_does_not_come_is_missed_when_that_is_over() -> None:
    there = registered(coming(asleep("n2"), "n2").wait(60.0), "n2")
    assert there.plan().wake_at == there.now + 15.0
    (case,) = there.wait(16.0).memory.cases.values()
    assert (case.node, case.trigger, case.fault_at) == (n("n2"), Trigger.LOST, there.now + 15.0)
    assert "it did not connect when its node was back" in case.why.evidence[0]


def test_one_whose_agent_came_and_is_gone_again_is_lost_at_once() -> None:
    there = registered(coming(asleep("n2"), "n2").then(60.0), "n2").then(3.0)
    came = there.heard("n2").then(2.0)
    assert touched(came.lost("n2")) == ["n2"]


def test_a_node_that_is_rebooted_has_a_while_too() -> None:
    picture = flagged(a_cluster(), "n2", "REBOOT_ISSUED", base=NodeBase.DOWN).agent_lost("n2").then(300.0)
    assert touched(registered(picture, "n2").then(5.0)) == []


def test_it_has_a_while_under_a_head_that_was_away_when_it_came() -> None:
    picture = coming(asleep("n2"), "n2").then(600.0)
    agents = {name: view for name, view in picture.seen.agents.items() if name != "n2"}
    picture = registered(picture.see(agents=agents, agents_since=picture.now - 300.0), "n2")
    assert touched(picture) == []
    assert [case.node for case in picture.wait(16.0).memory.cases.values()] == ["n2"]


def test_it_does_not_matter_for_how_many_days_a_node_sleeps() -> None:
    assert touched(registered(asleep("n2").then(2 * DAY_S).then(1.0), "n2")) == []


def test_meanwhile_nobody_can_say_whether_it_failed_a_job() -> None:
    there = registered(coming(asleep("n2").job(on=("n1", "n2")), "n2").then(60.0), "n2").then()
    job = next(iter(there.seen.jobs.values()))
    assert may_still_turn_up(job, Draft(there.seen, there.want, there.memory, there.now)) == names("n2")
    later = there.after(16.0).heard("n2")
    assert may_still_turn_up(job, Draft(later.seen, later.want, later.memory, later.now)) == frozenset()


def test_many_nodes_that_sleep_are_no_outage_and_a_dead_one_beside_them_is_repaired() -> None:
    picture = asleep("n1", "n2", "n3", "n4")
    assert incidents(picture) == []
    assert touched(picture.lost("n6")) == ["n6"]


def test_many_whose_last_beats_are_late_while_they_power_down_are_none_either() -> None:
    picture = a_cluster()
    for name in ("n1", "n2", "n3", "n4"):
        picture = flagged(picture, name, "POWERING_DOWN").agent(name, late=True)
    assert incidents(picture) == []


def test_many_that_come_up_at_once_are_none_while_their_agents_have_time() -> None:
    picture = asleep("n1", "n2", "n3", "n4")
    for name in ("n1", "n2", "n3", "n4"):
        picture = registered(picture, name)
    assert incidents(picture.then(5.0)) == []


def test_many_that_came_up_without_their_agents_are_an_outage_although_they_fell_asleep_apart() -> None:
    picture = a_cluster()
    for name in ("n1", "n2", "n3"):
        picture = flagged(picture, name, "POWERED_DOWN").agent_lost(name).then(SILENT_FOR_S)
    for name in ("n1", "n2", "n3"):
        picture = registered(picture, name)
    later = picture.wait(16.0)
    assert (incidents(later), touched(later)) == (["agents"], [])


def test_one_that_comes_up_and_one_that_dies_later_have_no_cause_in_common() -> None:
    picture = registered(registered(asleep("n1", "n2", breaker_min=5), "n1"), "n2").wait(10.0)
    for name in ("n1", "n2"):
        picture = picture.witnessed(name, Witness.ALIVE)
    later = picture.wait(60.0)
    assert touched(later.lost("n6")) == ["n6"]


def test_a_node_that_never_comes_is_found_by_slurms_own_word() -> None:
    """After ResumeTimeout Slurm sets it DOWN and powers it down again."""
    booting = coming(asleep("n2"), "n2").wait(60.0)
    reason = Reason(text="ResumeTimeout reached", user="slurm", at=booting.now)
    gave_up = flagged(booting, "n2", "POWERED_DOWN", base=NodeBase.DOWN, reason=reason).then()
    (case,) = gave_up.then().memory.cases.values()
    assert (case.node, case.check, case.rung) == (n("n2"), "slurm.resume_timeout", Advice.REPLACE)


def replaced() -> Picture:
    """n2 died and was replaced by a machine that Slurm powers up."""
    picture = a_cluster().lost("n2").then().marked("n2").then(1)
    picture = picture.see(instances={k: v for k, v in picture.seen.instances.items() if k != "i-n2"}).then(1)
    (case,) = picture.memory.cases.values()
    made = replace(a_cluster().seen.instances[InstanceId("i-n2")], id=InstanceId("i-new"), token=case.token)
    picture = picture.see(instances={**picture.seen.instances, made.id: made})
    return picture.node("n2", flags=frozenset({"DRAIN", "POWERING_UP"}), responding=False).then(1)


def test_a_new_machine_that_never_comes_up_is_given_up_by_its_repairs_own_deadline() -> None:
    picture = replaced()
    (case,) = picture.memory.cases.values()
    assert case.step is CaseStep.PROVISION
    (later,) = picture.wait(2710.0).memory.cases.values()
    assert (later.step, later.launches) == (CaseStep.LAUNCH, 1)


@pytest.mark.parametrize("flag", ["POWERED_DOWN", "POWERING_UP", "REBOOT_ISSUED"])
def test_a_picture_of_sleeping_nodes_plans_nothing_and_writes_nothing_new(flag: str) -> None:
    picture = flagged(a_cluster(), "n2", flag).agent_lost("n2").then(10.0)
    assert picture.plan().actions == ()
    assert picture.plan().memory == picture.memory


def test_what_is_remembered_of_a_node_is_forgotten_a_day_after_it_was_there_again() -> None:
    away = asleep("n2").then(2 * DAY_S).then()
    assert away.memory.nodes == {n("n2"): NodeMemory(away_since=away.now - 2 * DAY_S - SILENT_FOR_S)}
    there = flagged(away, "n2").heard("n2")
    back = there.then(DAY_S - 1.0)
    assert back.then(2.0).memory.nodes == {n("n2"): NodeMemory(back_at=there.now)}
    assert back.then(2.0).then().memory.nodes == {}


def test_a_sleeping_node_that_is_no_longer_slurms_is_forgotten_after_a_day() -> None:
    away = asleep("n2").then()
    without = away.see(nodes={name: node for name, node in away.seen.nodes.items() if name != "n2"})
    assert set(without.then(DAY_S - SILENT_FOR_S - 1.0).then(2.0).memory.nodes) == {n("n2")}
    assert without.then(DAY_S - SILENT_FOR_S + 1.0).then().memory.nodes == {}


def test_of_quiet_nodes_nothing_is_remembered() -> None:
    assert a_cluster(50).then(60.0).then().memory.nodes == {}
