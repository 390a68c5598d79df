"""Each run that ended badly is one setback of one kind; what the job did next is found by its number, or its name."""

import time

import pytest

from steward.assess.history import AGAIN, BLAMED, HANG, LAUNCH, LOST, REQUEUED, PastJobs
from steward.assess.records import JobRun, SiteFacts
from tests.builders.assessed import DAY_S, SINCE, UNTIL, a_past, a_run, an_event

HOUR = 3600


def kinds(past: PastJobs) -> list[tuple[int, str]]:
    return [(one.run.job, one.kind) for one in past.setbacks]


def log_line(text: str, at: int) -> str:
    return f"[{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.123] {text}"


def test_a_node_failure_names_the_node_that_sacct_names() -> None:
    (one,) = a_past(a_run(state="NODE_FAIL", nodes=2, nodelist="n[1-2]", failed_node="n2")).setbacks
    assert one.node == "n2"


def test_a_node_failure_names_the_node_that_slurmctlds_log_names_whatever_its_time_zone() -> None:
    run = a_run(7, state="NODE_FAIL", nodes=2, nodelist="n[1-2]")
    told = ("Killing JobId=7 on failed node n2", "requeue job JobId=5_2(7) due to failure of node n2")
    for text in told:
        for at in (run.ended, run.ended + 5 * HOUR + 1800):
            (one,) = a_past(run, log=[log_line(text, at)]).setbacks
            assert (one.kind, one.node) == (LOST, "n2")
    (one,) = a_past(run, log=[log_line(told[0], run.ended + 400)]).setbacks
    assert one.node == ""


def test_a_launch_that_the_prolog_ended_is_seen_by_the_nodes_drain_or_in_the_log() -> None:
    events = [an_event(reason="Prolog error", state="DRAIN")]
    for state in ("REQUEUED", "CANCELLED"):
        run = a_run(7, state, seconds=0)
        assert [(one.kind, one.node) for one in a_past(run, events=events).setbacks] == [(LAUNCH, "n1")]
        past = a_past(run, log=[log_line("error: Prolog launch failure, JobId=7", run.ended)])
        assert [(one.kind, one.node) for one in past.setbacks] == [(LAUNCH, "")]
    assert kinds(a_past(a_run(7, "CANCELLED", seconds=0))) == []


def test_else_the_node_that_went_down_at_that_time() -> None:
    run = a_run(state="NODE_FAIL", nodes=2, nodelist="n[1-2]")
    events = [an_event("n2", start=HOUR), an_event("n9", start=HOUR), an_event("n1", start=2 * HOUR)]
    assert [one.node for one in a_past(run, events=events).setbacks] == ["n2"]
    assert [one.node for one in a_past(run).setbacks] == [""]


def test_a_job_that_failed_as_its_node_went_down_is_blamed_for_it() -> None:
    events = [an_event("n1", start=HOUR + 300)]
    assert kinds(a_past(a_run(state="FAILED"), events=events)) == [(1, BLAMED)]
    assert kinds(a_past(a_run(state="FAILED", nodelist="n2"), events=events)) == []
    assert kinds(a_past(a_run(state="FAILED"), events=[an_event("n1", start=HOUR + 900)])) == []
    assert kinds(a_past(a_run(state="FAILED"), events=[an_event("n1", start=HOUR, reason="disk swap")])) == []


def test_a_requeued_job_is_followed_by_its_number() -> None:
    first = a_run(5, "NODE_FAIL", seconds=HOUR)
    (one,) = a_past(first, a_run(5, start=HOUR + 130)).setbacks
    assert one.was_requeued
    assert one.again_start == first.ended + 130


def test_a_job_that_was_submitted_again_is_followed_by_its_users_name_for_it() -> None:
    first = a_run(5, "NODE_FAIL", name="run-1")
    beside = a_run(6, name="run-2", start=100, seconds=2 * HOUR)
    again = a_run(7, name="run-3", start=9 * HOUR, submit=SINCE + 8 * HOUR)
    (one,) = a_past(first, beside, a_run(8, start=5 * HOUR, user="bob"), again).setbacks
    assert (one.again_submit, one.again_start, one.was_requeued) == (SINCE + 8 * HOUR, SINCE + 9 * HOUR, False)


def test_evictions_cancellations_and_jobs_own_failures_are_no_setbacks() -> None:
    states = ("PREEMPTED", "CANCELLED", "FAILED", "OUT_OF_MEMORY", "DEADLINE", "COMPLETED")
    assert kinds(a_past(*(a_run(job, state, start=job * HOUR) for job, state in enumerate(states)))) == []


def test_a_node_that_did_not_boot_is_a_launch_failure_and_a_requeue_is_one_of_its_own() -> None:
    assert kinds(a_past(a_run(1, "BOOT_FAIL"), a_run(2, "REQUEUED", start=1))) == [(1, LAUNCH), (2, REQUEUED)]


def test_starts_that_fail_one_after_the_other_cost_from_the_fourth_on() -> None:
    runs = [a_run(job, "FAILED", start=job * HOUR, seconds=60) for job in range(6)]
    assert kinds(a_past(*runs)) == [(3, AGAIN), (4, AGAIN), (5, AGAIN)]
    assert kinds(a_past(*runs[:3], a_run(9, start=2 * HOUR + 100, seconds=60), *runs[3:])) == []


def test_tasks_of_an_array_that_fail_side_by_side_are_no_repetition() -> None:
    assert kinds(a_past(*(a_run(job, "FAILED", seconds=60 + job) for job in range(9)))) == []


def completed(count: int, seconds: int = HOUR) -> list[JobRun]:
    return [a_run(100 + number, start=number * 2 * HOUR, seconds=seconds) for number in range(count)]


def test_a_run_at_its_limit_is_suspected_where_its_like_completes_much_sooner() -> None:
    hung = a_run(1, "TIMEOUT", start=20 * HOUR, seconds=DAY_S)
    (one,) = a_past(*completed(5), hung).setbacks
    assert (one.kind, one.usual_s) == (HANG, HOUR)


def test_a_run_at_its_limit_without_others_to_compare_is_counted_as_unknown() -> None:
    past = a_past(*completed(4), a_run(1, "TIMEOUT", start=20 * HOUR, seconds=DAY_S))
    assert kinds(past) == []
    assert past.unjudged == [1, DAY_S]


def test_a_run_at_its_limit_that_was_hardly_longer_than_others_is_none() -> None:
    past = a_past(*completed(5), a_run(1, "TIMEOUT", start=20 * HOUR, seconds=HOUR + 600))
    assert (kinds(past), past.unjudged) == ([], [0, 0.0])


def test_used_time_is_that_within_the_period_and_of_the_part_of_the_node_that_a_job_had() -> None:
    site = SiteFacts(since=SINCE, until=UNTIL, shapes={"n1": (8, 4), "n2": (8, 0)})
    runs = [
        a_run(1, start=-HOUR, seconds=2 * HOUR, tres="cpu=8,node=1"),
        a_run(2, tres="cpu=2,gres/gpu=1,gres/gpu:a100=1,node=1", user="bob"),
        a_run(3, tres="cpu=1,gres/gpu:a100=3,node=1", user="eve"),
        a_run(4, start=90 * DAY_S - HOUR, seconds=None, nodelist="n2", tres="cpu=4,mem=1G", user="joe"),
    ]
    used = {user: seconds for (user, _), seconds in a_past(*runs, site=site).used_s.items()}
    assert used == {"ann": HOUR, "bob": HOUR / 4, "eve": HOUR * 0.75, "joe": HOUR / 2}


@pytest.mark.parametrize("shapes", [{}, {"n1": (0, 0)}, {"other": (8, 0)}])
def test_a_node_of_unknown_size_counts_whole(shapes: dict[str, tuple[int, int]]) -> None:
    past = a_past(a_run(), site=SiteFacts(since=SINCE, until=UNTIL, shapes=shapes))
    assert past.used_s["ann", "gpu"] == HOUR
