"""A requeued job is kept off the culprits, as long as it can do without them."""

from dataclasses import replace

from steward.model.action import RequeueJob
from steward.model.ask import AskKind
from steward.model.case import CaseStep
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.reservation import Reservation
from steward.model.resume import Decision
from tests.builders.picture import T0, Picture, a_cluster, names
from tests.builders.requeued import by_slurm, nudges
from tests.builders.resumed import memory


def test_the_users_own_excludes_are_kept() -> None:
    start = a_cluster().job(excluded=names("n6")).opted_in().then().lost("n2").then().marked("n2").requeued()
    (nudge,) = nudges(start.then(1.1))
    assert nudge.exclude == names("n2", "n6")


def repaired(picture: Picture) -> Picture:
    """n2 is back in service with a new machine."""
    cases = {
        id: replace(case, step=CaseStep.CLOSED, replaced=picture.now, closed=picture.now)
        for id, case in picture.memory.cases.items()
    }
    healthy = a_cluster().seen
    mended = picture.see(nodes={k: healthy.nodes[k] for k in picture.seen.nodes}, agents=healthy.agents)
    return replace(mended, memory=replace(picture.memory, cases=cases))


def excised(count: int = 6) -> Picture:
    """n2 died under a job with --no-kill, which ran on without it and was put back into the queue later."""
    hurt = a_cluster(count).job().opted_in().then().lost("n2").then().marked("n2").then(1)
    alone = hurt.change_job(nodes=names("n1", "n3")).then(1)
    return repaired(alone.requeued()).then(1.1)


def test_a_job_is_kept_off_a_node_it_lost_while_running_until_slurm_has_told_it_all_it_had_to() -> None:
    picture = excised().change_job(excluded=names("n2"))
    assert [nudge.exclude for nudge in nudges(picture)] == [names("n2")]
    assert [nudge.exclude for nudge in nudges(picture.then(91))] == [frozenset()]


def test_what_a_job_needs_is_what_it_asks_for_not_what_it_had_left() -> None:
    (nudge,) = nudges(excised(count=3).change_job(node_count=3))
    assert nudge.exclude == frozenset()
    (nudge,) = nudges(excised(count=3).change_job(node_count=2))
    assert nudge.exclude == names("n2")


def test_a_job_that_cannot_do_without_that_node_gets_it_all_the_same() -> None:
    (nudge,) = nudges(excised(count=3))
    assert nudge.exclude == frozenset()


def test_a_run_that_ends_early_on_such_a_node_may_have_been_ended_by_mistake_and_is_resumed() -> None:
    back = excised(count=3)
    again = back.change_job(state=JobState.RUNNING, nodes=names("n1", "n2", "n3"), batch_host="n1", started=back.now)
    ended = again.then(30).ask(AskKind.BATCH, restart=1)
    (requeue,) = [action for action in ended.plan().actions if isinstance(action, RequeueJob)]
    assert any("may have sent that run's end to the new machine" in line for line in requeue.why.evidence)
    late = again.then(30).then(91).ask(AskKind.BATCH, restart=1)
    assert [action for action in late.plan().actions if isinstance(action, RequeueJob)] == []


def test_a_job_that_needs_every_other_node_is_not_made_impossible() -> None:
    (nudge,) = nudges(by_slurm(count=3))
    assert nudge.exclude == frozenset()


def test_a_job_that_takes_fewer_nodes_than_it_had_is_kept_off_the_bad_one() -> None:
    """It was submitted with `-N 1-3`."""
    (nudge,) = nudges(by_slurm(count=3).change_job(node_count=1, most_nodes=3))
    assert nudge.exclude == names("n2")


def test_nodes_of_two_partitions_do_not_make_up_for_one_that_a_job_is_kept_off() -> None:
    job = by_slurm(count=4).change_job(partition="main,small").node("n4", partitions=frozenset({"small"}))
    (nudge,) = nudges(job)
    assert nudge.exclude == frozenset()
    (nudge,) = nudges(job.node("n4", partitions=frozenset({"main"})))
    assert nudge.exclude == names("n2")


def test_a_job_that_needs_every_node_of_its_reservation_is_not_made_impossible() -> None:
    team = Reservation(name="team", nodes=names("n1", "n2", "n3"), ends=T0 + 9999)
    job = by_slurm().see(reservations={"team": team}).change_job(reservation="team")
    (nudge,) = nudges(job)
    assert nudge.exclude == frozenset()
    (nudge,) = nudges(job.see(reservations={"team": replace(team, nodes=names("n1", "n2", "n3", "n4"))}))
    assert nudge.exclude == names("n2")


def test_excludes_that_slurm_cannot_meet_are_taken_back_and_stay_so() -> None:
    picture = by_slurm().then(1).change_job(excluded=names("n2"), reason="BadConstraints").after(1)
    assert [nudge.exclude for nudge in nudges(picture)] == [frozenset()]
    later = picture.then(1).change_job(excluded=frozenset(), reason="BeginTime").after(5)
    assert [nudge.exclude for nudge in nudges(later)] == [frozenset()]


def test_a_repaired_node_is_no_longer_excluded() -> None:
    picture = by_slurm().then(1).change_job(excluded=names("n2"), reason="Resources")
    back = repaired(picture).then(10)
    assert [nudge.exclude for nudge in nudges(back)] == [frozenset()]


def test_a_culprit_that_slurm_has_back_idle_but_steward_still_repairs_stays_excluded() -> None:
    picture = by_slurm().then(1).node("n2", base=NodeBase.IDLE)
    assert [nudge.exclude for nudge in nudges(picture)] == [names("n2")]


def test_a_job_without_a_replacement_for_its_node_is_said_to_wait_for_one() -> None:
    few = a_cluster(3).job().opted_in().then().ask(AskKind.BATCH).lost("n2").then().marked("n2").then(3.1)
    assert [attempt.decision for attempt in memory(few.change_job(nodes=names("n1", "n3"))).attempts] == [Decision.WAIT]
