"""The sound nodes of a lost run are kept for its job while a replacement comes, bounded by a time and by who waits."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import DownNode, FreeNodes, KeepNodes, NudgeJob, ReleaseNodes, SetNice
from steward.model.agent_action import Action
from steward.model.case import CaseStep
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.reservation import Reservation
from steward.model.setting_types import RepairMode
from steward.policy.draft import Draft
from steward.policy.job.keep import GOES_ON_S, LEASE_S, RENEW_S
from steward.policy.job.places import places_of
from tests.builders.kept import NAME, J, full, n2_is_back, reserved, rival, waiting
from tests.builders.picture import T0, Picture, a_cluster, n, names


def of(kind: type[Action], picture: Picture) -> list[Action]:
    return [a for a in picture.plan().actions if isinstance(a, kind)]


def told(picture: Picture) -> list[str]:
    return [event.kind for event in picture.plan().events]


def test_nothing_is_kept_for_a_job_whose_nodes_slurm_keeps_itself() -> None:
    assert of(KeepNodes, full().lost("n2")) != []
    assert of(KeepNodes, full().change_job(expedited=True).lost("n2")) == []


def test_its_nodes_and_the_lost_ones_place_are_kept_before_that_is_marked_down() -> None:
    kinds = [a for a in full().lost("n2").plan().actions if isinstance(a, KeepNodes | DownNode)]
    first, second = kinds
    assert isinstance(first, KeepNodes)
    assert isinstance(second, DownNode)
    assert (first.name, first.nodes) == (NAME, names("n1", "n2", "n3"))
    assert first.seconds == LEASE_S
    assert "job.keep" in told(full().lost("n2"))


def test_nothing_is_kept_where_another_node_is_free_and_nobody_waits() -> None:
    picture = full().node("n4", base=NodeBase.IDLE).change_job(8, state=JobState.COMPLETED, nodes=frozenset())
    assert of(KeepNodes, picture.lost("n2")) == []


def test_they_are_kept_for_the_moment_of_the_requeue_where_somebody_waits_for_them() -> None:
    picture = full().node("n4", base=NodeBase.IDLE).change_job(8, state=JobState.COMPLETED, nodes=frozenset())
    (keep,) = of(KeepNodes, rival(picture, node_count=2).lost("n2"))
    assert keep.why.rule == "keep.contested"


@pytest.mark.parametrize("change", [{"reservation": "course"}, {"het_job_id": J}])
def test_a_job_with_a_reservation_of_its_own_or_of_several_parts_is_left_to_slurm(change: dict[str, Any]) -> None:
    assert of(KeepNodes, full().change_job(**change).lost("n2")) == []


def test_nothing_is_kept_for_a_job_that_did_not_opt_in() -> None:
    picture = full()
    assert of(KeepNodes, replace(picture, memory=replace(picture.memory, jobs={})).see(opted_in=()).lost("n2")) == []


def test_nothing_is_kept_where_steward_only_reports() -> None:
    assert of(KeepNodes, full().repair(mode=RepairMode.REPORT).lost("n2")) == []


def test_nothing_is_kept_beyond_the_share_of_the_partition() -> None:
    picture = full().resume(keep_percent=25.0).lost("n2")
    assert of(KeepNodes, picture) == []
    assert "job.keep_refused" in told(picture)


def test_a_job_that_waits_for_its_nodes_is_made_eligible_once_and_not_nudged_again() -> None:
    assert len(of(NudgeJob, waiting())) == 1
    assert of(NudgeJob, waiting().then(2).after(20)) == []


def test_the_reservation_is_a_lease_that_ends_with_the_head_and_is_renewed_by_it() -> None:
    picture = waiting()
    assert of(KeepNodes, picture.after(RENEW_S - 10)) == []
    (again,) = of(KeepNodes, picture.after(RENEW_S + 1))
    assert isinstance(again, KeepNodes)
    assert (again.nodes, again.seconds) == (names("n1", "n2", "n3"), LEASE_S)
    (last,) = of(KeepNodes, picture.then(1700).after(0))
    assert isinstance(last, KeepNodes)
    assert last.seconds <= 120


def test_the_nodes_stay_kept_while_the_replacement_is_made() -> None:
    assert of(FreeNodes, waiting().after(900)) == []


def test_when_the_replacement_is_back_they_are_freed_and_the_job_is_nudged_in_one_plan() -> None:
    picture = n2_is_back(waiting().then(60)).plan()
    kinds = [type(a) for a in picture.actions if isinstance(a, FreeNodes | NudgeJob)]
    assert kinds == [FreeNodes, NudgeJob]
    assert "job.keep_released" in [event.kind for event in picture.events]


def test_nothing_is_kept_for_a_job_that_somebody_lets_begin_later_and_it_does_not_go_first() -> None:
    picture = waiting().then(60).change_job(reason="BeginTime", eligible=waiting().now + 86_400.0)
    assert len(of(FreeNodes, picture)) == 1
    freed = n2_is_back(picture.then(1.0).see(reservations={}))
    assert [a for a in freed.actions() if isinstance(a, SetNice | NudgeJob | KeepNodes)] == []


def test_they_are_freed_when_its_user_says_that_fewer_nodes_are_enough() -> None:
    picture = waiting().then(60).change_job(node_count=2, most_nodes=3)
    assert [type(a) for a in picture.actions() if isinstance(a, FreeNodes | NudgeJob)] == [FreeNodes, NudgeJob]


def test_a_job_that_takes_fewer_nodes_does_not_wait_for_those_of_its_last_run() -> None:
    """It was submitted with `-N 1-3`, ran on three and has lost one."""
    back = reserved(full().lost("n2").then()).marked("n2").requeued(node_count=1, most_nodes=3)
    assert len(of(FreeNodes, back.node("n1", base=NodeBase.IDLE).node("n3", base=NodeBase.IDLE).then(1.2))) == 1


def test_a_job_that_asks_for_tasks_alone_needs_as_many_nodes_as_it_had() -> None:
    assert of(FreeNodes, waiting().then(60).change_job(node_count=1, is_total=True)) == []


def test_a_job_that_lost_a_node_while_it_ran_needs_as_many_as_it_asks_for() -> None:
    alone = full().change_job(nodes=names("n1", "n3"), node_count=2).then()
    for asked in (2, 3):
        back = alone.lost("n2").then(1.0).marked("n2").requeued(node_count=asked)
        places = places_of(back.seen.jobs[J], back.memory.jobs[J], Draft(back.seen, back.want, back.memory, back.now))
        assert places.need == asked


def in_two_partitions(picture: Picture) -> Picture:
    """n1 and n2 are in one, n3 and n4 in the other."""
    for name in ("n1", "n2", "n3", "n4"):
        picture = picture.node(name, partitions=frozenset({"a" if name in ("n1", "n2") else "b"}))
    return picture


def apart() -> Picture:
    """The job runs on n1 and n2; of the other partition n3 is idle, and somebody else has n4."""
    picture = in_two_partitions(a_cluster(4)).node("n4", base=NodeBase.ALLOCATED)
    for name in ("n1", "n2"):
        picture = picture.node(name, base=NodeBase.ALLOCATED)
    return picture.job(on=("n1", "n2"), partition="a").job(8, on=("n4",), user_id=1, partition="b").opted_in().then()


def apart_and_waiting(partition: str = "a,b") -> Picture:
    """n2 is down by our mark; in neither partition alone there are two nodes."""
    picture = reserved(apart().lost("n2").then()).marked("n2").requeued(node_count=2, partition=partition)
    return picture.node("n1", base=NodeBase.IDLE).then(1.2)


@pytest.mark.parametrize("partition", ["a", "a,b", "b,a"])
def test_nodes_of_two_partitions_are_not_enough_for_a_job_that_needs_them_in_one(partition: str) -> None:
    assert of(FreeNodes, apart_and_waiting(partition)) == []
    assert of(FreeNodes, apart_and_waiting(partition).then(30)) == []


def test_they_are_freed_when_the_other_partition_has_enough() -> None:
    picture = apart_and_waiting().change_job(8, state=JobState.COMPLETED, nodes=frozenset())
    assert [type(a) for a in picture.node("n4", base=NodeBase.IDLE).actions()[:1]] == [FreeNodes]


def test_a_job_that_finds_too_few_in_each_partition_is_no_rival_for_them() -> None:
    picture = rival(apart_and_waiting(), node_count=2, partition="a,b")
    later = picture.then(picture.want.resume.keep_others_s + 1)
    assert of(FreeNodes, later) == []
    assert of(FreeNodes, later.change_job(9, node_count=1)) != []


def test_a_partition_that_would_be_kept_beyond_the_share_is_not_helped_by_another() -> None:
    picture = apart().resume(keep_percent=60.0).change_job(partition="a,b").lost("n2")
    assert of(KeepNodes, picture.resume(keep_percent=49.0)) == []
    assert of(KeepNodes, picture) != []


def test_the_job_is_put_before_those_that_wait_then() -> None:
    picture = rival(waiting().then(60).change_job(priority=100, nice=5), priority=300)
    decided = n2_is_back(picture).plan()
    (nice,) = [a for a in decided.actions if isinstance(a, SetNice)]
    assert (nice.job, nice.nice) == (J, 5 - 201)
    order = [type(a) for a in decided.actions if isinstance(a, FreeNodes | NudgeJob | SetNice)]
    assert order == [SetNice, FreeNodes, NudgeJob]  # Slurm's scheduler may run between any two of them


def test_it_is_not_put_before_another_job_that_lost_its_place_to_a_fault() -> None:
    """Of a thousand that lose theirs at once each would be put before all others."""
    picture = n2_is_back(rival(waiting().then(60).change_job(priority=100), priority=300))
    jobs = picture.memory.jobs
    both = replace(picture.memory, jobs={**jobs, JobId(9): replace(jobs[J], id=JobId(9), kept=None)})
    assert of(SetNice, picture) != []
    assert of(SetNice, replace(picture, memory=both)) == []


@pytest.mark.parametrize(("own", "needed"), [(0, -2), (5, -2), (-1, -3)])
def test_where_slurm_gives_every_job_its_least_priority_a_job_is_put_two_steps_higher(own: int, needed: int) -> None:
    """26.05, no weights: nice -1 leaves the priority at 1, -2 makes it 2."""
    picture = rival(waiting().then(60).change_job(priority=1, nice=own), priority=1)
    assert [a.nice for a in n2_is_back(picture).actions() if isinstance(a, SetNice)] == [needed]


def test_its_own_nice_value_is_set_back_when_it_runs_and_only_ours_is_undone() -> None:
    picture = n2_is_back(rival(waiting().then(60).change_job(priority=100, nice=5), priority=300)).then(1)
    runs = picture.change_job(state=JobState.RUNNING, nodes=names("n1", "n2", "n3"), started=picture.now)
    (back,) = of(SetNice, runs.change_job(nice=-196))
    assert isinstance(back, SetNice)
    assert back.nice == 5
    assert of(SetNice, runs.change_job(nice=0)) == []


def test_a_job_that_does_not_start_in_time_waits_for_its_turn_again() -> None:
    picture = n2_is_back(rival(waiting().then(60).change_job(priority=100), priority=300)).then(61)
    (back,) = of(SetNice, picture.change_job(nice=-201))
    assert isinstance(back, SetNice)
    assert back.nice == 0
    assert of(SetNice, picture.then(5).change_job(nice=0).then(60)) == []


def test_a_job_that_was_held_meanwhile_keeps_its_nice_value_which_would_start_it() -> None:
    picture = n2_is_back(rival(waiting().then(60).change_job(priority=100), priority=300)).then(61)
    held = picture.change_job(nice=-201, priority=0)
    assert of(SetNice, held) == []
    assert of(SetNice, held.then(30).change_job(priority=301)) != []


def test_at_the_bound_they_are_freed_and_not_kept_again() -> None:
    late = waiting().after(1801)
    (free,) = of(FreeNodes, late)
    assert isinstance(free, FreeNodes)
    assert "resume.keep_s" in free.why.text
    assert of(KeepNodes, late.then(1).see(reservations={})) == []


def test_another_job_that_could_use_them_waits_no_longer_than_allowed() -> None:
    picture = rival(waiting().then(10))
    assert of(FreeNodes, picture.after(590)) == []
    (free,) = of(FreeNodes, picture.after(601))
    assert isinstance(free, FreeNodes)
    assert "job 9" in free.why.text


def test_a_job_that_could_not_use_them_does_not_matter() -> None:
    assert of(FreeNodes, rival(waiting().then(10), node_count=4).after(700)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"state": JobState.CANCELLED, "ended": T0},
        {"reason": "JobHeldUser"},
        {"state": JobState.RUNNING, "started": T0 + 50, "nodes": names("n1")},
    ],
)
def test_they_are_freed_when_the_job_is_over_held_or_running(change: dict[str, Any]) -> None:
    assert len(of(FreeNodes, waiting().change_job(**change))) == 1


def test_they_are_freed_when_the_case_is_held_for_a_person() -> None:
    picture = waiting()
    cases = {id: replace(case, step=CaseStep.HELD) for id, case in picture.memory.cases.items()}
    held = replace(picture, memory=replace(picture.memory, cases=cases))
    assert len(of(FreeNodes, held)) == 1


def test_they_are_freed_when_the_job_goes_on_without_the_lost_node() -> None:
    goes_on = reserved(full().lost("n2").then()).change_job(nodes=names("n1", "n3")).after(GOES_ON_S + 1)
    assert len(of(FreeNodes, goes_on)) == 1


def test_a_refusal_of_slurm_or_somebodys_deletion_leaves_the_job_to_its_nudges() -> None:
    refused = waiting().see(failures={"keep:7:0": "Requested nodes are busy"})
    assert len(of(FreeNodes, refused)) == 1
    deleted = waiting().then(10)
    deleted = deleted.see(reservations={}, reservations_at=deleted.now)
    assert len(of(FreeNodes, deleted)) == 1


def test_what_nobody_needs_is_freed_and_what_is_not_ours_is_left() -> None:
    found = {name: Reservation(name=name, nodes=names("n1"), starts=T0, ends=T0 + 900) for name in
             ("steward-keep-77", "maintenance", "steward-keep-x", "steward-deep-d9")}  # fmt: skip
    frees = of(FreeNodes, a_cluster().see(reservations=found, reservations_at=T0))
    assert [a.name for a in frees if isinstance(a, FreeNodes)] == ["steward-keep-77"]


def test_a_head_that_hears_no_agent_frees_nothing_of_which_it_knows_nothing() -> None:
    """Beside another head, to which all agents speak, it would free what that one keeps for its jobs, checks and groups
    before either is noticed."""
    found = {
        name: Reservation(name=name, nodes=names("n1"), starts=T0, ends=T0 + 900)
        for name in ("steward-keep-77", "steward-deep-d9-1", "steward-hot-g")
    }
    beside = a_cluster().see(reservations=found, reservations_at=T0)
    freed = [one.name for one in beside.plan().actions if isinstance(one, FreeNodes | ReleaseNodes)]
    assert sorted(freed) == sorted(found)
    alone = beside.see(agents={})
    assert not [one for one in alone.plan().actions if isinstance(one, FreeNodes | ReleaseNodes)]


def test_what_is_kept_survives_a_restart_of_the_head() -> None:
    """Memory is all that it takes: nothing is freed, nothing asked for again."""
    picture = waiting()
    assert of(FreeNodes, picture) + of(KeepNodes, picture) == []


def test_nodes_in_reservations_of_others_are_not_kept() -> None:
    course = Reservation(name="course", nodes=frozenset({n("n1")}), starts=T0 + 600, ends=T0 + 9000)
    picture = full().see(reservations={"course": course}, reservations_at=T0).lost("n2")
    (keep,) = of(KeepNodes, picture)
    assert isinstance(keep, KeepNodes)
    assert keep.nodes == names("n2", "n3")


def taken() -> Picture:
    """The head was away: Slurm took n2 for dead and put the job back, and somebody else's job began on n1."""
    away = full().lost("n2").node("n2", base=NodeBase.DOWN).requeued(node_count=3).node("n3", base=NodeBase.IDLE)
    return away.job(9, on=("n1",), user_id=1, started=away.now - 5)


def test_a_node_on_which_somebody_else_runs_already_is_not_the_jobs_any_more() -> None:
    (keep,) = of(KeepNodes, taken())
    assert isinstance(keep, KeepNodes)
    assert keep.nodes == names("n2", "n3")


def test_nodes_are_not_kept_on_for_a_job_whose_other_node_is_somebody_elses_now() -> None:
    picture = n2_is_back(reserved(taken().then()).then(60))
    assert len(of(FreeNodes, picture)) == 1
    assert len(of(NudgeJob, picture)) == 1
