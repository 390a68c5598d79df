"""Slurm's controller dies just after a mark and comes back without it: nobody gave the node back; and the reverse."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import DownNode, DrainNode, RebootInstance, ReturnNode, TerminateInstance
from steward.model.agent_action import Action, MendNode
from steward.model.case import Case, CaseStep
from steward.model.health import Advice, Severity
from steward.model.ids import Key, NodeName
from steward.model.node import NodeBase
from steward.model.partition import Partition, PartitionState
from steward.policy.controls import pause, resume_actions
from steward.workflows.attention import has_marked, is_mark_in_question
from steward.workflows.clock_change import moved_earlier
from tests.builders.picture import Picture, a_cluster


def waiting() -> Picture:
    """n2 has a degraded GPU and is drained for it; its repair has no turn yet."""
    picture = a_cluster(concurrent_min=0, concurrent_percent=0.0).failing("n2", check="gpu")
    return read(picture.then().marked("n2").then(1), began=0.0).then(1)


def read(picture: Picture, *, began: float) -> Picture:
    """The partitions were just read; slurmctld last began anew `began` seconds ago."""
    loaded = picture.now - began if began else 1.0
    main = Partition(name="main", state=PartitionState.UP, loaded=loaded)
    return picture.see(partitions={"main": main}, partitions_at=picture.now)


def in_service(picture: Picture) -> Picture:
    return picture.node("n2", base=NodeBase.IDLE, flags=frozenset(), reason=None)


def case_of(picture: Picture) -> Case:
    return next(iter(picture.memory.cases.values()))


def signs(picture: Picture) -> list[DrainNode]:
    return [a for a in picture.plan().actions if isinstance(a, DrainNode) and a.key.startswith("sign:")]


def test_a_controller_that_began_anew_since_gets_the_mark_again() -> None:
    picture = in_service(waiting()).then(2)
    assert case_of(picture).step is CaseStep.RELEASE, "it is not known yet whether slurmctld began anew"

    picture = read(picture, began=1.0)

    assert [str(action.mark) for action in signs(picture)] == [f"steward:gpu:replace:{case_of(picture).id}"]
    assert case_of(picture.then()).is_open


@pytest.mark.parametrize("step", ["launch", "return"])
def test_a_controller_that_comes_back_with_the_mark_of_an_update_gets_that_of_the_repair_again(step: str) -> None:
    """The node was made anew for its group and died at once; the backup slurmctld began with the state of before that.
    With that mark nobody would give it back."""
    picture = a_cluster().lost("n2").then().marked("n2").then(1).then()
    case = replace(case_of(picture), step=CaseStep(step), marked=picture.now)
    picture = replace(picture, memory=replace(picture.memory, cases={case.id: case}))
    assert signs(picture) == []
    older = picture.drained("n2", "steward:update:renew:b5038d3cd113")
    assert [str(action.mark) for action in signs(older)] == [f"steward:agent:replace:{case.id}"]
    assert case_of(older.then()).is_open


def test_a_person_who_gives_the_node_back_is_believed_once_it_is_known_that_no_controller_began() -> None:
    picture = in_service(waiting()).then(2)
    picture = read(picture, began=0.0)
    assert signs(picture) == []
    assert not case_of(picture.then()).is_open


def test_a_person_is_believed_too_after_the_mark_was_set_again() -> None:
    picture = read(in_service(waiting()).then(2), began=1.0).then(1)
    picture = read(picture.marked("n2"), began=2.0).then(1)
    assert case_of(picture).is_open

    picture = in_service(picture).then(2)
    picture = read(picture, began=5.0)

    assert signs(picture) == []
    assert not case_of(picture.then()).is_open


@pytest.mark.parametrize("hours", [1, 24])
def test_a_controller_that_began_without_its_state_is_not_taken_for_a_person(hours: int) -> None:
    picture = read(waiting().after(hours * 3600.0).then(), began=0.0).then(1)
    picture = in_service(picture).then(2)
    assert len(signs(read(picture, began=1.0))) == 1


def jumped(picture: Picture, by: float) -> Picture:
    """The clock was set; a head that finds it set back begins with its memory moved."""
    return (
        picture.then(by)
        if by > 0
        else replace(picture, memory=moved_earlier(picture.memory, -by), now=picture.now + by)
    )


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_clock_that_jumps_while_the_controller_is_away_changes_nothing(jump_s: float) -> None:
    picture = jumped(in_service(waiting().then(1)).then(2), jump_s).then(1)
    assert len(signs(read(picture.then(1), began=1.0))) == 1


def test_a_person_is_believed_under_a_controller_that_has_shown_the_mark() -> None:
    picture = read(waiting().then(2), began=1.0).then(3)
    picture = in_service(picture).then(2)
    assert signs(read(picture, began=6.0)) == []


def long_marked(*, jobs: tuple[int, ...] = (), others: tuple[str, ...] = ()) -> Picture:
    """n2, and others like it, have borne their marks for a minute of looks; jobs that opted in run on n6."""
    picture = a_cluster(concurrent_min=0, concurrent_percent=0.0, breaker_min=9)
    for id in jobs:
        picture = picture.job(id, on=("n6",)).opted_in(id)
    for name in ("n2", *others):
        picture = picture.failing(name, check=f"gpu.{name}")
    picture = picture.then()
    for name in ("n2", *others):
        picture = picture.marked(name)
    return read(picture.then(1), began=0.0).wait(60.0).then(1)


def reconfigured(picture: Picture, *names: str) -> Picture:
    """slurmctld began anew a second ago, and these nodes are in service; it is read after that."""
    for name in names:
        picture = picture.node(name, base=NodeBase.IDLE, flags=frozenset(), reason=None)
    return read(picture.then(1), began=1.0)


def open_cases(picture: Picture) -> list[str]:
    return sorted(case.node for case in picture.then().memory.cases.values() if case.is_open)


def test_a_person_who_reconfigures_and_gives_the_node_back_in_one_breath_is_believed() -> None:
    """From 23.11 on a reconfigure is a new beginning, which has read what was written long before."""
    picture = reconfigured(long_marked(), "n2")
    assert signs(picture) == []
    assert open_cases(picture) == []


def test_he_is_believed_after_days_too() -> None:
    assert signs(reconfigured(long_marked().then(2 * 86_400.0).then(1), "n2")) == []


def test_he_is_believed_by_a_head_that_was_away_meanwhile() -> None:
    assert signs(reconfigured(long_marked().after(3600.0), "n2")) == []


def test_a_mark_that_was_set_again_just_before_may_be_lost_however_long_the_one_before_it_stood() -> None:
    lost = reconfigured(long_marked(jobs=(7,)).see(jobs={}), "n2")
    again = read(lost.then(1).marked("n2"), began=2.0).then(5.0)
    assert len(signs(reconfigured(again, "n2"))) == 1


def test_a_controller_that_lost_the_marks_of_other_nodes_too_lost_its_state() -> None:
    picture = reconfigured(long_marked(others=("n3",)), "n2", "n3")
    assert sorted(action.node for action in signs(picture)) == ["n2", "n3"]
    assert open_cases(picture) == ["n2", "n3"]


def test_one_that_lost_jobs_too_lost_its_state() -> None:
    picture = long_marked(jobs=(7,)).see(jobs={})
    assert [action.node for action in signs(reconfigured(picture, "n2"))] == ["n2"]


def test_one_that_keeps_another_mark_lost_nothing() -> None:
    picture = reconfigured(long_marked(others=("n3", "n4")), "n2", "n3")
    assert signs(picture) == []
    assert open_cases(picture) == ["n4"]


def test_one_that_knows_older_jobs_lost_nothing() -> None:
    picture = reconfigured(long_marked(jobs=(7,), others=("n3",)), "n2", "n3")
    assert signs(picture) == []
    assert open_cases(picture) == []


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_clock_that_jumps_while_a_mark_is_young_does_not_make_it_old(jump_s: float) -> None:
    picture = jumped(waiting().then(5.0), jump_s).then(5.0)
    assert len(signs(reconfigured(picture, "n2"))) == 1


def harm(picture: Picture) -> list[Action]:
    """What the next plan would do to n2 or its jobs."""
    hard = (DownNode, DrainNode, MendNode, RebootInstance, TerminateInstance)
    return [a for a in picture.plan().actions if isinstance(a, hard) and a.node == "n2"]


def freed_in_pause(picture: Picture, *, job: int | None = None) -> Picture:
    """A person gave n2 back while the head was paused, which is over now; the partitions were read before that."""
    picture = in_service(replace(picture, memory=pause(picture.memory)).then(1)).see(jobs={}).then(600)
    if job is not None:
        picture = picture.job(job, on=("n2",)).node("n2", base=NodeBase.ALLOCATED)
    picture = read(picture, began=0.0).then(2)
    return replace(picture, memory=resume_actions(picture.memory, picture.now))


def of_degraded(advice: Advice = Advice.REPLACE, *, on: str = "") -> Picture:
    """n2 is out of service for its GPU, and a job runs on it."""
    degraded = a_cluster().job(9, on=("n2",)).node("n2", base=NodeBase.MIXED)
    degraded = degraded.failing("n2", Severity.DEGRADED, check="gpu", advice=advice, hardware=on)
    return read(degraded.then().marked("n2").then(1), began=0.0).then(1)


@pytest.mark.parametrize("advice", [Advice.REPLACE, Advice.REBOOT, Advice.RESET_GPU])
def test_a_node_that_waited_for_its_job_and_was_given_back_in_a_pause_is_not_repaired(advice: Advice) -> None:
    picture = freed_in_pause(of_degraded(advice, on="GPU-0b1b63b9-6f0a-4d0e-9d06-2d6f0f6b7a11"))
    assert harm(picture) == []
    assert not case_of(read(picture.then(2), began=0.0).then()).is_open


def test_nor_is_one_that_waited_for_its_turn_and_has_a_users_job_again() -> None:
    picture = freed_in_pause(waiting(), job=77).repair(concurrent_min=5)
    assert harm(picture) == []
    assert not case_of(read(picture.then(2), began=0.0).then()).is_open


def test_nor_is_it_taken_out_for_what_got_worse_in_the_pause() -> None:
    waits = of_degraded()
    worse = waits.failing("n2", Severity.FATAL, check="gpu")
    assert harm(worse), "without a person's word it is"

    picture = freed_in_pause(waits, job=77).failing("n2", Severity.FATAL, check="gpu", event=False)
    assert harm(picture) == []
    closed = read(picture.then(2), began=0.0)
    assert harm(closed) == [], "his word stands for this check of this machine"
    assert not case_of(closed.then()).is_open


def test_a_refused_reboot_is_not_tried_again_on_a_node_that_was_given_back_in_a_pause() -> None:
    ready = a_cluster().failing("n2", Severity.DEGRADED, check="gpu", advice=Advice.REBOOT).then()
    asked = read(ready.marked("n2").then(1), began=0.0).then(1)
    refused = asked.see(failures={Key(f"reboot:{case_of(asked).token}:0"): "the BMC does not answer"}).then(1)
    assert (case_of(refused).step, case_of(refused).tries) == (CaseStep.LAUNCH, 1)

    assert harm(freed_in_pause(refused, job=77)) == []


def test_without_a_pause_too_nothing_is_begun_before_it_is_known_who_took_the_mark_away() -> None:
    picture = read(waiting(), began=0.0).then(2)
    picture = in_service(picture).job(77, on=("n2",)).node("n2", base=NodeBase.ALLOCATED).repair(concurrent_min=5)
    assert harm(picture) == []
    assert case_of(picture.then()).step is CaseStep.RELEASE
    assert not case_of(read(picture.then(2), began=0.0).then()).is_open


def test_nor_is_it_left_to_a_person_who_gave_it_back_after_it_had_waited_for_more_than_a_day() -> None:
    picture = of_degraded()
    case = case_of(picture)
    old = replace(picture.memory, cases={case.id: replace(case, entered=picture.now - 90_000)})
    given = in_service(replace(picture, memory=old)).node("n2", base=NodeBase.MIXED)
    assert case_of(given.then(2)).step is CaseStep.RELEASE, "it is not known yet whether slurmctld began anew"
    assert case_of(read(given.then(2), began=0.0).then()).step is CaseStep.CLOSED


def taken_out(severity: Severity = Severity.DEGRADED) -> Picture:
    """The drain of n2 was asked for just before a pause began, and was seen only in it."""
    picture = read(a_cluster().failing("n2", severity, check="gpu").then(), began=0.0)
    assert case_of(picture).step is CaseStep.DRAIN
    return replace(picture, memory=pause(picture.memory)).marked("n2").then(1).wait(60.0).then(1)


@pytest.mark.parametrize("severity", [Severity.DEGRADED, Severity.FATAL])
def test_a_node_that_a_person_gives_back_in_the_pause_that_its_drain_began_in_stays_in_service(
    severity: Severity,
) -> None:
    picture = freed_in_pause(taken_out(severity), job=77)
    assert harm(picture) == []
    closed = read(picture.then(2), began=0.0).then()
    assert not case_of(closed).is_open
    assert harm(closed) == []


def test_one_whose_drain_was_never_carried_out_is_drained_after_the_pause() -> None:
    picture = read(a_cluster().failing("n2", Severity.DEGRADED, check="gpu").then(), began=0.0)
    assert len(harm(freed_in_pause(picture))) == 1


def test_nor_did_a_person_give_it_back_where_a_controller_without_its_state_came_in_the_pause() -> None:
    picture = read(a_cluster().failing("n2", Severity.DEGRADED, check="gpu").then(), began=0.0)
    picture = replace(picture, memory=pause(picture.memory)).marked("n2").then(1)
    picture = read(in_service(picture).then(2), began=1.0).then(600)
    picture = replace(picture, memory=resume_actions(picture.memory, picture.now)).then(1)
    assert len(harm(picture.see(partitions_at=picture.now))) == 1


def returned() -> Picture:
    """The case of n2 ended well five seconds ago."""
    picture = waiting()
    case = replace(case_of(picture), step=CaseStep.CLOSED, returned=picture.now, closed=picture.now)
    sound = picture.agent("n2", findings=())
    return replace(sound, memory=replace(sound.memory, cases={case.id: case})).after(5.0)


def given_back() -> Picture:
    """And yet n2 bears its mark again, under a controller that began anew since."""
    return read(returned(), began=2.0)


def returns(picture: Picture) -> list[str]:
    return [str(action.mark) for action in picture.plan().actions if isinstance(action, ReturnNode)]


def kinds(picture: Picture) -> list[str]:
    return [event.kind for event in picture.plan().events]


def test_a_controller_that_forgot_that_a_node_was_given_back_is_told_once_more() -> None:
    picture = given_back()
    assert returns(picture) == [f"steward:gpu:replace:{case_of(picture).id}"]
    assert kinds(picture) == ["node.forgotten"]
    assert returns(picture.then(1)) == []
    assert kinds(picture.then(1)) == []


def test_a_mark_that_is_set_once_more_after_that_is_a_persons() -> None:
    assert kinds(given_back().then(11)) == ["node.orphan"]


def test_a_paused_head_gives_nothing_back_again() -> None:
    picture = given_back()
    paused = replace(picture, memory=pause(picture.memory))
    assert (returns(paused), kinds(paused)) == ([], ["node.orphan"])


def test_until_it_is_known_whether_slurms_controller_began_anew_nothing_is_done_or_told() -> None:
    picture = returned().then(1)
    assert (returns(picture), kinds(picture)) == ([], [])
    assert returns(read(picture, began=2.0)) != []


def taken_out_later(after_s: float, *flags: str) -> Picture:
    """Somebody took n2 out again, and Slurm (24.11) has kept the old mark as the reason."""
    picture = returned()
    mark = picture.seen.nodes[NodeName("n2")].reason
    served = in_service(picture).then(1).wait(after_s, every_s=after_s / 2).then(1)
    return served.node("n2", flags=frozenset({"DRAIN", *flags}), reason=mark)


def seen_and_read(picture: Picture, *, began: float) -> tuple[list[str], list[str]]:
    """What is given back, and told, when the mark shows and a second later, when partitions were read."""
    later = read(picture.then(1), began=began)
    return returns(picture) + returns(later), kinds(picture) + kinds(later)


@pytest.mark.parametrize("after_s", [100.0, 2 * 86_400.0])
def test_a_drain_by_slurm_that_kept_our_old_mark_is_not_undone_but_told(after_s: float) -> None:
    picture = taken_out_later(after_s)
    assert seen_and_read(picture, began=0.0) == ([], ["node.orphan"])
    (event,) = read(picture.then(1), began=0.0).plan().events or picture.plan().events
    assert "that case is over: see slurmctld's log for who took it out" in event.text


@pytest.mark.parametrize(("after_s", "began"), [(400.0, 300.0), (2 * 86_400.0, 2.0)])
def test_nor_where_its_controller_has_shown_the_node_in_service_or_began_long_after_the_return(
    after_s: float, began: float
) -> None:
    assert seen_and_read(taken_out_later(after_s), began=began) == ([], ["node.orphan"])


@pytest.mark.parametrize("flag", ["REBOOT_REQUESTED", "REBOOT_ISSUED"])
def test_a_reboot_that_a_person_asked_slurm_for_is_let_be(flag: str) -> None:
    assert seen_and_read(taken_out_later(10.0, flag), began=2.0) == ([], [])


def test_when_slurms_controller_began_is_asked_often_while_a_mark_is_too_new_to_be_on_its_disk() -> None:
    picture = waiting()
    assert has_marked(picture.memory)
    assert not case_of(picture).marking.on_disk
    assert is_mark_in_question(picture.memory, picture.now)
    long_ago = read(picture.wait(60.0).then(1), began=0.0).then(1)
    assert has_marked(long_ago.memory)
    assert not is_mark_in_question(long_ago.memory, long_ago.now)


def test_and_again_as_soon_as_the_mark_is_gone() -> None:
    picture = in_service(read(waiting().wait(60.0).then(1), began=0.0).then(1)).then(1)
    assert is_mark_in_question(picture.memory, picture.now)


def test_and_for_a_lost_node_that_was_seen_with_our_mark_before_slurm_had_it_down() -> None:
    """slurmctld died in between: for a minute nobody knew, and the step's deadline passed."""
    picture = a_cluster().job().lost("n2").then()
    mark = f"steward:agent:replace:{case_of(picture).id}"
    draining = read(picture.drained("n2", mark).node("n2", base=NodeBase.ALLOCATED), began=0.0).then(0.5)
    assert (has_marked(draining.memory), is_mark_in_question(draining.memory, draining.now)) == (True, True)
    forgot = in_service(draining).then(5)
    assert case_of(forgot).step is CaseStep.DRAIN
    downs = [a for a in read(forgot, began=0.5).plan().actions if isinstance(a, DownNode)]
    assert [down.node for down in downs] == ["n2"]


def test_and_while_one_stands_there_once_more_whose_return_slurm_may_have_forgotten() -> None:
    shown = returned().then(1)
    assert is_mark_in_question(shown.memory, shown.now)
    assert not is_mark_in_question(shown.memory, shown.now + 721.0)


def test_nobody_asks_after_it_for_a_node_that_serves_again() -> None:
    served = in_service(returned()).then(2)
    assert not is_mark_in_question(served.memory, served.now)
    assert not has_marked(served.memory)


@pytest.mark.parametrize("otherwise", [{"returned": None}, {"stand_in": NodeName("s1")}])
def test_a_mark_of_a_case_that_ended_otherwise_stays(otherwise: dict[str, Any]) -> None:
    picture = given_back()
    case = replace(case_of(picture), **otherwise)
    assert returns(replace(picture, memory=replace(picture.memory, cases={case.id: case}))) == []
