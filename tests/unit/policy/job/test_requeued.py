"""Jobs that Slurm or a person requeued: what counts as a resume, and what a restarted slurmctld shows again."""

from typing import Any

import pytest

from steward.model.action import RequeueJob
from steward.model.ask import AskKind, OptedIn
from steward.model.job import JobState
from tests.builders.picture import ON, T0, USER, Picture, a_cluster, names
from tests.builders.requeued import J, by_slurm, failed, nudges


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


@pytest.mark.parametrize("mine", [True, False], ids=["its user's", "another user's"])
@pytest.mark.parametrize("was_seen_gone", [True, False])
def test_a_new_job_with_the_number_of_a_forgotten_one_has_nothing_of_its_past(mine: bool, was_seen_gone: bool) -> None:
    """slurmctld was killed before it had saved the submission, and gives the number again."""
    waits = by_slurm().then(1.1)
    resumed = waits.change_job(state=JobState.RUNNING, nodes=names("n1", "n3", "n4"), started=waits.now).then(1)
    assert resumed.memory.jobs[J].resumes == 1
    if was_seen_gone:
        resumed = resumed.see(jobs={}).then(5).then(1)
        assert resumed.memory.jobs[J].ended is not None
    resumed = resumed.after(60)
    fields = {"started": resumed.now, "submitted": resumed.now, **({} if mine else {"user_id": 4711})}
    new = resumed.see(opted_in=()).job(J, on=("n1", "n2", "n3"), **fields).then()
    assert J not in new.memory.jobs
    failed = new.change_job(state=JobState.NODE_FAIL, ended=new.now + 5).lost("n2").then(6).then(1)
    assert J not in failed.memory.jobs
    back = new.opted_in(J).then(1).lost("n2").then().marked("n2").requeued().then(1.1)
    assert back.memory.jobs[J].resumes == 1 if mine else J not in back.memory.jobs


def test_a_persons_requeue_that_slurmctld_forgot_is_not_done_for_him() -> None:
    before = a_cluster().job().opted_in().then()
    shown = before.seen.jobs[J]
    picture = (
        before.requeued().then(1.1).change_job(state=shown.state, nodes=shown.nodes, started=shown.started, restarts=0)
    )
    assert [action for action in picture.plan().actions if isinstance(action, RequeueJob)] == []


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


def test_what_happens_to_a_task_of_an_array_is_told_with_its_name_in_squeue() -> None:
    task = a_cluster().job(9, array_job_id=J, array_task=2).opted_in(9)
    lost = task.then().lost("n2").then().marked("n2").requeued(9)
    texts = [event.text for each in (task, lost) for event in each.plan().events if event.job == 9]
    assert any(text.startswith("job 7_2 is resumed if a node fails") for text in texts), texts
    assert "job 7_2 is back in the queue (restart 1)" in texts
    assert not [text for text in texts if "job 9" in text]
