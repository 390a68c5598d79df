"""Idle, verified nodes of a group are kept for resumed jobs, let out for one that lacks nodes, and refilled."""

from dataclasses import replace
from typing import Any

from steward.model.action import FreeNodes, KeepNodes, NudgeJob
from steward.model.agent_action import Action
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.reservation import Reservation, hot_name
from steward.model.setting_types import RepairMode
from steward.policy.facts.loans import LENT_FOR_S
from steward.policy.groups.hot_spares import LEASE_S, RENEW_S
from tests.builders.picture import T0, Picture, a_cluster, names

J = JobId(7)
HOT = hot_name("main")


def a_site(count: int = 1, nodes: int = 4, **resume: Any) -> Picture:
    """n1..n3 run a job, the others are idle; reservations were looked at and there is none."""
    picture = a_cluster(nodes).resume(hot_spares=count, **resume).see(reservations_at=T0).job()
    for name in ("n1", "n2", "n3"):
        picture = picture.node(name, base=NodeBase.ALLOCATED)
    return picture.opted_in()


def kept(picture: Picture, *nodes: str) -> Picture:
    found = Reservation(name=HOT, nodes=names(*nodes), starts=picture.now, ends=picture.now + LEASE_S)
    return picture.see(reservations={HOT: found}, reservations_at=picture.now)


def waits(picture: Picture, **fields: Any) -> Picture:
    default = {"state": JobState.PENDING, "node_count": 9, "user_id": 1, "started": None, "reason": "Resources"}
    return picture.job(9, on=(), **{**default, "eligible": picture.now, **fields})


def lacks_n2(picture: Picture) -> Picture:
    """n2 is down by our mark, the job is back in the queue and its other nodes are idle."""
    picture = picture.then().lost("n2").then().marked("n2").requeued(node_count=3)
    for name in ("n1", "n3"):
        picture = picture.node(name, base=NodeBase.IDLE)
    return picture.then(1.2)


def wishes(picture: Picture) -> list[Action]:
    return [a for a in picture.plan().actions if isinstance(a, KeepNodes | FreeNodes | NudgeJob)]


def hot_nodes(picture: Picture) -> list[frozenset[str]]:
    return [frozenset(a.nodes) for a in wishes(picture) if isinstance(a, KeepNodes) and a.name == HOT]


def test_as_many_idle_nodes_of_a_group_are_kept_as_the_site_says() -> None:
    assert hot_nodes(a_site(1, nodes=6)) == [{"n4"}]
    assert hot_nodes(a_site(2, nodes=6)) == [{"n4", "n5"}]
    assert hot_nodes(a_site(0, nodes=6)) == []


def test_a_group_may_have_a_number_of_its_own() -> None:
    picture = a_site(0)
    assert hot_nodes(replace(picture, want=replace(picture.want, hot_spares={"main": 1}))) == [{"n4"}]


def test_what_is_kept_already_stays_and_its_lease_is_renewed() -> None:
    picture = kept(a_site(), "n4").then()
    assert hot_nodes(picture) == []
    assert hot_nodes(picture.after(RENEW_S + 1)) == [{"n4"}]


def test_a_lease_is_renewed_in_time_although_nothing_else_happens() -> None:
    picture = kept(a_site(), "n4").then()
    wake_at = picture.plan().wake_at
    assert wake_at is not None
    assert wake_at <= picture.now + RENEW_S + 1


def test_busy_nodes_and_nodes_that_nobody_speaks_for_are_not_taken() -> None:
    assert hot_nodes(a_site().node("n4", base=NodeBase.ALLOCATED)) == []
    assert hot_nodes(a_site().agent_lost("n4")) == []


def test_a_hot_spare_that_becomes_faulty_leaves_and_another_takes_its_place() -> None:
    picture = kept(a_site(nodes=5), "n4").then().failing("n4")
    assert hot_nodes(picture.then()) + hot_nodes(picture) == [{"n5"}]


def test_nothing_is_taken_while_users_jobs_wait_unless_the_site_says_so() -> None:
    assert hot_nodes(waits(a_site())) == []
    assert hot_nodes(waits(a_site(hot_spares_while_waiting=True))) == [{"n4"}]


def test_nodes_of_somebodys_reservation_are_not_taken() -> None:
    course = Reservation(name="course", nodes=names("n4"), starts=T0 + 9, ends=T0 + 99)
    assert hot_nodes(a_site().see(reservations={"course": course})) == []


def test_where_steward_only_reports_none_are_kept_and_old_ones_are_freed() -> None:
    assert hot_nodes(a_site().repair(mode=RepairMode.REPORT)) == []
    old = kept(a_site().repair(mode=RepairMode.REPORT), "n4")
    assert [a.name for a in wishes(old) if isinstance(a, FreeNodes)] == [HOT]


def test_a_resumed_job_that_lacks_a_node_gets_a_hot_spare_and_is_nudged_after() -> None:
    picture = lacks_n2(kept(a_site(), "n4"))
    freed, nudge = wishes(picture)
    assert isinstance(freed, FreeNodes)
    assert freed.name == HOT
    assert isinstance(nudge, NudgeJob)
    assert picture.plan().memory.jobs[J].lent is not None
    assert "job.hot_spare" in [event.kind for event in picture.plan().events]


def test_none_is_let_out_for_a_job_in_a_reservation_that_has_none_of_them() -> None:
    picture = lacks_n2(kept(a_site(3, nodes=6), "n4", "n5", "n6")).change_job(reservation="team")
    team = Reservation(name="team", nodes=names("n1", "n2", "n3"), ends=T0 + 9999)
    picture = picture.see(reservations={**picture.seen.reservations, "team": team})
    assert picture.plan().memory.jobs[J].lent is None


def test_no_more_of_them_are_let_out_than_the_job_lacks() -> None:
    assert hot_nodes(lacks_n2(kept(a_site(2, nodes=5), "n4", "n5"))) == [{"n5"}]


def test_what_was_let_out_is_not_taken_back_while_the_job_waits_and_is_refilled_when_it_runs() -> None:
    picture = lacks_n2(kept(a_site(nodes=5), "n4")).then(2).see(reservations={})
    picture = picture.see(reservations_at=picture.now)
    assert hot_nodes(picture) + hot_nodes(picture.after(LENT_FOR_S + 1)) == []
    runs = picture.change_job(state=JobState.RUNNING, nodes=names("n1", "n3", "n4"), started=picture.now)
    for name in ("n1", "n3", "n4"):
        runs = runs.node(name, base=NodeBase.ALLOCATED)
    assert hot_nodes(runs) == [{"n5"}]


def test_a_job_that_is_not_resumed_gets_none() -> None:
    picture = kept(a_site(), "n4").then()
    assert [a for a in wishes(waits(picture, node_count=1)) if isinstance(a, FreeNodes)] == []
