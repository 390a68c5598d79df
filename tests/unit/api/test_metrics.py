"""The times that Prometheus gets."""

from dataclasses import replace

from steward.api.metrics import Metrics
from steward.model.case import Case, CaseStep, Trigger
from steward.model.ids import CaseId, JobId
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.plan import Plan
from steward.model.resume import Attempt, Decision, JobMemory
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from steward.workflows.snapshot import Snapshot
from tests.builders.picture import n

WHY = Why(rule="test", text="a test")
ON = ResumeMode.parse("1")


def case(id: str, fault_at: float, **times: float) -> Case:
    return Case(
        id=CaseId(id),
        node=n("n1"),
        trigger=Trigger.LOST,
        check="agent",
        step=CaseStep.CLOSED,
        entered=0.0,
        opened=fault_at,
        why=WHY,
        fault_at=fault_at,
        **times,  # type: ignore[arg-type]
    )


def job(running: float | None) -> JobMemory:
    attempt = Attempt(
        decided_for="a1", decision=Decision.REQUEUE, why=WHY, at=1001.0, culprits=frozenset({n("n1")}), running=running
    )
    return JobMemory(id=JobId(7), uid=1, mode=ON, opted_at=1.0, attempts=(attempt,))


def turn(metrics: Metrics, before: Memory, after: Memory) -> str:
    plan = Plan(actions=(), memory=after)
    metrics.watch(Snapshot(at=1010.0, number=1, seen=Observed(at=1010.0), before=before, memory=after, plan=plan))
    return metrics.text().decode()


def test_each_time_of_a_case_counts_once_when_it_is_reached() -> None:
    metrics, marked = Metrics(), case("c1", 1000.0, detected=1000.5, marked=1001.0)
    first, second = Memory(cases={marked.id: marked}), Memory(cases={marked.id: replace(marked, returned=1030.0)})
    turn(metrics, Memory(), first)
    text = turn(metrics, first, second)
    assert "steward_detect_seconds_sum 0.5" in text
    assert "steward_mark_seconds_sum 1.0" in text
    assert "steward_mark_seconds_count 1.0" in text
    assert "steward_returned_seconds_sum 30.0" in text


def test_a_resume_is_measured_from_the_fault_it_is_blamed_on_and_not_from_an_older_one() -> None:
    metrics = Metrics()
    cases = {one.id: one for one in (case("c1", 10.0), case("c2", 1000.0))}
    text = turn(
        metrics, Memory(cases=cases, jobs={JobId(7): job(None)}), Memory(cases=cases, jobs={JobId(7): job(1003.0)})
    )
    assert "steward_running_seconds_sum 3.0" in text


def test_when_a_damaged_store_was_set_aside_is_told_at_each_scrape() -> None:
    told = [0.0]
    metrics = Metrics(set_aside_at=lambda: told[-1])
    assert "steward_store_set_aside_timestamp_seconds 0.0" in metrics.text().decode()
    told.append(1234.0)
    assert "steward_store_set_aside_timestamp_seconds 1234.0" in metrics.text().decode()
