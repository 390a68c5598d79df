"""Work that no quota covered when it began: accounts without a quota, a quota that goes and comes again, and borrowers
from before the quotas."""

import re
from functools import partial

import pytest

from tests.e2e.quota_bed import SOON_S, TYPE, QuotaStory
from tests.e2e.test_quota_doctor import texts, told

GPUS = f"{TYPE}/gpu"


def limit_of_account(quotas: QuotaStory, account: str) -> str:
    """Its GPUs, as sacctmgr shows the limit; empty without one."""
    argv = ["sacctmgr", "-nP", "show", "association", "where", f"account={account}", "user=", "format=GrpTRES"]
    found = re.search(r"gres/gpu=(\d+)", quotas.bed.run(argv).text)
    return found[1] if found else ""


def test_of_those_who_borrowed_before_there_were_quotas_one_goes_for_one_gpu(quotas: QuotaStory) -> None:
    """They have four GPUs more than is lent to them: that is no reason to end more than the owner needs."""
    quotas.account("owner", "guest")
    early = [quotas.sleeps("guest", 1) for _ in range(8)]
    for job in early:
        quotas.wait_state(job, "RUNNING", SOON_S)
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=0))
    for count in (1, 2):
        mine = quotas.sleeps("owner", 1)
        quotas.wait_state(mine, "RUNNING", SOON_S)
        states = [quotas.job(job).state for job in early]
        assert (states.count("RUNNING"), states.count("PENDING")) == (8 - count, count)

    def went() -> list[int]:
        return [event["job"] for event in quotas.events("quota.evicted") if event["job"] in early]

    quotas.wait("both ends are told", lambda: len(went()) == 2, SOON_S)
    last = went()[-1]
    quotas.wait_says(last, f"was evicted for job {mine} of team owner")
    quotas.wait_says(last, "short of 1 GPU")


@pytest.mark.quotas_stay
def test_an_account_without_a_quota_has_what_no_team_owns_and_its_user_reads_why_he_gets_no_more(
    quotas: QuotaStory,
) -> None:
    quotas.account("visitors")
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 1))
    quotas.wait("the account has a limit", lambda: limit_of_account(quotas, "visitors") == "3", SOON_S)
    first = [quotas.sleeps("visitors", 1) for _ in range(3)]
    for job in first:
        quotas.wait_state(job, "RUNNING", SOON_S)
    fourth = quotas.sleeps("visitors", 1)
    quotas.wait("a limit holds it up", lambda: quotas.job(fourth).fields["Reason"] == "AssocGrpGRES", SOON_S)
    quotas.wait_says(
        fourth, "Account visitors has no quota: the job cannot be evicted, and it may use only what no team"
    )
    said = texts(told(quotas)[1], "ok")
    assert "accounts without a quota may use what no team owns, and their jobs are not evicted" in said
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    assert {quotas.job(job).state for job in first} == {"RUNNING"}
    assert quotas.job(fourth).state == "PENDING"
    quotas.end(first[0])
    quotas.wait_state(fourth, "RUNNING", SOON_S)


@pytest.mark.quotas_stay
def test_a_quota_that_is_made_again_while_a_job_of_its_team_runs_limits_the_team_again(quotas: QuotaStory) -> None:
    id = quotas.gpus("guest", 2)
    quotas.wait_in_force(quotas.gpus("owner", 4), id)
    runs = quotas.sleeps("guest", 2)
    quotas.wait_state(runs, "RUNNING", SOON_S)
    quotas.delete(id)
    listed = partial(quotas.bed.run, ["steward", "quota", "list"])
    quotas.wait("the list names the job", lambda: f"it waits for job {runs}," in listed().text, SOON_S)

    again = quotas.gpus("guest", 3)
    quotas.wait_in_force(again)
    limits = {"gres/gpu": "3", "gres/gpu:l4": "3"}
    quotas.wait("its limits are back", lambda: quotas.limits("stw-guest-g") == limits, SOON_S)
    assert [each["status"] for each in quotas.get("/v1/quotas")["teams"] if each["team"] == "guest"] == ["Created"]
    third, fourth = quotas.sleeps("guest", 1), quotas.sleeps("guest", 1)
    quotas.wait_state(third, "RUNNING", SOON_S)
    quotas.wait_says(fourth, "the team has reached its limit (3 GPUs")
    assert (quotas.job(runs).state, quotas.job(fourth).state) == ("RUNNING", "PENDING")
    assert "waits for job" not in listed().text
