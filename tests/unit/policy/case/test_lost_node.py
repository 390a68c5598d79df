"""A node is lost when its agent is gone and somebody else says so; nothing less takes it out of service."""

import itertools
from dataclasses import replace

import pytest

from steward.model.action import DownNode, LaunchInstance, ProbeNode, TerminateInstance
from steward.model.agent_action import Action
from steward.model.case import CaseStep, Trigger
from steward.model.health import Finding, Outcome, Severity
from steward.model.ids import InstanceId
from steward.model.instance import InstanceState
from steward.model.memory import NodeMemory
from steward.model.node import NodeBase, Reason
from steward.model.observed import AgentView, Freshness
from steward.model.witness import Witness, WitnessSeen
from tests.builders.picture import T0, Picture, a_cluster, action_types, changed, n


def kinds(picture: Picture) -> list[type[Action]]:
    return action_types(picture.plan())


GIVEN_UP = Reason(text="Not responding", user="slurm", at=T0)
"""What Slurm writes when it sets a node DOWN that did not answer for SlurmdTimeout."""


def downed(picture: Picture) -> list[str]:
    return [action.node for action in picture.plan().actions if isinstance(action, DownNode)]


def test_nothing_is_done_to_a_healthy_cluster() -> None:
    assert a_cluster().plan().actions == ()


def test_a_lost_agent_asks_the_second_witness() -> None:
    assert kinds(a_cluster().agent_lost("n2")) == [ProbeNode]


@pytest.mark.parametrize("result", [Witness.REFUSED, Witness.SILENT])
def test_a_node_whose_agent_and_slurmd_are_gone_is_taken_down_at_once(result: Witness) -> None:
    assert downed(a_cluster().agent_lost("n2").witnessed("n2", result)) == ["n2"]


def test_a_closed_port_says_nothing_of_a_node_whose_agent_was_told_to_end() -> None:
    """Both services may be restarted by one command; a host that does not answer is gone all the same."""
    picture = a_cluster().agent_lost("n2").agent("n2", leaves=True)
    closed = picture.witnessed("n2", Witness.REFUSED)
    assert downed(closed) == []
    assert downed(closed.then(60).witnessed("n2", Witness.REFUSED)) == []
    assert downed(picture.witnessed("n2", Witness.SILENT)) == ["n2"]
    missed_by_slurm = closed.node("n2", responding=False)
    assert downed(missed_by_slurm) == [], "Slurm asks at the same port"
    assert downed(missed_by_slurm.then(60).witnessed("n2", Witness.REFUSED)) == []
    assert downed(picture.node("n2", responding=False)) == [], "and it was not looked at yet"
    assert downed(missed_by_slurm.node("n2", base=NodeBase.DOWN, reason=GIVEN_UP)) == ["n2"]
    assert downed(missed_by_slurm.witnessed("n2", Witness.SILENT)) == ["n2"], "its host does not answer"


def test_a_port_that_gives_no_answer_says_nothing_of_a_node_whose_agent_did_not_fall_silent() -> None:
    """Any user can open more connections to slurmd than it serves. So a node is lost only where its agent said nothing
    on a connection that nobody ended, or by the word of somebody else."""
    picture = a_cluster().agent_lost("n2")
    full = picture.witnessed("n2", Witness.UNANSWERED)
    assert downed(full) == []
    assert downed(full.then(60).witnessed("n2", Witness.UNANSWERED)) == []
    assert downed(full.agent("n2", fell_silent=True)) == ["n2"]
    missed = Finding(check="slurmd", outcome=Outcome.UNKNOWN, severity=Severity.DEGRADED, text="no end within 1 s")
    assert downed(full.agent("n2", fell_silent=True, findings=(missed,))) == [], "it was full before"
    missed_by_slurm = full.node("n2", responding=False)
    assert downed(missed_by_slurm) == [], "Slurm asks at the same port"
    assert downed(picture.node("n2", responding=False)) == [], "and it was not looked at yet"
    assert downed(missed_by_slurm.agent("n2", fell_silent=True)) == ["n2"]
    assert downed(missed_by_slurm.node("n2", base=NodeBase.DOWN, reason=GIVEN_UP)) == ["n2"]
    assert downed(picture.witnessed("n2", Witness.SILENT)) == ["n2"], "its host does not answer"


@pytest.mark.parametrize("result", [Witness.REFUSED, Witness.UNANSWERED, Witness.SILENT])
def test_an_agent_that_comes_and_is_sent_away_is_alive(result: Witness) -> None:
    """What makes the head hang up on it may be of a user's making, as may be what slurmd's port says."""
    picture = a_cluster().agent_lost("n2").agent("n2", fell_silent=True)
    sent_away = picture.agent("n2", dialled_at=picture.now).witnessed("n2", result)
    assert downed(sent_away) == []
    assert sent_away.plan().memory.cases == {}
    later = sent_away.then(10)
    assert downed(later.agent("n2", dialled_at=later.now).then(10).witnessed("n2", result)) == []
    assert downed(later.then(10).witnessed("n2", result)) == ["n2"], "it comes no more"


def test_an_agent_that_died_alone_drains_nothing() -> None:
    picture = a_cluster().agent_lost("n2").witnessed("n2", Witness.ALIVE)
    assert downed(picture) == []
    assert picture.then(60).plan().memory.cases == {}


def test_a_slurmd_that_still_answers_just_after_its_agent_was_lost_is_looked_at_again_at_once() -> None:
    """A machine that dies ends its processes one after the other."""
    picture = a_cluster().agent_lost("n2", ago_s=0.0).then()
    answered = picture.witnessed("n2", Witness.ALIVE)
    assert answered.plan().wake_at == pytest.approx(answered.now + 0.05)
    assert kinds(answered.then(0.05)) == [ProbeNode]


def test_an_agent_that_stays_away_alone_is_looked_at_ever_more_seldom() -> None:
    picture, looks = a_cluster().agent_lost("n2", ago_s=0.0).witnessed("n2", Witness.ALIVE), list[float]()
    began = picture.now
    for _ in range(1600):
        if ProbeNode in kinds(picture):
            looks.append(picture.now - began)
        picture = picture.then(0.0625)
    pauses = [after - before for before, after in itertools.pairwise(looks)]
    assert pauses == sorted(pauses)
    assert [pause for pause in pauses if pause < 3.0] == [0.0625, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0]


def test_a_slurmd_that_answered_before_the_agent_was_lost_says_nothing() -> None:
    picture = a_cluster().agent_lost("n2", ago_s=1.0).witnessed("n2", Witness.ALIVE, ago_s=2.0)
    assert kinds(picture) == [ProbeNode]


def test_a_loss_must_last_before_it_counts() -> None:
    picture = a_cluster(settle_s=2.0).agent_lost("n2", ago_s=1.0).witnessed("n2", Witness.REFUSED)
    assert downed(picture) == []
    assert downed(picture.then(1.0).witnessed("n2", Witness.REFUSED)) == ["n2"]


def test_the_plan_says_when_the_loss_will_have_lasted_long_enough() -> None:
    picture = a_cluster(settle_s=2.0).agent_lost("n2", ago_s=1.0).witnessed("n2", Witness.REFUSED)
    assert picture.plan().wake_at == pytest.approx(picture.now + 1.0)


def test_a_late_agent_is_looked_at_so_that_the_answer_is_there_when_it_is_lost() -> None:
    late = a_cluster().agent("n2", late=True, last_heard=T0 - 2)
    assert kinds(late) == [ProbeNode]
    silent = late.witnessed("n2", Witness.SILENT).then(1.2)
    assert kinds(silent) == []
    assert downed(silent.agent("n2", connected=False, lost_at=silent.now - 0.3)) == ["n2"]


def test_a_look_from_before_the_agent_was_last_heard_says_nothing() -> None:
    picture = a_cluster().witnessed("n2", Witness.SILENT, ago_s=1.0).agent_lost("n2", ago_s=0.3)
    assert downed(picture) == ["n2"]
    assert downed(picture.agent("n2", last_heard=picture.now - 0.9)) == []


def test_an_old_word_of_the_witness_is_asked_for_again() -> None:
    picture = a_cluster().agent_lost("n2", ago_s=20).witnessed("n2", Witness.REFUSED, ago_s=10)
    assert kinds(picture) == [ProbeNode]


def test_a_provider_that_says_the_machine_is_stopped_is_a_witness() -> None:
    picture = a_cluster().agent_lost("n2")
    stopped = changed(picture.seen.instances, InstanceId("i-n2"), lambda i: replace(i, state=InstanceState.STOPPED))
    assert downed(picture.see(instances=stopped)) == ["n2"]
    assert downed(picture.see(instances=stopped, provider=Freshness.OLD)) == []


def test_slurm_that_gets_no_answer_is_a_witness() -> None:
    silent = a_cluster().agent_lost("n2").agent("n2", fell_silent=True)
    assert downed(silent.node("n2", responding=False)) == ["n2"]


def test_slurm_marking_the_node_down_for_silence_does_not_make_it_somebody_elses() -> None:
    picture = a_cluster().lost("n2").node("n2", base=NodeBase.DOWN, reason=Reason(text="Not responding", user="slurm"))
    assert downed(picture) == ["n2"]


@pytest.mark.parametrize(
    ("text", "lost"), [("ResumeTimeout reached", ["n2"]), ("Node unexpectedly rebooted", list[str]())]
)
def test_a_node_whose_slurmd_registered_anew_before_its_agent_is_up_is_not_lost(text: str, lost: list[str]) -> None:
    down = a_cluster().agent_lost("n2").node("n2", base=NodeBase.DOWN, reason=Reason(text=text, user="slurm"))
    assert downed(down) == lost


@pytest.mark.parametrize("flag", ["POWERED_DOWN", "POWERING_DOWN", "REBOOT_ISSUED", "MAINTENANCE"])
def test_a_node_that_is_away_on_purpose_is_not_lost(flag: str) -> None:
    assert kinds(a_cluster().lost("n2").node("n2", flags=frozenset({flag}))) == []


def test_an_agent_that_never_connected_is_not_missed() -> None:
    agents = {name: view for name, view in a_cluster().seen.agents.items() if name != "n2"}
    assert kinds(a_cluster().see(agents=agents).node("n2", responding=False)) == []


def test_an_agent_known_from_before_the_heads_start_is_missed_after_a_grace() -> None:
    known = a_cluster().then()
    agents = {name: view for name, view in known.seen.agents.items() if name != "n2"}
    restarted = known.see(agents=agents, agents_since=known.now).node("n2", responding=False)
    assert kinds(restarted.after(14)) == []
    assert downed(restarted.after(16)) == ["n2"]


def after_a_start(came_s: float, *missing: str, of: int = 8) -> Picture:
    """A head has just started, and all agents but these have come, the slowest after `came_s`."""
    known = a_cluster(of).then()
    views = {
        name: replace(view, joined_at=known.now + came_s)
        for name, view in known.seen.agents.items()
        if name not in missing
    }
    return known.see(agents=views, agents_since=known.now)


def silent_host(picture: Picture, *given: str, result: Witness = Witness.SILENT) -> Picture:
    seen = WitnessSeen(result=result, at=picture.now)
    views = {
        n(name): AgentView(node=n(name), incarnation=None, connected=False, last_heard=0.0, witness=seen)
        for name in given
    }
    return picture.see(agents={**picture.seen.agents, **views})


@pytest.mark.parametrize(("came_s", "due_s"), [(0.2, 1.0), (1.0, 3.0), (10.0, 15.0)])
def test_agents_that_have_come_show_a_head_that_started_how_long_it_takes(came_s: float, due_s: float) -> None:
    picture = after_a_start(came_s, "n2").after(came_s)
    until = picture.plan().wake_at
    assert until == pytest.approx(T0 + due_s)
    early, due = picture.after(due_s - came_s - 0.1), picture.after(due_s - came_s).then(0.1)
    assert downed(silent_host(early, "n2")) == []
    assert downed(silent_host(due, "n2")) == ["n2"]


@pytest.mark.parametrize("missing", [("n2", "n3", "n4"), ("n2", "n3", "n4", "n5", "n6", "n7")])
def test_they_show_nothing_while_many_are_missing(missing: tuple[str, ...]) -> None:
    picture = after_a_start(0.2, *missing).after(10.0).then(0.1)
    assert downed(silent_host(picture, *missing)) == []
    late = picture.after(6.0).then(0.1)
    assert "node.suspect" in [event.kind for event in late.plan().events] or late.memory.incidents


def test_two_of_four_show_nothing_either() -> None:
    picture = after_a_start(0.2, "n2", "n3", of=4).after(10.0).then(0.1)
    assert downed(silent_host(picture, "n2", "n3")) == []


@pytest.mark.parametrize("result", [Witness.REFUSED, Witness.UNANSWERED])
def test_a_port_of_a_host_that_answers_counts_only_after_the_grace(result: Witness) -> None:
    """Whoever restarts slurmd and agent together while no head leads cannot tell anyone."""
    picture = after_a_start(0.2, "n2").after(5.0).then(0.1)
    assert downed(silent_host(picture, "n2", result=result)) == []
    assert downed(silent_host(picture.node("n2", responding=False), "n2", result=result)) == []
    late = picture.after(11.0)
    assert downed(silent_host(late, "n2", result=result)) == ["n2"]


def test_the_provider_says_to_a_new_head_too_that_the_machine_is_gone() -> None:
    """Which machine it was is known from the head before."""
    picture = after_a_start(0.2, "n2").after(2.0).then(0.1)
    instances = changed(picture.seen.instances, InstanceId("i-n2"), lambda i: replace(i, state=InstanceState.STOPPED))
    assert downed(silent_host(picture.see(instances=instances), "n2", result=Witness.REFUSED)) == ["n2"]


def test_a_node_under_repair_is_not_among_the_missing() -> None:
    """Two nodes were lost under the head before: nobody waits for them."""
    lost = a_cluster(10, breaker_min=5).lost("n3", "n4").then().marked("n3").marked("n4").then(100.0)
    views = {
        name: replace(view, joined_at=lost.now + 0.2)
        for name, view in lost.seen.agents.items()
        if name not in ("n2", "n3", "n4")
    }
    picture = lost.see(agents=views, agents_since=lost.now).after(2.0).then(0.1)
    assert downed(silent_host(picture, "n2")) == ["n2"]


def test_a_lost_node_under_an_admins_drain_is_left_alone_and_this_is_said_once() -> None:
    picture = a_cluster().drained("n2", "bad fan, leave it").lost("n2")
    decided = picture.plan()
    assert downed(picture) == []
    assert [event.kind for event in decided.events] == ["case.withheld"]
    assert picture.then().plan().events == ()


def test_a_lost_node_goes_all_the_way_back_to_service() -> None:
    picture = a_cluster().lost("n2").then().marked("n2")
    assert kinds(picture) == [TerminateInstance]
    picture = picture.then(1).see(instances={k: v for k, v in picture.seen.instances.items() if k != "i-n2"})
    launch = picture.plan().actions[0]
    assert isinstance(launch, LaunchInstance)
    case = next(iter(picture.memory.cases.values()))
    assert (case.step, case.trigger, launch.token) == (CaseStep.LAUNCH, Trigger.LOST, case.token)


def test_a_node_nobody_can_replace_is_taken_out_and_held_for_a_person() -> None:
    picture = a_cluster(provider=False).lost("n2").then().marked("n2").then()
    assert [case.step for case in picture.memory.cases.values()] == [CaseStep.HELD]
    assert picture.plan().actions == ()


def test_on_an_old_picture_nothing_is_decided() -> None:
    assert kinds(a_cluster().lost("n2").see(slurm=Freshness.OLD)) == []


def test_two_nodes_at_once_are_two_cases_and_only_the_replacements_take_turns() -> None:
    picture = a_cluster().lost("n2", "n5")
    assert downed(picture) == ["n2", "n5"]
    picture = picture.then().marked("n2").marked("n5").then()
    assert sorted(case.step.value for case in picture.memory.cases.values()) == ["launch", "release"]
    assert n("n2") in {case.node for case in picture.memory.cases.values() if case.step is CaseStep.LAUNCH}


def told_of(picture: Picture, seconds: int) -> list[str]:
    """What is told while both services of n2 stay off and somebody looks at its slurmd every ten seconds."""
    told = []
    for at in range(0, seconds, 2):
        picture = picture.witnessed("n2", Witness.REFUSED) if at % 10 == 0 else picture
        told += [event.kind for event in picture.plan().events if event.node == "n2"]
        picture = picture.then(2.0)
    return told


def test_a_node_whose_both_services_stay_off_is_suspected_once() -> None:
    assert told_of(a_cluster().agent_lost("n2").agent("n2", leaves=True), 300) == [
        "node.suspect",
        "node.cleared",
    ]


def test_a_head_that_is_restarted_while_both_services_are_off_knows_that_the_agent_took_leave() -> None:
    """It meets the agent no more, and hears of the closed port alone."""
    left = a_cluster().then().agent_lost("n2").agent("n2", leaves=True).then(1.0)
    unmet = AgentView(node=n("n2"), incarnation=None, connected=False, last_heard=0.0)
    new = left.see(agents={**left.seen.agents, n("n2"): unmet}, agents_since=left.now)
    late = new.after(new.want.repair.agents_grace_s + 30.0).witnessed("n2", Witness.REFUSED)
    assert late.then().witnessed("n2", Witness.REFUSED).plan().actions == ()
    assert downed(late.node("n2", responding=False)) == [], "Slurm asks at the same port"
    assert downed(late.node("n2", base=NodeBase.DOWN, responding=False, reason=GIVEN_UP)) == ["n2"], "Slurm gave it up"
    views = {name: view for name, view in left.seen.agents.items() if name != "n2"}
    not_met = left.see(agents=views, agents_since=left.now).node("n2", responding=False)
    assert downed(not_met.after(new.want.repair.agents_grace_s + 30.0)) == [], "before its port is looked at"
    back = late.agent("n2", incarnation=left.seen.agents[n("n2")].incarnation, connected=True).then(1.0)
    assert back.memory.nodes.get(n("n2"), NodeMemory()).leave_announced is None
