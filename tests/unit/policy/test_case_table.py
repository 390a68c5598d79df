"""The table itself: complete, without a way to get stuck, and as the page shows it."""

from pathlib import Path

import pytest

from steward.model.case import Step
from steward.model.desired import RepairPolicy
from steward.policy.case_diagram import page
from steward.policy.case_facts import QUESTIONS
from steward.policy.case_table import TABLE, Fact, deadline, facts_of

PAGE = Path(__file__).parents[3] / "docs" / "case.md"
WAITING = [step for step in Step if step not in (Step.CLOSED, Step.HELD)]


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text() == page(), "run: python -m steward.policy.case_diagram > docs/case.md"


def test_every_fact_has_a_question_and_is_used() -> None:
    assert set(QUESTIONS) == set(Fact) == {fact for _, fact in TABLE}


@pytest.mark.parametrize("step", WAITING)
def test_every_step_has_a_deadline_and_a_way_out_by_it(step: Step) -> None:
    by_time = {Fact.LATE, Fact.DUD, Fact.SPENT, Fact.ESCALATE}
    assert deadline(step, RepairPolicy()) is not None
    assert by_time & set(facts_of(step))


def test_a_held_case_waits_for_a_person_alone() -> None:
    assert deadline(Step.HELD, RepairPolicy()) is None
    assert set(facts_of(Step.HELD)) == {Fact.COMMANDED, Fact.TAKEN, Fact.FREED}


@pytest.mark.parametrize("step", Step)
def test_every_step_leads_to_the_end(step: Step) -> None:
    reached, todo = set(), [step]
    while todo:
        at = todo.pop()
        reached.add(at)
        todo += [to for (a, _), to in TABLE.items() if a is at and to not in reached]
    assert Step.CLOSED in reached


def test_a_closed_case_never_moves() -> None:
    assert facts_of(Step.CLOSED) == ()
