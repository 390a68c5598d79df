"""Jobs that are back in the queue are nudged until they run, kept off the culprits, and never past a person's hold."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from steward.model.action import RequeueJob
from steward.model.agent_action import Action
from steward.model.ask import AskKind, OptedIn
from steward.model.case import CaseStep
from steward.model.job import JobState
from steward.model.node import NodeBase
from steward.model.reservation import Reservation
from steward.views.explain import explain_job
from tests.builders.picture import ON, T0, USER, Picture, a_cluster, names
from tests.builders.requeued import J, by_slurm, nudges


def test_a_job_that_slurm_requeued_is_nudged_at_once_and_kept_off_the_dead_node() -> None:
    (nudge,) = nudges(by_slurm())
    assert (nudge.job, nudge.exclude, nudge.release) == (J, names("n2"), False)


def test_nudges_wait_until_the_job_left_completing() -> None:
    assert nudges(by_slurm().change_job(flags=frozenset({"COMPLETING"}))) == []


def test_a_run_that_was_seen_to_clean_up_costs_no_second_more_though_slurm_counts_the_next_one_already() -> None:
    """Credentials are revoked up to the second in which the end began; `restarts` grows when the job is back."""
    marked = a_cluster().job().opted_in().then().lost("n2").then().marked("n2")
    cleaning = marked.change_job(state=JobState.UNKNOWN, flags=frozenset({"COMPLETING"})).then(1.1)
    back = cleaning.requeued(flags=frozenset())
    assert len(nudges(back)) == 1
    assert nudges(marked.then(1.1).requeued()) == [], "when the end began is not known: before it was seen over"


def test_nudges_come_every_second_at_first_and_then_more_slowly() -> None:
    picture, times = by_slurm(), []
    start = picture.now
    while picture.now < start + 30:
        if nudges(picture):
            times.append(round(picture.now - start, 1))
        picture = picture.then(0.1)
    gaps = [round(b - a, 1) for a, b in pairwise(times)]
    assert gaps[:3] == pytest.approx([1.0, 1.0, 1.0], abs=0.11)
    assert 4.0 <= max(gaps) <= 5.1


def test_a_job_that_slurm_has_looked_at_is_nudged_again_only_when_something_changed() -> None:
    """An update of the job costs its age in the queue, and Slurm sees by itself when nodes become free."""
    first = by_slurm()
    assert len(nudges(first)) == 1
    looked = first.then(1.1).change_job(reason="Resources", excluded=names("n2"))
    for _ in range(20):
        looked = looked.then(1.1)
        assert nudges(looked) == []
    assert len(nudges(looked.change_job(excluded=frozenset()))) == 1, "somebody replaced its exclude list"
    assert len(nudges(looked.change_job(reason="BeginTime"))) == 1


def test_later_only_a_job_that_slurm_would_not_look_at_is_nudged() -> None:
    waits = by_slurm().change_job(reason="Resources", excluded=names("n2")).wait(200)
    assert nudges(waits.after(40)) == []
    assert nudges(waits.change_job(reason="BeginTime").after(40)) != []


def test_a_job_that_slurm_starts_before_every_other_is_left_to_it_until_it_runs() -> None:
    picture = by_slurm().change_job(flags=frozenset({"EXPEDITING"}))
    assert nudges(picture) == []
    assert len(nudges(picture.change_job(flags=frozenset()))) == 1


def test_a_requeue_that_was_over_before_we_looked_costs_a_resume_as_any_other() -> None:
    hurt = a_cluster().job().opted_in().then().lost("n2").then().marked("n2")
    again = hurt.requeued().change_job(state=JobState.RUNNING, nodes=names("n1", "n3", "n4"), started=hurt.now)
    decided = again.plan()
    mem = decided.memory.jobs[J]
    assert (mem.resumes, mem.restarts, mem.pending_from) == (1, 1, None)
    assert [(a.why.rule, a.running) for a in mem.attempts] == [("resume.by_slurm", again.now)]
    assert {"job.requeued", "job.resumed"} <= {event.kind for event in decided.events}
    assert again.then().plan().memory.jobs[J].resumes == 1


def test_a_failed_job_that_slurm_requeues_held_waits_for_its_owner_and_is_not_called_over() -> None:
    failed = a_cluster().job().opted_in().then(100).change_job(state=JobState.FAILED, ended=a_cluster().now + 95)
    over = failed.wait(400)
    assert over.memory.jobs[J].ended is not None
    held = over.requeued(submitted=over.now + 1, flags=frozenset({"REQUEUE_HOLD"}), reason="JobHeldUser").then(5)
    assert nudges(held) == []
    assert held.memory.jobs[J].ended is None


def put_back_by_its_user() -> Picture:
    """Excluded from n2 since that died, it failed by itself and was told to stop. Its user requeued it, for which Slurm
    sets a new time of submission; it runs again and its shim speaks anew."""
    run = by_slurm().then(1).change_job(state=JobState.RUNNING, nodes=names("n1", "n3", "n4"), batch_host="n1")
    run = run.change_job(started=run.now, excluded=names("n2"), reason="").then(600).ask(AskKind.BATCH, restart=1)
    told = run.then(0.1).checked("n1", "n3", "n4").then(8).checked("n1", "n3", "n4").then(8).see(asks=())
    over = told.change_job(state=JobState.FAILED, ended=told.now, exit_status=256).then(60)
    back = over.requeued(submitted=over.now - 1).then(2).then(3)
    again = back.change_job(state=JobState.RUNNING, nodes=names("n1", "n3", "n4"), started=back.now, reason="")
    return again.see(opted_in=(OptedIn(job=J, uid=USER, mode=ON, restart=2, at=again.now),)).then(1)


def test_a_job_that_its_user_requeued_after_its_end_is_the_same_job() -> None:
    mem = put_back_by_its_user().memory.jobs[J]
    assert (mem.excluded, mem.excluded_by_user) == (names("n2"), frozenset())
    assert (mem.resumes, mem.restarts, mem.ended) == (1, 2, None)


def test_it_is_remembered_for_as_long_as_it_waits() -> None:
    over = failed().wait(400)
    waits = over.requeued(submitted=over.now + 1).see(opted_in=()).then(5).change_job(reason="Resources")
    assert waits.then(90_000).then(1).memory.jobs.keys() == {J}


def test_a_new_job_with_the_number_of_one_that_is_over_is_another() -> None:
    over = by_slurm().change_job(state=JobState.CANCELLED).then(60)
    new = over.job(submitted=over.now + 1, started=over.now + 2, restarts=0).then(5)
    assert (new.memory.jobs[J].resumes, new.memory.jobs[J].attempts) == (0, ())


def test_a_running_job_is_not_nudged_and_the_resume_is_told() -> None:
    picture = by_slurm().then(0.5).change_job(state=JobState.RUNNING, nodes=names("n1", "n3", "n4"), started=1.0)
    decided = picture.plan()
    assert nudges(picture) == []
    assert "job.resumed" in [event.kind for event in decided.events]
    assert decided.memory.jobs[J].attempts[-1].running == picture.now


def shown_again() -> Picture:
    """slurmctld was killed before it had saved the requeue, or another took over: the job runs as if nothing had
    been."""
    before = a_cluster().job().opted_in().then()
    shown = before.seen.jobs[J]
    picture = before.lost("n2").then().marked("n2").requeued().then(1.1).then(0.5)
    old = {name: getattr(shown, name) for name in ("state", "nodes", "started", "restarts", "reason")}
    return picture.change_job(**old)


def test_a_run_that_slurmctld_shows_again_because_it_lost_its_newest_state_is_told_once_and_put_back() -> None:
    picture = shown_again()
    decided = picture.plan()
    (event,) = [event for event in decided.events if event.kind == "job.resumed"]
    assert "lost its newest state" in event.text
    (requeue,) = [action for action in decided.actions if isinstance(action, RequeueJob)]
    assert (requeue.job, requeue.restart, requeue.exclude) == (J, 0, names("n2"))
    later = picture.then(0.5)
    assert later.plan().events == ()
    back = later.requeued().then(1.1)
    mem = back.memory.jobs[J]
    assert (mem.resumes, len(mem.attempts), len(nudges(back))) == (1, 1, 1), "it costs no other resume"


def test_so_is_one_whose_next_run_had_begun_already() -> None:
    before = a_cluster().job().opted_in().then()
    shown = before.seen.jobs[J]
    waits = before.lost("n2").then().marked("n2").requeued().then(1.1)
    again = waits.change_job(state=JobState.RUNNING, nodes=names("n1", "n3", "n4"), started=waits.now).then(1)
    assert again.memory.jobs[J].restarts == 1
    other = again.change_job(nodes=shown.nodes, started=again.now, submitted=again.now, restarts=0)
    assert other.plan().actions == (), "slurmctld lost all it knew, and gave the number to another job"
    decided = again.change_job(nodes=shown.nodes, started=shown.started, restarts=0).plan()
    assert ["lost its newest state" in event.text for event in decided.events] == [True]
    (requeue,) = [action for action in decided.actions if isinstance(action, RequeueJob)]
    assert requeue.restart == 0
    assert decided.memory.jobs[J].resumes == 1


def test_a_persons_requeue_that_slurmctld_forgot_is_not_done_for_him() -> None:
    before = a_cluster().job().opted_in().then()
    shown = before.seen.jobs[J]
    picture = (
        before.requeued().then(1.1).change_job(state=shown.state, nodes=shown.nodes, started=shown.started, restarts=0)
    )
    assert [action for action in picture.plan().actions if isinstance(action, RequeueJob)] == []


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin", "job requeued in held state"])
def test_a_persons_hold_is_respected_and_explained(reason: str) -> None:
    held = by_slurm().change_job(reason=reason)
    assert nudges(held) == []
    told = str(explain_job(J, held.seen, held.want, held.plan().memory, held.now))
    assert f"is held ({reason}): it stays where it is until it is released" in told
    assert "nudged" not in told


@pytest.mark.parametrize("reason", ["JobHoldMaxRequeue", "launch_failed_requeued_held"])
def test_a_hold_that_slurm_set_by_itself_is_released(reason: str) -> None:
    assert [nudge.release for nudge in nudges(by_slurm().change_job(reason=reason))] == [True]


def later(picture: Picture, delay_s: float) -> Picture:
    """Somebody says `scontrol update starttime=now+...` of a job that was nudged before."""
    return picture.then(1.0).change_job(reason="BeginTime", eligible=picture.now + 1.0 + delay_s)


@pytest.mark.parametrize("wait_s", [10.0, 300.0])
def test_a_job_that_somebody_lets_begin_later_is_left_alone_until_then_and_people_are_told(wait_s: float) -> None:
    put_off = later(by_slurm(), 86_400.0)
    assert [e.kind for e in put_off.plan().events if e.job == J] == ["job.begins_later"]
    assert nudges(put_off.wait(wait_s)) == []
    told = str(explain_job(J, put_off.seen, put_off.want, put_off.plan().memory, put_off.now))
    assert "was given a later start time (scontrol update starttime): it is left alone until then" in told
    assert len(nudges(put_off.then(wait_s).change_job(reason="Resources", eligible=put_off.now))) == 1


def test_it_is_left_alone_for_a_week() -> None:
    week = later(by_slurm(), 7 * 86_400.0)
    assert [nudges(week := week.then(43_200.0)) for _ in range(13)] == [[]] * 13


def test_slurms_own_delay_after_a_requeue_is_cut_short_as_before() -> None:
    assert len(nudges(by_slurm().change_job(reason="BeginTime", eligible=by_slurm().now + 120.0))) == 1
    assert len(nudges(later(by_slurm(), 120.0).after(1.0))) == 1


def test_a_nudge_that_failed_is_repeated_however_long_slurm_lets_the_job_wait() -> None:
    (nudge,) = nudges(by_slurm())
    failed_once = later(by_slurm(), 600.0).see(failures={nudge.key: "retry: no answer"})
    assert len(nudges(failed_once.after(1.0))) == 1


def test_a_cancelled_job_is_left_alone() -> None:
    picture = by_slurm().change_job(state=JobState.CANCELLED)
    assert nudges(picture) == []
    assert picture.plan().memory.jobs[J].ended == picture.now


def test_a_job_that_did_not_opt_in_is_left_to_slurm() -> None:
    picture = a_cluster().job().then().lost("n2").then().marked("n2").requeued().after(0.2)
    assert nudges(picture) == []


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


def test_a_job_requeued_by_a_person_comes_back_at_once_and_costs_it_no_resume() -> None:
    picture = a_cluster().job().opted_in().then().requeued().then(1.1)
    assert len(nudges(picture)) == 1
    assert picture.plan().memory.jobs[J].resumes == 0


def test_a_job_requeued_before_it_was_ever_seen_running_comes_back_at_once_too() -> None:
    waiting = a_cluster().job().change_job(state=JobState.PENDING, nodes=frozenset(), started=None)
    told = waiting.opted_in().then(0.3)
    assert nudges(told.requeued().then(0.1).then(1.1)) != []
    never_seen = waiting.change_job(restarts=1, reason="BeginTime").opted_in().then(0.1)
    assert nudges(never_seen.then(1.1)) != []


def test_two_jobs_hit_by_one_nodes_death_both_come_back() -> None:
    picture = a_cluster().job(7, on=("n1", "n2")).job(8, on=("n2", "n3")).opted_in(7).opted_in(8).then()
    picture = picture.lost("n2").then().marked("n2").requeued(7).requeued(8).then(1.1)
    assert sorted(nudge.job for nudge in nudges(picture)) == [7, 8]


def test_a_hundred_requeues_in_a_row_are_all_nudged() -> None:
    picture = a_cluster().resume(max_resumes=1000).job().opted_in().then()
    for _ in range(100):
        picture = picture.requeued().then(1.1)
        assert len(nudges(picture)) == 1
        picture = picture.then(1.0).change_job(state=JobState.RUNNING, nodes=names("n1", "n2", "n3"))
        picture = picture.change_job(started=picture.now).then(1.0)
    assert len(picture.memory.asked) < 1000


def late(picture: Picture) -> list[Action]:
    return [a for a in picture.plan().actions if isinstance(a, RequeueJob)]


def failed(state: JobState = JobState.FAILED) -> Picture:
    """The job ended while the head was away: nobody could be asked."""
    return a_cluster().job().opted_in().then(100).change_job(state=state, ended=a_cluster().now + 95, exit_status=256)


def test_a_job_that_failed_by_a_nodes_fault_while_the_head_was_away_is_requeued() -> None:
    assert len(late(failed().lost("n2"))) == 1


def test_a_job_that_failed_without_evidence_stays_failed() -> None:
    assert late(failed()) == []


def test_a_node_failure_is_its_own_evidence() -> None:
    (requeue,) = late(failed(JobState.NODE_FAIL))
    assert "the head was away" not in requeue.why.text, "so ends a job with --no-requeue, too"


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.TIMEOUT, JobState.OUT_OF_MEMORY, JobState.COMPLETED])
def test_other_ends_are_never_undone(state: JobState) -> None:
    assert late(failed(state).lost("n2")) == []


def test_evidence_that_turns_up_long_after_the_end_changes_nothing() -> None:
    assert late(failed().wait(310).lost("n2")) == []


def test_a_late_requeue_that_slurm_refuses_is_given_up() -> None:
    picture = failed().lost("n2")
    (action,) = late(picture)
    refused = picture.then(6).see(failures={action.key: "stale: Invalid job id specified"})
    assert late(refused) == []
    assert "could not be requeued" in refused.plan().memory.jobs[J].end_text


def test_a_culprit_that_slurm_has_back_idle_but_steward_still_repairs_stays_excluded() -> None:
    picture = by_slurm().then(1).node("n2", base=NodeBase.IDLE)
    assert [nudge.exclude for nudge in nudges(picture)] == [names("n2")]


def test_the_memory_of_an_ended_job_is_forgotten_after_a_day() -> None:
    picture = replace(by_slurm().see(jobs={}).then(), now=a_cluster().now + 90_000)
    assert picture.plan().memory.jobs == {}


def without_its_script() -> Picture:
    """The job was submitted with --no-kill: n1, where its script ran, died, and Slurm goes on with the other nodes."""
    return a_cluster().job().opted_in().then().lost("n1").then().marked("n1").change_job(nodes=names("n2", "n3"))


def test_a_job_that_slurm_runs_on_without_its_script_is_requeued_once() -> None:
    requeues = [a for a in without_its_script().plan().actions if isinstance(a, RequeueJob)]
    assert [(a.job, a.why.rule) for a in requeues] == [(J, "resume.no_script")]
    assert [a for a in without_its_script().then(0.1).plan().actions if isinstance(a, RequeueJob)] == []


def test_a_job_without_its_script_and_without_the_option_is_left_alone() -> None:
    picture = a_cluster().job().lost("n1").then().marked("n1").change_job(nodes=names("n2", "n3"))
    assert [a for a in picture.plan().actions if isinstance(a, RequeueJob)] == []


def test_a_job_without_its_script_that_used_up_its_resumes_is_told_to_people() -> None:
    plan = without_its_script().resume(max_resumes=0).plan()
    assert [a for a in plan.actions if isinstance(a, RequeueJob)] == []
    assert "cancel it" in next(e.text for e in plan.events if e.kind == "job.budget")


def never_seen_running(picture: Picture, *ran_on: str, **fields: Any) -> Picture:
    """The job was put back before anybody saw its first run; only Slurm's record of its submission tells of its
    wish."""
    job: dict[str, Any] = {
        "state": JobState.PENDING,
        "nodes": frozenset(),
        "batch_host": None,
        "started": None,
        "restarts": 1,
        "reason": "BeginTime",
        "submitted": picture.now,
        "node_count": 2,
    }
    word = OptedIn(job=J, uid=USER, mode=ON, restart=0, at=picture.now, ran_on=names(*ran_on))
    return picture.job(**{**job, **fields}).see(opted_in=(word,))


def test_a_job_whose_node_died_before_its_script_began_is_hurried_on_and_counted() -> None:
    picture = never_seen_running(a_cluster().lost("n2").then().marked("n2"), "n1", "n2").then(1.1)
    (nudge,) = nudges(picture)
    assert (nudge.job, nudge.exclude) == (J, names("n2"))
    assert picture.memory.jobs[J].resumes == 1


def test_a_job_of_whose_lost_run_nothing_is_known_is_hurried_on_too() -> None:
    assert len(nudges(never_seen_running(a_cluster()).then(1.1))) == 1


def test_a_job_that_slurm_holds_since_its_launch_failed_is_released_and_counted() -> None:
    picture = never_seen_running(a_cluster(), reason="launch_failed_requeued_held").then(1.1).then(1.1)
    (nudge,) = nudges(picture)
    assert nudge.release
    assert picture.memory.jobs[J].resumes == 1
    by_person = never_seen_running(a_cluster(), reason="JobHeldUser").then(1.1)
    assert nudges(by_person) == []


def test_a_first_run_that_failed_between_two_looks_is_looked_into() -> None:
    lost = a_cluster().lost("n2").then().marked("n2")
    ended: dict[str, Any] = {"state": JobState.NODE_FAIL, "restarts": 0, "reason": "NodeDown", "ended": lost.now}
    gone = never_seen_running(lost, nodes=names("n1", "n2"), started=lost.now - 1, **ended).then()
    assert gone.memory.jobs[J].resumes == 1
    old = never_seen_running(lost, nodes=names("n1", "n2"), started=T0 - 9000, **{**ended, "ended": T0 - 8000})
    assert old.then().memory.jobs == {}


def test_a_job_is_not_started_in_the_second_in_which_it_ended() -> None:
    picture = a_cluster().job().opted_in().then(0.4).requeued()
    assert nudges(picture.then(0.6)) == []
    assert len(nudges(picture.then(0.65))) == 1


def test_a_job_whose_run_was_seen_to_end_in_an_earlier_second_is_nudged_as_soon_as_it_is_clean() -> None:
    ends = a_cluster().job().opted_in().then(0.4).requeued().change_job(flags=frozenset({"COMPLETING"}))
    clean = ends.then(0.8).change_job(flags=frozenset())
    assert len(nudges(clean)) == 1


def test_a_job_that_is_clean_in_the_second_in_which_its_run_ended_waits_for_the_next() -> None:
    ends = a_cluster().job().opted_in().then(0.2).requeued().change_job(flags=frozenset({"COMPLETING"}))
    clean = ends.then(0.5).change_job(flags=frozenset())
    assert nudges(clean) == []
    assert len(nudges(clean.then(0.35))) == 1
