"""A job that is back in the queue is nudged until it runs, and never past a person's hold."""

from itertools import pairwise

import pytest

from steward.model.job import JobState
from steward.views.explain import explain_job
from tests.builders.picture import a_cluster, names
from tests.builders.requeued import J, by_slurm, later, nudges


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


def test_a_running_job_is_not_nudged_and_the_resume_is_told() -> None:
    picture = by_slurm().then(0.5).change_job(state=JobState.RUNNING, nodes=names("n1", "n3", "n4"), started=1.0)
    decided = picture.plan()
    assert nudges(picture) == []
    assert "job.resumed" in [event.kind for event in decided.events]
    assert decided.memory.jobs[J].attempts[-1].running == picture.now


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
