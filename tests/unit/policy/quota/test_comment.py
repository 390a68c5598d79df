"""What a job's comment says of quotas: little, and only what its user would ask about."""

from dataclasses import replace

from steward.model.action import CommentJob
from steward.model.comment import with_own_part
from steward.model.ids import JobId
from steward.model.quota import Eviction, QuotaJob, Reclaimed
from tests.builders.picture import Picture
from tests.builders.quota import own, runs, teams, waits


def comments(picture: Picture) -> dict[int, str]:
    return {one.job: one.text for one in picture.plan().actions if isinstance(one, CommentJob)}


def site() -> Picture:
    return teams(*(own(team, 4, borrow_absolute=(), borrow_percent=50) for team in "ab"))


def old(picture: Picture, id: int, team: str, gpus: int, **fields: object) -> Picture:
    """It waits for a minute by now."""
    return waits(picture, id, team, gpus, **{"submitted": picture.now - 60, **fields})


def test_a_job_that_never_fits_is_told_so_once() -> None:
    picture = old(site(), 1, "a", 7)
    text = "steward: quota: never fits, at most 6 GPUs of ml.g6.12xlarge"
    assert comments(picture) == {1: text}
    assert comments(picture.change_job(1, admin_comment=with_own_part("mine", text))) == {}


def test_a_job_that_waits_is_told_for_what_and_then_that_it_may_run() -> None:
    picture = runs(runs(site(), 1, "a", 4), 2, "a", 2, "b", "n2")
    text = "steward: quota: team a waits for ml.g6.12xlarge/gpu"
    assert comments(old(picture, 3, "a", 1)) == {3: text}
    assert comments(old(site(), 3, "a", 1, admin_comment=text)) == {3: "steward: quota lets it run"}
    assert comments(runs(site(), 3, "a", 1, admin_comment=text)) == {3: "steward: quota lets it run"}


def test_a_job_that_starts_at_once_gets_no_comment() -> None:
    assert comments(old(site(), 1, "a", 1)) == {}
    assert comments(waits(site(), 1, "a", 7)) == {}


def test_a_job_that_was_evicted_is_told_for_whom() -> None:
    picture = old(runs(site(), 3, "b", 4), 2, "a", 4)
    eviction = Eviction(
        at=picture.now - 30, restart=0, cause=Reclaimed.RECLAIM, to_team="b", to_job=3, text="", over=picture.now - 20
    )
    memory = replace(picture.memory, quota_jobs={JobId(2): QuotaJob(team="a", evictions=(eviction,), count=1)})
    told = comments(replace(picture, memory=memory))
    assert told == {2: "steward: quota: was evicted for job 3 of b 22:12Z (reclaim)"}


def test_many_jobs_are_told_a_few_at_a_time() -> None:
    picture = site()
    for id in range(1, 31):
        picture = old(picture, id, "a", 7)
    assert len(comments(picture)) == 10
