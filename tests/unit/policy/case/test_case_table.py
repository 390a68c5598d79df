"""The table itself: complete, without a way to get stuck, and as the page shows it."""

from dataclasses import replace
from pathlib import Path

import pytest

from steward.model.case import Case, CaseStep, Trigger
from steward.model.health import Advice
from steward.model.ids import CaseId
from steward.model.node import NodeBase
from steward.model.repair_policy import LadderPolicy, RepairPolicy
from steward.model.why import Why
from steward.policy.case.table import CASE_TABLE, CaseFact, deadline, page
from tests.builders.picture import a_cluster, n

PAGE = Path(__file__).parents[4] / "docs" / "case.md"
SHORT = {
    "drain_deadline_s": 30.0,
    "release_deadline_h": 30.0 / 3600,
    "launch_timeout_s": 30.0,
    "provision_timeout_s": 30.0,
    "verify_timeout_s": 30.0,
    "return_timeout_s": 30.0,
    "budgets": LadderPolicy(reset_timeout_s=10.0),
}
WAITING = [step for step in CaseStep if step not in (CaseStep.CLOSED, CaseStep.HELD)]


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text() == page(), "run: python -m steward.policy.case.table > docs/case.md"


def test_every_fact_is_used() -> None:
    assert set(CaseFact) == {fact for _, fact in CASE_TABLE.rows}


@pytest.mark.parametrize("step", WAITING)
def test_every_step_has_a_deadline_and_a_way_out_by_it(step: CaseStep) -> None:
    by_time = {CaseFact.LATE, CaseFact.DUD, CaseFact.SPENT, CaseFact.ESCALATE, CaseFact.NO_HELP}
    assert deadline(step, RepairPolicy()) is not None
    assert by_time & set(CASE_TABLE.facts_of(step))


@pytest.mark.parametrize("step", WAITING)
def test_a_step_in_which_nothing_happens_is_left_when_its_time_is_over(step: CaseStep) -> None:
    """No mark appears, the jobs go on, the provider makes nothing, no agent comes, no slurmd registers."""
    picture = a_cluster().repair(**SHORT, max_launches=1).agent_lost("n2")
    if step not in (CaseStep.SUSPECT, CaseStep.DRAIN):
        picture = picture.drained("n2", "steward:agent:replace:c1-0").node("n2", base=NodeBase.ALLOCATED)
    trigger = Trigger.LOST if step is CaseStep.SUSPECT else Trigger.DEGRADED
    case = Case(
        id=CaseId("c1-0"),
        node=n("n2"),
        trigger=trigger,
        check="agent",
        step=step,
        entered=picture.now,
        opened=picture.now,
        why=Why(rule="test", text="a test", evidence=("x",)),
        rung=Advice.RESET_GPU if step is CaseStep.MEND else Advice.REPLACE,
        marked=picture.now,
        next_try=picture.now + 1e9,
    )
    memory = replace(picture.memory, cases={case.id: case}, next_case=2)
    later = replace(picture, memory=memory).wait(60.0)
    left = later.memory.cases.get(case.id)
    assert left is None or left.step in (CaseStep.HELD, CaseStep.CLOSED)


def test_a_held_case_waits_for_a_person_or_for_a_machine_that_is_heard_after_all() -> None:
    assert deadline(CaseStep.HELD, RepairPolicy()) is None
    assert set(CASE_TABLE.facts_of(CaseStep.HELD)) == {
        CaseFact.COMMANDED,
        CaseFact.TAKEN,
        CaseFact.FREED,
        CaseFact.HEARD_AGAIN,
        CaseFact.CAME,
    }


@pytest.mark.parametrize("step", CaseStep)
def test_every_step_leads_to_the_end(step: CaseStep) -> None:
    reached, todo = set(), [step]
    while todo:
        at = todo.pop()
        reached.add(at)
        todo += [to for (a, _), to in CASE_TABLE.rows.items() if a is at and to not in reached]
    assert CaseStep.CLOSED in reached


def test_a_closed_case_never_moves() -> None:
    assert CASE_TABLE.facts_of(CaseStep.CLOSED) == ()
