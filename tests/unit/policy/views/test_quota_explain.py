"""What `steward explain JOB` says of quotas: why a job waits, for whom it was evicted, what happens next."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.ids import JobId, NodeName
from steward.model.quota import Eviction, QuotaJob, Reclaimed, Wrote
from steward.views.explain import explain_job
from tests.builders.picture import T0, Picture
from tests.builders.quota import own, runs, teams, waits
from tests.builders.quota_site import a_site, settled


def said(picture: Picture, id: int) -> str:
    lines = explain_job(JobId(id), picture.seen, picture.want, picture.memory, picture.now)
    return "\n".join(line for line in lines[1:] if "auto-resume" not in line)


def site(percent: int = 50) -> Picture:
    quotas = [own(team, 4, borrow_absolute=(), borrow_percent=percent) for team in "ab"]
    return teams(*quotas)


def test_a_site_without_quotas_says_nothing_of_them() -> None:
    assert said(runs(teams(), 1, "a", 4), 1) == ""


def test_of_an_account_without_quota_and_limit_its_user_reads_what_to_do() -> None:
    text = said(waits(site(), 1, "other", 1), 1)
    assert "Account other has no quota: the job cannot be evicted" in text
    assert "it may use what teams own" in text
    assert "sbatch -A TEAM" in text
    assert "sacctmgr modify account where name=other set grptres=gres/gpu=N" in text
    assert "Account none has no quota" in said(waits(site(), 1, "", 1), 1)


def test_a_job_that_never_fits_reads_the_largest_that_would() -> None:
    assert said(waits(site(), 1, "a", 7), 1) == (
        "Quota of team a: the job never fits: it asks for 7 GPUs of ml.g6.12xlarge, and the team may have "
        "6 GPUs of ml.g6.12xlarge at most (its quota and its borrow limit). Ask for no more than that."
    )


def test_a_job_for_what_the_cluster_does_not_have_reads_that() -> None:
    picture = waits(site(), 1, "a", 1, requested="cpu=1,mem=1G,node=1,gres/gpu:h100=1")
    assert "a kind of machine or accelerator that the cluster does not have" in said(picture, 1)


def test_a_job_that_waits_for_its_teams_limit_reads_the_limit() -> None:
    picture = runs(runs(site(), 1, "a", 4), 2, "a", 2, "b", "n2")
    assert said(waits(picture, 3, "a", 1), 3).splitlines() == [
        "Quota of team a: the job waits, short of 1 GPU of ml.g6.12xlarge; the team has reached its limit "
        "(6 GPUs of ml.g6.12xlarge).",
        "Shares of what is lent, by weight (the least comes first): a 0.025.",
    ]


@pytest.mark.parametrize(("owner", "told"), [("stw-a-g", "QOS stw-a-g"), ("account a", "account a")])
def test_a_job_that_a_limit_set_by_hand_holds_up_reads_which_it_is(owner: str, told: str) -> None:
    """Its team's quota covers it, and nobody is about to raise what a person set."""
    picture = waits(a_site(), 1, "a", 2, reason="QOSGrpGRES")
    writes = {**picture.memory.quota_writes, f"{owner}/cap:gres/gpu": Wrote(values=("4",), foreign="1")}
    picture = replace(picture, memory=replace(picture.memory, quota_writes=writes))
    text = said(picture, 1)
    assert f"; a limit that was set by hand holds it up: gres/gpu=1 of {told} (QOSGrpGRES)." in text
    assert "about to be raised" not in text


def test_a_job_without_nodes_reads_that_though_slurm_names_a_limit_that_has_room() -> None:
    """As 22.05 does for `--gpus`. Job 1 has n1, and is not evicted."""
    picture = settled(runs(a_site(), 1, "a", 4))
    asks = {"required": frozenset({NodeName("n1")}), "submitted": picture.now}
    text = said(waits(picture, 2, "b", 2, reason="QOSGrpGRES", **asks), 2)
    assert "no node that it may use would have room for it" in text
    assert "there is room for that in the limit" in said(waits(picture, 2, "b", 2, reason="QOSGrpGRES"), 2)


def test_a_job_that_waits_for_what_others_use_reads_who_has_it() -> None:
    picture = runs(runs(site(100), 1, "a", 4), 2, "b", 3, "g", "n2")
    assert said(waits(picture, 3, "a", 2), 3).splitlines()[0] == (
        "Quota of team a: the job waits, short of 1 GPU of ml.g6.12xlarge; others have that or come first: b has 3 "
        "GPUs of ml.g6.12xlarge."
    )


def test_an_owner_reads_which_job_is_evicted_for_it() -> None:
    picture = runs(runs(site(100), 1, "a", 4), 2, "a", 4, "b", "n2")
    assert said(waits(picture, 3, "b", 4), 3) == (
        "The quota of team b covers the job; it waits for job 2 of team a to be evicted."
    )
    assert said(picture, 2) == (
        "Quota of team a: the job runs with borrowed resources (4 GPUs of ml.g6.12xlarge) and is evicted when their "
        "owner needs them."
    )
    assert "The job is to be evicted for job 3 of team b" in said(waits(picture, 3, "b", 4), 2)
    assert said(picture, 1) == (
        "The quota of team a covers the job (4 GPUs of ml.g6.12xlarge; guaranteed). No other team can take that back."
    )


def test_an_admitted_job_waits_for_nodes_only() -> None:
    assert said(waits(site(), 1, "a", 2, reason="Resources"), 1) == (
        "The quota of team a covers the job (2 GPUs of ml.g6.12xlarge); it waits for nodes (Slurm: Resources)."
    )
    picture = waits(runs(site(), 1, "a", 4), 2, "a", 2, reason="Resources")
    assert "may run with what others lend (2 GPUs of ml.g6.12xlarge); it waits for nodes" in said(picture, 2)
    picture = waits(runs(site(), 1, "a", 4), 2, "a", 2, qos="stw-a-b", reason="QOSGrpGRES")
    assert "the limit in Slurm is about to be raised (QOSGrpGRES)" in said(picture, 2)


def test_a_job_that_slurm_counts_for_more_than_it_asks_for_reads_what_may_be_the_cause() -> None:
    picture = waits(a_site(), 1, "a", 2, reason="QOSGrpGRES")
    assert "if Slurm still says QOSGrpGRES, Slurm counts more for the job than it asked for: with --exclusive" in said(
        picture, 1
    )


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


def test_a_job_on_its_way_out_reads_by_whom_and_until_when() -> None:
    picture = runs(runs(site(100), 1, "a", 4), 2, "a", 4, "b", "n2")
    picture = waits(picture, 3, "b", 4)
    text = said(evicted(picture, due=picture.now + 30), 2)
    assert "The job is evicted for job 3 of team b, whose quota covers it" in text
    assert "its grace ends in 30 s" in text
    assert "job 2 of team a to be evicted, in 30 s at the latest" in said(evicted(picture, due=picture.now + 30), 3)
    assert "Slurm ends it" in said(evicted(picture), 2)


def test_a_job_that_was_evicted_reads_why_and_what_it_costs() -> None:
    picture = waits(runs(site(100), 3, "b", 4), 2, "a", 4)
    text = said(evicted(picture, over=picture.now - 10), 2)
    assert "30 s ago: the job was evicted for job 3 of team b, whose quota covers it" in text
    assert "An eviction costs no resume and blames no node" in text


@pytest.mark.parametrize("trouble", ["slurmdbd is down"])
def test_where_accounting_cannot_be_read_the_job_says_so(trouble: str) -> None:
    picture = waits(site(), 1, "a", 1)
    assert picture.seen.accounting is not None
    broken = replace(picture.seen, accounting=replace(picture.seen.accounting, trouble=trouble))
    assert "Quotas are not in force now: slurmdbd is down." in said(replace(picture, seen=broken), 1)


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
