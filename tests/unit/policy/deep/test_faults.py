"""What a failed deep check means for a node in service, and what it does not."""

from dataclasses import replace

import pytest

from steward.model.case import Trigger
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun
from tests.builders.deep import a_run, done, with_run
from tests.builders.picture import T0, Picture, a_cluster

FAILED = done(DeepResult.FAILED, "n2")


def opened(picture: Picture) -> list[tuple[str, str, Trigger]]:
    return [(case.node, case.check, case.trigger) for case in picture.plan().memory.cases.values()]


def test_a_node_that_failed_is_drained_and_repaired() -> None:
    assert opened(with_run(a_cluster(), FAILED)) == [("n2", "deep.stress", Trigger.DEGRADED)]


def test_the_case_names_what_was_measured() -> None:
    (case,) = with_run(a_cluster(), FAILED).plan().memory.cases.values()
    assert "a bit flipped" in str(case.why)


def test_the_kind_that_failed_is_the_check() -> None:
    pairs = frozenset({DeepKind.CONNECTIVITY})
    run = done(DeepResult.FAILED, "n2", kinds=pairs)
    assert opened(with_run(a_cluster(), run)) == [("n2", "deep.connectivity", Trigger.DEGRADED)]


@pytest.mark.parametrize("result", [r for r in DeepResult if r is not DeepResult.FAILED])
def test_any_other_result_opens_nothing(result: DeepResult) -> None:
    assert opened(with_run(a_cluster(), done(result, "n2"))) == []


@pytest.mark.parametrize(
    "newer",
    [
        done(DeepResult.PASSED, "n2", id="d2", ended=T0 - 0.5),
        done(DeepResult.FAILED, "n2", id="d2", ended=T0 - 0.5, cause=DeepCause.ON_START),
    ],
    ids=["passed since", "a new machine's"],
)
def test_an_older_failure_is_no_fault_any_more(newer: DeepRun) -> None:
    assert opened(with_run(with_run(a_cluster(), FAILED), newer)) == []


def test_a_machine_that_booted_since_is_another_matter() -> None:
    assert opened(with_run(a_cluster(), FAILED).node("n2", boot_time=T0 - 0.5)) == []


def test_a_site_may_have_it_only_reported() -> None:
    picture = with_run(a_cluster(), FAILED)
    told = replace(picture, want=replace(picture.want, modes={"deep.*": "report"}))
    assert opened(told) == []


def test_a_node_whose_check_goes_on_is_left_alone() -> None:
    assert opened(with_run(a_cluster(), a_run("n2"))) == []


def test_a_repair_that_was_done_is_not_begun_anew_for_the_same_check() -> None:
    picture = with_run(a_cluster(), FAILED).then()
    (case,) = picture.memory.cases.values()
    closed = replace(case, step=type(case.step).CLOSED, closed=T0 + 5)
    after = replace(picture, memory=replace(picture.memory, cases={case.id: closed}))
    assert [c.id for c in after.after(6.0).plan().memory.cases.values() if c.is_open] == []
