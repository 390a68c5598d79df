"""Writes to Slurm: what takes away comes first, and a head that dies between two of them ends where it would have."""

from dataclasses import replace

import pytest

from steward.model.action import SetQos
from steward.model.agent_action import Action
from steward.model.job import JobState
from steward.model.quota import QuotaStatus
from tests.builders.picture import Picture
from tests.builders.quota import LISTS, WEAK, a_picture, written
from tests.builders.quota_site import MINE, a_site, borrowed_and_wanted_back, own, runs, settled, waits


def stories() -> dict[str, Picture]:
    return {
        "set up": a_picture(own("a", 4), own("b", 4)),
        "borrow": waits(runs(a_site(), 1, "a", 4), 2, "a", 2),
        "reclaim by Slurm": borrowed_and_wanted_back(LISTS),
        "reclaim by us": borrowed_and_wanted_back(WEAK),
    }


def limits(picture: Picture) -> dict[str, dict[str, int]]:
    assert picture.seen.accounting is not None
    return {name: dict(qos.limits) for name, qos in picture.seen.accounting.qos.items()}


@pytest.mark.parametrize("story", list(stories()))
def test_a_head_that_dies_between_two_writes_ends_where_it_would_have(story: str) -> None:
    picture = stories()[story]
    plan = picture.plan()
    actions: list[Action] = [action for action in plan.actions if isinstance(action, MINE)]
    whole = settled(written(picture.then(), actions).after(20.0))
    for count in range(len(actions)):
        again = settled(written(picture.then(), actions[:count]).after(20.0))
        assert limits(again) == limits(whole)
        assert again.memory.quota_jobs.keys() == whole.memory.quota_jobs.keys()
        assert {id: each.count for id, each in again.memory.quota_jobs.items()} == {
            id: each.count for id, each in whole.memory.quota_jobs.items()
        }


def test_limits_go_down_before_others_go_up() -> None:
    picture = settled(runs(runs(a_site(), 1, "a", 4), 2, "a", 4, "b", "n2"))
    ended = picture.change_job(2, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now)
    both = waits(runs(ended, 3, "b", 2, on="n2"), 4, "b", 4)
    order = [action.why.rule for action in both.plan().actions if isinstance(action, SetQos)]
    assert order == ["quota.lower", "quota.higher"]


def test_a_turn_writes_no_more_than_it_may() -> None:
    picture = a_picture(*(own(f"t{i}", 1) for i in range(20)))
    plan = picture.plan()
    assert len([action for action in plan.actions if isinstance(action, MINE)]) == picture.want.quota.edits_at_once
    assert plan.wake_at is not None


def test_a_qos_that_is_not_seen_yet_when_a_team_comes_is_no_persons_doing() -> None:
    both = a_picture(own("a", 4), own("b", 4))
    alone = replace(both, memory=replace(both.memory, quotas={"q-a": both.memory.quotas["q-a"]}))
    made = [action for action in alone.plan().actions if isinstance(action, MINE)]
    memory = replace(alone.then().memory, quotas={**alone.then().memory.quotas, "q-b": both.memory.quotas["q-b"]})
    unseen = replace(alone, memory=memory).then()
    picture = settled(written(unseen, made).after(20.0))
    assert not any(event.kind == "quota.by_hand" for event in picture.plan().events)
    assert picture.seen.accounting is not None
    assert picture.seen.accounting.qos["stw-a-g"].preempts == {"stw-b-b"}


def test_limits_that_an_account_had_before_stay() -> None:
    picture = a_picture(own("a", 4))
    accounting = picture.seen.accounting
    assert accounting is not None
    team = replace(accounting.associations[0], limits={"gres/gpu": 6, "node": 2})
    picture = settled(picture.see(accounting=replace(accounting, associations=(team,))))
    assert picture.seen.accounting is not None
    found = picture.seen.accounting.of_account("a")
    assert found is not None
    assert dict(found.limits) == {"gres/gpu": 6, "node": 2, "gres/gpu:l4": 104}
    quotas = {"q-a": replace(picture.memory.quotas["q-a"], status=QuotaStatus.DELETING)}
    picture = settled(replace(picture, memory=replace(picture.memory, quotas=quotas)))
    assert picture.seen.accounting is not None
    found = picture.seen.accounting.of_account("a")
    assert found is not None
    assert dict(found.limits) == {"gres/gpu": 6, "node": 2}


def borrowers_end_while_slurmdbd_is_away() -> tuple[Picture, list[str]]:
    """Eight borrowed jobs of a team end one after the other, and nothing can be written; the events meanwhile."""
    picture = a_site(LISTS, own("a", 8), own("b", 8), machines=4)
    for each in range(8):
        picture = runs(picture, 10 + each, "a", 1, "b", f"n{each % 4 + 1}", started=1000.0 + each)
    picture = settled(picture)
    assert picture.seen.accounting is not None
    assert limits(picture)["stw-a-g"]["gres/gpu"] == 0
    picture = picture.see(accounting=replace(picture.seen.accounting, reachable=False))
    told: list[str] = []
    for each in range(8):
        picture = picture.change_job(10 + each, state=JobState.COMPLETED, nodes=frozenset(), ended=picture.now)
        plan = picture.plan()
        assert not any(isinstance(action, SetQos) for action in plan.actions)
        told += [event.kind for event in plan.events]
        picture = replace(picture, memory=plan.memory).after(60.0)
    return picture, told


def test_no_person_is_blamed_for_what_could_not_be_written_while_slurmdbd_was_away() -> None:
    _, told = borrowers_end_while_slurmdbd_is_away()
    assert "quota.frozen" in told
    assert "quota.by_hand" not in told


def test_limits_follow_again_when_slurmdbd_is_back() -> None:
    picture, _ = borrowers_end_while_slurmdbd_is_away()
    assert picture.seen.accounting is not None
    picture = picture.see(accounting=replace(picture.seen.accounting, reachable=True))
    picture = settled(waits(picture, 99, "a", 8))
    assert limits(picture)["stw-a-g"]["gres/gpu"] == 8
    assert limits(picture)["stw-a-b"]["gres/gpu"] == 0
