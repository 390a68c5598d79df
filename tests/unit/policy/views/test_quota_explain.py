"""What `steward explain JOB` says of quotas: why a job waits, for whom it was evicted, what happens next."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.ids import JobId
from steward.model.quota import Eviction, QuotaJob, Reclaimed, Wrote
from steward.views.explain import explain_job
from tests.builders.picture import T0, Picture
from tests.builders.quota import own, runs, teams, waits
from tests.builders.quota_site import a_site


def said(picture: Picture, id: int) -> str:
    lines = explain_job(JobId(id), picture.seen, picture.want, picture.memory, picture.now)
    return "\n".join(line for line in lines[1:] if "auto-resume" not in line)


def site(percent: int = 50) -> Picture:
    quotas = [own(team, 4, borrow_absolute=(), borrow_percent=percent) for team in "ab"]
    return teams(*quotas)


def test_a_site_without_quotas_says_nothing_of_them() -> None:
    assert said(runs(teams(), 1, "a", 4), 1) == ""


@pytest.mark.parametrize(("owner", "told"), [("stw-a-g", "QOS stw-a-g"), ("account a", "account a")])
def test_a_job_that_a_limit_set_by_hand_holds_up_reads_which_it_is(owner: str, told: str) -> None:
    """Its team's quota covers it, and nobody is about to raise what a person set."""
    picture = waits(a_site(), 1, "a", 2, reason="QOSGrpGRES")
    writes = {**picture.memory.quota_writes, f"{owner}/cap:gres/gpu": Wrote(values=("4",), foreign="1")}
    picture = replace(picture, memory=replace(picture.memory, quota_writes=writes))
    text = said(picture, 1)
    assert f"; a limit that was set by hand holds it up: gres/gpu=1 of {told} (QOSGrpGRES)." in text
    assert "about to be raised" not in text


def test_a_held_job_is_told_that_quotas_do_not_ask_yet() -> None:
    assert "not ready to run (JobHeldUser)" in said(waits(site(), 1, "a", 2, reason="JobHeldUser"), 1)
    delayed = waits(site(), 1, "a", 2, reason="BeginTime", eligible=site().now + 60)
    assert "not ready to run (BeginTime, before 22:14:20Z (in 60 s))" in said(delayed, 1)


def evicted(picture: Picture, **fields: object) -> Picture:
    eviction = Eviction(
        at=picture.now - 30, restart=0, cause=Reclaimed.RECLAIM, to_team="b", to_job=3,
        text="is evicted for job 3 of team b, whose quota covers it and lacks 4 GPUs; it is put back into the queue",
    )  # fmt: skip
    memory = QuotaJob(team="a", evictions=(replace(eviction, **fields),), count=1)  # type: ignore[arg-type]
    return replace(picture, memory=replace(picture.memory, quota_jobs={JobId(2): memory}))


def test_a_job_that_was_evicted_reads_why_and_what_it_costs() -> None:
    picture = waits(runs(site(100), 3, "b", 4), 2, "a", 4)
    text = said(evicted(picture, over=picture.now - 10), 2)
    assert "30 s ago: the job was evicted for job 3 of team b, whose quota covers it" in text
    assert "An eviction costs no resume and blames no node" in text


def test_a_job_that_was_put_back_for_an_owner_reads_no_other_cause_of_its_return() -> None:
    picture = put_back()
    lost = "as it does when a node of it is taken out or ended"
    assert lost not in all_of(picture, 3)
    assert lost in all_of(picture.change_job(3, restarts=2), 3)


def all_of(picture: Picture, id: int) -> str:
    return "\n".join(explain_job(JobId(id), picture.seen, picture.want, picture.memory, picture.now))


def put_back(**fields: Any) -> Picture:
    """Job 3 was evicted in its first run, and waits."""
    evicted = Eviction(
        at=T0 - 9, restart=0, cause=Reclaimed.RECLAIM, to_team="b", to_job=4, text="is evicted", over=T0 - 5
    )
    picture = waits(site(100), 3, "a", 2, restarts=1, **fields)
    jobs = {JobId(3): QuotaJob(team="a", evictions=(evicted,), count=1)}
    return replace(picture, memory=replace(picture.memory, quota_jobs=jobs))
