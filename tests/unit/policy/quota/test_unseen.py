"""Slurm's own preemption is quicker than our look: a borrower that is back already is known as one that was evicted."""

from collections.abc import Callable
from typing import Any

import pytest

from steward.model.accounting import Capabilities
from steward.model.action import NudgeJob
from steward.model.ask import AskKind
from steward.model.ids import JobId
from steward.model.job import JobState
from steward.model.resume_mode import ResumeMode
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, MARKS, WEAK
from tests.builders.quota_site import a_site, done, own, runs, settled

LENT = "stw-a-g,stw-a-b"


def back(can: Capabilities = LISTS, *, owner: str = "g", **fields: Any) -> Picture:
    """Job 2 of team a borrowed, and waits again; job 3 of team b has begun just then."""
    picture = settled(runs(runs(a_site(can), 1, "a", 4), 2, "a", 4, "b", "n2"))
    now = picture.now
    given: dict[str, Any] = {"qos": LENT, "submitted": now, "eligible": now + 121, **fields}
    picture = picture.requeued(2, **given)
    return runs(picture, 3, "b", 4, owner, "n2", started=now + 1).after(3)


def evictions(picture: Picture) -> list[tuple[int, int]]:
    memory = picture.memory.quota_jobs.get(JobId(2))
    return [(each.restart, each.to_job) for each in memory.evictions] if memory else []


@pytest.mark.parametrize(("can", "qos"), [(LISTS, LENT), (MARKS, "stw-a-b")])
def test_who_took_its_place_is_remembered_once(can: Capabilities, qos: str) -> None:
    picture, _ = done(back(can, qos=qos))
    assert evictions(picture) == [(0, 3)]
    told = picture.memory.quota_jobs[JobId(2)].evictions[0].text
    assert told.startswith("is evicted for job 3 of team b, whose quota covers it")
    picture, _ = done(picture)
    assert evictions(picture) == [(0, 3)]


def test_it_runs_again_when_there_is_room_and_not_two_minutes_later() -> None:
    picture, _ = done(back())
    assert not any(isinstance(action, NudgeJob) for action in picture.after(8).plan().actions)
    ended = picture.change_job(3, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now)
    plan = done(ended)[0].after(3).plan()
    assert [action.job for action in plan.actions if isinstance(action, NudgeJob)] == [2]


@pytest.mark.parametrize(
    "what",
    [
        {"qos": "stw-a-g"},
        {"reason": "JobHeldUser"},
        {"owner": "b"},
        {"restarts": 0},
        {"submitted": 0.0},
        {"partition": "other"},
    ],
    ids=[
        "it could not borrow",
        "a person holds it",
        "nobody's own began",
        "it never ran",
        "it is long ago",
        "it ran elsewhere",
    ],
)
def test_what_does_not_look_so_is_not_taken_for_it(what: dict[str, Any]) -> None:
    picture, _ = done(back(**what))
    assert evictions(picture) == []


def borrows(mode: str) -> Picture:
    """Job 2 opted in and borrowed n2; a third node is there."""
    three = a_site(LISTS, own("a", 4), own("b", 4), machines=3)
    site = settled(runs(runs(three, 1, "a", 4), 2, "a", 4, "b", "n2"))
    return site.opted_in(2, mode=ResumeMode.parse(mode)).then(1)


def requeued_beside_an_owner(picture: Picture) -> Picture:
    """It is back, and job 3 of team b begins on a node that its run let go."""
    now = picture.now
    back = picture.requeued(2, qos=LENT, submitted=now, eligible=now + 121)
    return runs(back, 3, "b", 4, "g", "n3", started=now + 1).after(3)


def lost() -> Picture:
    """Slurm requeued it since Steward set its dead node DOWN."""
    return requeued_beside_an_owner(borrows("1").lost("n2").then().marked("n2"))


def tried_again() -> Picture:
    """Its script failed, and Steward requeued it without evidence, as it had asked for."""
    failed = borrows("any:3,age=0").ask(AskKind.BATCH, id=2, node="n2").then(0.1).checked("n2").then(0.1).then(8)
    return requeued_beside_an_owner(failed.see(asks=()))


@pytest.mark.parametrize(("story", "rule"), [(lost, "resume.wait"), (tried_again, "resume.any")])
def test_what_a_fault_or_steward_requeued_was_not_evicted_by_who_has_its_nodes_now(
    story: Callable[[], Picture], rule: str
) -> None:
    picture, _ = done(story())
    assert evictions(picture) == []
    assert [each.why.rule for each in picture.memory.jobs[JobId(2)].attempts] == [rule]


def test_where_slurm_does_not_preempt_nobody_but_steward_makes_room() -> None:
    picture, _ = done(back(WEAK, qos="stw-a-b"))
    assert evictions(picture) == []
