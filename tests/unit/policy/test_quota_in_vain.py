"""What was lent is taken back for somebody who can run with it: what changed in the grace counts, and who could not
save gets the time to."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import RequeueJob, SignalJob
from steward.model.ids import JobId
from steward.model.job import JobState
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, WEAK
from tests.builders.quota_site import a_site, borrowed_and_wanted_back, done, own, runs, settled, waits


def gone_at_the_end(picture: Picture, after_s: float = 61.0) -> list[tuple[type, int]]:
    _, actions = done(picture.after(after_s))
    return [(type(each), each.job) for each in actions if isinstance(each, SignalJob | RequeueJob)]


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": "JobHeldUser", "priority": 0},
        {"reason": "Dependency"},
        {"reason": "BeginTime", "eligible": 9e9},
        {"account": "a"},
    ],
    ids=["held", "waits for another job", "waits for its time", "moved to the team that borrowed"],
)
def test_a_job_is_spared_when_the_one_that_it_makes_room_for_cannot_run_any_more(fields: dict[str, Any]) -> None:
    """Found as the grace ends: a job that was released by then may have it."""
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    assert gone_at_the_end(picture.change_job(4, **fields)) == []
    assert gone_at_the_end(picture) == [(RequeueJob, 3)]


def test_a_job_is_spared_when_the_owners_quota_is_lowered_meanwhile() -> None:
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    quotas = {**picture.memory.quotas, "q-b": own("b", 1)}
    assert gone_at_the_end(replace(picture, memory=replace(picture.memory, quotas=quotas))) == []


def test_a_job_is_not_ended_for_the_rest_of_an_array_that_the_quota_does_not_cover() -> None:
    """The first of two tasks started on what another job left."""
    site = runs(runs(a_site(WEAK), 1, "a", 4), 2, "a", 4, "b", "n2")
    picture = waits(settled(site), 4, "b", 4, array_job_id=JobId(4), waiting_tasks=2)
    picture, actions = done(picture)
    assert [each.job for each in actions if isinstance(each, SignalJob)] == [2]
    picture = picture.change_job(1, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now)
    picture = runs(picture, 5, "b", 4, array_job_id=JobId(4), array_task=0).change_job(4, waiting_tasks=1)
    assert gone_at_the_end(picture) == []


def test_the_room_is_made_all_the_same_when_another_job_of_the_owner_waits_for_it() -> None:
    picture, _ = done(borrowed_and_wanted_back(WEAK))
    picture = waits(picture, 5, "b", 4).change_job(4, reason="Priority")
    assert gone_at_the_end(picture) == [(RequeueJob, 3)]


def test_a_job_whose_head_died_before_the_signal_has_its_grace_when_there_is_one_again() -> None:
    """Memory was kept, the signal was not sent: nothing of it is in the store."""
    picture, actions = done(borrowed_and_wanted_back(WEAK))
    (signal,) = (each for each in actions if isinstance(each, SignalJob))
    asked = {key: at for key, at in picture.memory.asked.items() if key != signal.key}
    picture = replace(picture, memory=replace(picture.memory, asked=asked)).after(600.0)
    picture, actions = done(picture)
    assert [(type(each), each.job) for each in actions] == [(SignalJob, 3)]
    assert gone_at_the_end(picture, 30.0) == []
    assert gone_at_the_end(picture) == [(RequeueJob, 3)]


def test_slurm_is_not_helped_when_the_owners_job_cannot_run_any_more() -> None:
    """Slurm did nothing, and was right."""
    picture, _ = done(borrowed_and_wanted_back(LISTS))
    picture, actions = done(picture.change_job(4, reason="JobHeldUser", priority=0).after(300.0))
    assert not any(isinstance(each, SignalJob | RequeueJob) for each in actions)
    assert not any(each.yielding for each in picture.memory.quota_jobs.values())
