"""Whom a smaller group takes."""

from dataclasses import replace
from typing import Any

from steward.model.capacity_policy import Victims
from steward.model.case import CaseStep
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.node import NodeBase, Reason
from steward.model.slot import SlotStep
from steward.policy.draft import Draft
from steward.policy.groups.victims import choose_victims
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.orders import after, an_update, with_rules, workers
from tests.builders.picture import T0, n, names


def chosen(picture: ApiPicture, count: int = 1) -> list[str]:
    draft = Draft(picture.seen, picture.want, picture.memory, picture.seen.at)
    slots = [slot for slot in picture.memory.slots.values() if slot.group == "workers"]
    return [slot.node.removeprefix("workers-") for slot in choose_victims(slots, count, draft)]


def with_job(picture: ApiPicture, id: int, *nodes: str, ran_s: float = 600.0, **fields: Any) -> ApiPicture:
    on = names(*(f"workers-{node}" for node in nodes))
    default: dict[str, Any] = {"state": JobState.RUNNING, "nodes": on, "started": T0 - ran_s}
    job = Job(id=JobId(id), name="train", user_id=1000, **{**default, **fields})
    return picture.see(jobs={**picture.seen.jobs, job.id: job})


def test_idle_nodes_go_newest_first() -> None:
    assert chosen(an_api_cluster(workers=3), 2) == ["3", "2"]


def test_nodes_that_have_not_joined_go_before_all_others_and_the_least_begun_first() -> None:
    picture = an_api_cluster(workers=4).slot("workers-1", step=SlotStep.SETUP).slot("workers-2", step=SlotStep.WAITING)
    assert chosen(picture, 3) == ["2", "1", "4"]


def test_failed_nodes_go_before_drained_and_these_before_idle_ones() -> None:
    picture = an_api_cluster(workers=5)
    picture = picture.node("workers-1", flags=frozenset({"DRAIN"}), reason=Reason(text="later", at=T0))
    picture = picture.agent("workers-2", connected=False).node("workers-3", base=NodeBase.DOWN)
    assert chosen(picture, 4) == ["3", "2", "1", "5"]


def test_a_node_under_repair_is_a_failed_one() -> None:
    assert chosen(an_api_cluster(workers=3).repaired("workers-1", CaseStep.VERIFY)) == ["1"]


def test_a_busy_node_is_taken_only_when_no_other_is_left() -> None:
    picture = with_job(an_api_cluster(workers=4), 7, "3", "4")
    assert chosen(picture, 2) == ["2", "1"]
    assert set(chosen(picture, 3)) >= {"1", "2"}


def test_a_node_is_busy_by_slurms_word_though_its_job_is_too_young_to_be_known() -> None:
    picture = an_api_cluster(workers=4)
    for name, base in (("workers-4", NodeBase.ALLOCATED), ("workers-3", NodeBase.MIXED)):
        picture = picture.node(name, base=base)
    assert chosen(picture, 2) == ["2", "1"]


def test_among_busy_nodes_the_least_work_is_lost() -> None:
    picture = with_job(an_api_cluster(workers=4), 7, "1", "2", ran_s=1000)
    picture = with_job(with_job(picture, 8, "3", ran_s=1500), 9, "4", ran_s=3000)
    assert chosen(picture, 1) == ["3"]


def test_once_a_job_has_lost_a_node_its_other_nodes_cost_nothing_more() -> None:
    picture = with_job(an_api_cluster(workers=4), 7, "1", "2", ran_s=1000)
    picture = with_job(with_job(picture, 8, "3", ran_s=2100), 9, "4", ran_s=2200)
    assert set(chosen(picture, 2)) == {"1", "2"}


def test_what_only_waits_or_is_over_costs_nothing() -> None:
    picture = with_job(an_api_cluster(workers=2), 7, "2", state=JobState.COMPLETED)
    assert chosen(picture) == ["2"]


def test_never_more_are_chosen_than_asked_for_or_than_there_are() -> None:
    picture = with_job(an_api_cluster(workers=3), 7, "1", "2")
    assert chosen(picture, 0) == []
    assert sorted(chosen(picture, 9)) == ["1", "2", "3"]


def test_the_order_of_the_picture_does_not_matter() -> None:
    picture = with_job(with_job(an_api_cluster(workers=6), 7, "1", "2"), 8, "3", "4")
    turned = picture.remember(slots=dict(reversed(list(picture.memory.slots.items()))))
    turned = turned.see(jobs=dict(reversed(list(picture.seen.jobs.items()))))
    for count in range(7):
        assert chosen(picture, count) == chosen(turned, count)


def test_random_victims_are_the_same_whenever_the_same_wish_is_looked_at() -> None:
    picture = with_rules(after(an_update(workers(5)), an_api_cluster(workers=20)), victims=Victims.RANDOM)
    turned = picture.remember(slots=dict(reversed(list(picture.memory.slots.items()))))
    assert chosen(picture, 5) == chosen(turned, 5)
    assert len(set(chosen(picture, 5))) == 5


def test_random_victims_differ_from_wish_to_wish() -> None:
    picture = with_rules(an_api_cluster(workers=20), victims=Victims.RANDOM)
    wishes = [after(an_update(workers(5)), picture.see(at=T0 + i)) for i in range(3)]
    for i in range(3):
        wishes[i] = after(an_update(workers(10 + i)), wishes[i])
    assert len({tuple(chosen(replace(wish), 5)) for wish in [picture, *wishes]}) > 1
    assert chosen(picture, 5) != ["20", "19", "18", "17", "16"]


def test_a_slot_whose_node_slurm_does_not_know_can_be_chosen() -> None:
    assert chosen(an_api_cluster(workers=2).without_node("workers-2")) == ["2"]


def test_the_controller_is_no_victim_of_its_workers() -> None:
    picture = an_api_cluster(workers=1)
    assert n("controller-1") in picture.memory.slots
    assert chosen(picture, 5) == ["1"]


def test_of_slots_made_at_the_same_time_the_last_one_goes_first() -> None:
    picture = an_api_cluster(workers=11)
    for number in range(1, 12):
        picture = picture.slot(f"workers-{number}", created=T0 - 90)
    assert chosen(picture, 3) == ["11", "10", "9"]
