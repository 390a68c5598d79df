"""The other nodes of a lost run let go of it when Slurm waits for them, and only then."""

import pytest

from steward.model.agent_action import LetGo
from steward.model.health import Severity
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.observed import Freshness
from steward.views.explain import explain_job
from tests.builders.picture import T0, Picture, a_cluster, names

COMPLETING = frozenset({"COMPLETING"})


def orders(picture: Picture) -> list[LetGo]:
    return [a for a in picture.plan().actions if isinstance(a, LetGo)]


def cleans_up(picture: Picture, *nodes: str) -> Picture:
    """Slurm ends the job's run, and these nodes are not done yet."""
    for name in nodes:
        picture = picture.node(name, flags=COMPLETING)
    return picture.requeued(flags=COMPLETING)


def lost_batch_host(opted: bool = True) -> Picture:
    """n1 died under a job on n1 to n3, is marked, and Slurm has just begun to end the job's run."""
    picture = a_cluster().job()
    picture = picture.opted_in() if opted else picture
    return cleans_up(picture.then().lost("n1").then().marked("n1"), "n2", "n3").then()


def test_the_other_nodes_are_told_once_they_take_longer_than_healthy_ones() -> None:
    begins = lost_batch_host()
    assert orders(begins.after(0.2)) == []
    (order,) = orders(begins.after(0.31))
    assert (order.job, order.nodes, order.restart, order.before) == (7, names("n2", "n3"), 0, T0)
    assert "waits there for n1 (case " in order.why.text


def test_the_head_looks_again_when_it_is_time() -> None:
    wake_at = lost_batch_host().plan().wake_at
    assert wake_at is not None
    assert wake_at <= T0 + 0.31


def test_it_is_said_once_a_second_for_a_minute_and_a_half() -> None:
    picture, count = lost_batch_host(), 0
    for _ in range(400):
        picture = picture.then(0.5)
        count += len(orders(picture))
    assert 80 <= count <= 90


def test_only_nodes_that_slurm_waits_for_and_whose_agents_are_there_are_told() -> None:
    late = lost_batch_host().after(0.5)
    (order,) = orders(late.agent("n2", connected=False, lost_at=T0))
    assert order.nodes == names("n3")
    assert orders(late.node("n2", flags=frozenset()).node("n3", flags=frozenset())) == []


def test_what_began_after_the_end_of_the_lost_run_is_out_of_reach() -> None:
    (order,) = orders(lost_batch_host().then(30.0))
    assert order.before == T0


def test_a_job_that_hides_its_state_while_it_cleans_up_is_helped_too() -> None:
    assert orders(lost_batch_host().change_job(state=JobState.UNKNOWN, restarts=1).after(0.5)) != []


def test_a_job_that_did_not_opt_in_is_left_to_slurm() -> None:
    assert orders(lost_batch_host(opted=False).after(0.5)) == []


def test_a_run_that_lost_no_node_cleans_up_as_it_likes() -> None:
    picture = cleans_up(a_cluster().job().opted_in().then(), "n1", "n2", "n3").then(0.5)
    assert orders(picture) == []


def test_a_node_that_is_only_drained_is_no_reason() -> None:
    picture = a_cluster().job().opted_in().then().failing("n1", Severity.DEGRADED).then().marked("n1")
    assert orders(cleans_up(picture, "n2", "n3").then(0.5)) == []


def test_a_node_that_the_run_lost_long_before_its_end_is_no_reason() -> None:
    picture = a_cluster().job(batch_host="n2").opted_in().then().lost("n1").then().marked("n1").then(600.0)
    assert orders(cleans_up(picture, "n2", "n3").then(0.5)) == []


def test_a_running_job_is_never_touched() -> None:
    running = lost_batch_host().change_job(state=JobState.RUNNING, flags=frozenset(), nodes=names("n2", "n3"))
    assert orders(running.after(5.0)) == []


def test_the_next_run_of_the_job_is_counted_anew() -> None:
    again = lost_batch_host().then(1.0).node("n1", base=NodeBase.IDLE, flags=frozenset(), reason=None)
    again = again.job(on=("n2", "n3", "n4"), restarts=1, started=again.now).then(300.0)
    again = again.lost("n2").then().marked("n2")
    begins = cleans_up(again, "n3", "n4").then()
    assert orders(begins.after(0.2)) == []
    (order,) = orders(begins.after(0.4))
    assert (order.nodes, order.restart, order.before) == (names("n3", "n4"), 1, again.now)


@pytest.mark.parametrize("freshness", [Freshness.OLD, Freshness.ABSENT])
def test_nothing_is_ended_on_an_old_picture(freshness: Freshness) -> None:
    assert orders(lost_batch_host().after(0.5).see(slurm=freshness)) == []


def slow(picture: Picture) -> list[str]:
    return [event.text for event in picture.plan().events if event.kind == "job.cleans_up"]


def requeued_and_cleaning() -> Picture:
    """Slurm requeued the job; n2 is not done with its last run."""
    return cleans_up(a_cluster().job().opted_in().then(), "n2").then()


def test_a_node_that_slurm_waits_for_is_named_once_with_the_cause_and_later_with_the_way_out() -> None:
    picture = requeued_and_cleaning()
    assert slow(picture.after(9.0)) == []
    later = picture.after(11.0)
    (said,) = slow(later)
    assert "waits for n2 to clean up (n2: its Prolog or Epilog runs, or a process of the job does not end)" in said
    assert slow(later.then(5.0)) == [], "once"
    (warned,) = slow(later.then(5.0).after(300.0))
    assert "scontrol update nodename=n2 state=down" in warned
    explained = explain_job(JobId(7), later.seen, later.want, later.then().memory, later.now)
    assert any("waits for n2 to clean up" in line for line in explained)


def test_a_process_that_cannot_be_killed_is_named_as_the_cause() -> None:
    stuck = {"check": "os.dstate", "text": "python3 (700) in state D for 400 s", "event": False}
    picture = requeued_and_cleaning().failing("n2", Severity.INFO, **stuck)
    (said,) = slow(picture.after(11.0))
    assert "n2: a process that cannot be killed: python3 (700)" in said


def test_a_run_that_cleaned_up_in_time_is_not_mentioned() -> None:
    picture = requeued_and_cleaning().then(5.0).node("n2", flags=frozenset()).change_job(flags=frozenset())
    assert slow(picture.after(30.0)) == []
