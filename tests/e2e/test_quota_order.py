"""Of several jobs that borrowed, which one is evicted first."""

import time
from contextlib import AbstractContextManager, nullcontext

import pytest

from steward_bed.bed import Bed
from tests.e2e.changed_conf import changed_conf
from tests.e2e.quota_bed import SOON_S, QuotaStory

pytestmark = pytest.mark.quotas_stay


def youngest_first(bed: Bed) -> AbstractContextManager[None]:
    """slurm.conf says that the newest job is evicted first, whichever QOS it has."""
    return changed_conf(bed, lambda conf: conf.replace("PreemptParameters=", "PreemptParameters=youngest_first,"))


def at_once(quotas: QuotaStory, *teams: str) -> None:
    """Slurm gives no grace to who is evicted, and is done long before Steward would lose patience: Slurm chooses."""
    for team in () if quotas.makes_room_itself else teams:
        quotas.sacctmgr("modify", "qos", "where", f"name=stw-{team}-b", "set", "GraceTime=0")


def begun(quotas: QuotaStory, job: int) -> int:
    """A job that runs, in a second of its own: Slurm knows of no shorter times."""
    quotas.wait_state(job, "RUNNING", SOON_S)
    seen = time.time()
    quotas.wait("the next job is newer", lambda: time.time() > seen + 1.0)
    return job


def borrows(quotas: QuotaStory, *, grace: bool = False) -> tuple[int, int, int]:
    """All GPUs are in use: team guest has its own four, and borrowed with a job of two nodes and two of one, the oldest
    first."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    if not grace:
        at_once(quotas, "guest")
    for node in ("n1", "n2"):
        begun(quotas, quotas.sleeps("guest", 2, f"--nodelist={node}"))
    wide = ("--gres=gpu:l4:1", "--nodes=2", "--ntasks=2", "--mem=1G")
    return (
        begun(quotas, quotas.asks("guest", *wide)),
        begun(quotas, quotas.sleeps("guest", 1)),
        begun(quotas, quotas.sleeps("guest", 1)),
    )


def was_evicted(quotas: QuotaStory) -> list[int]:
    """All jobs that wait again, now that the owner has come for one GPU."""
    mine = quotas.sleeps("owner", 1)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    waiting = [job for job in quotas.jobs if quotas.job(job).state != "RUNNING"]
    for job in waiting:
        quotas.wait_says(job, f"was evicted for job {mine} of team owner")
    return waiting


def test_of_one_team_the_oldest_of_the_smallest_jobs_is_evicted_where_slurm_chooses(quotas: QuotaStory) -> None:
    """Else the newest: on 22.05 Steward chooses."""
    _, older, newest = borrows(quotas)
    assert was_evicted(quotas) == [newest if quotas.makes_room_itself else older]


def test_none_is_evicted_beside_the_one_that_slurm_gave_a_grace_though_steward_loses_patience(
    quotas: QuotaStory,
) -> None:
    """Slurm (23.02 and newer) ends it only some time after its grace, later than Steward waits here."""
    _, older, newest = borrows(quotas, grace=True)
    assert was_evicted(quotas) == [newest if quotas.makes_room_itself else older]


def test_the_newest_job_that_borrowed_is_evicted_and_none_beside_it_where_slurm_looks_at_age(
    quotas: QuotaStory,
) -> None:
    with nullcontext() if quotas.makes_room_itself else youngest_first(quotas.bed):
        _, _, newest = borrows(quotas)
        assert was_evicted(quotas) == [newest]


def test_the_team_that_borrowed_most_is_evicted_though_a_job_of_another_is_newer(quotas: QuotaStory) -> None:
    much, little = quotas.gpus("much", 2, percent=100), quotas.gpus("little", 2, percent=100)
    quotas.wait_in_force(quotas.gpus("owner", 4), much, little)
    at_once(quotas, "much", "little")
    for team in ("much", "little"):
        begun(quotas, quotas.sleeps(team, 2))
    older, newer = begun(quotas, quotas.sleeps("much", 2)), begun(quotas, quotas.sleeps("little", 1))
    quotas.wait("Slurm knows who borrowed most", lambda: priority(quotas, "much") < priority(quotas, "little"), SOON_S)
    mine = quotas.sleeps("owner", 2)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    quotas.wait_says(older, f"was evicted for job {mine} of team owner")
    assert [quotas.job(job).state for job in (older, newer)] == ["PENDING", "RUNNING"]


def priority(quotas: QuotaStory, team: str) -> int:
    """Of what the team borrowed: the lowest is evicted first."""
    argv = ["sacctmgr", "-nP", "show", "qos", f"stw-{team}-b", "format=Priority"]
    return int(quotas.bed.run(argv).text)


def test_a_whole_machine_comes_back_though_the_newest_borrowers_are_on_two(quotas: QuotaStory) -> None:
    """Of the first machine a part is in use by its owner: what is taken back there would start nobody."""
    quotas.wait_in_force(quotas.gpus("owner", 6), quotas.gpus("guest", 2, percent=500))
    at_once(quotas, "guest")
    own, older, newer, newest = (
        begun(quotas, quotas.sleeps("guest", 2, f"--nodelist={node}")) for node in ("n1", "n2", "n1", "n2")
    )
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    assert {quotas.job(job).state for job in (own, newer)} == {"RUNNING"}
    quotas.wait("the others wait", lambda: {quotas.job(job).state for job in (older, newest)} == {"PENDING"}, SOON_S)
