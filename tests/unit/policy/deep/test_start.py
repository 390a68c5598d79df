"""A slot's new machine serves after its deep check, where its group asks for one."""

from typing import Any

import pytest

from steward.model.action import DrainNode, ReleaseNodes, ReserveNodes, ReturnNode
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun, DeepState
from steward.model.slot import Hitch, SlotStep
from tests.builders.capacity import NODE, a_slot_at, slot, with_group, with_slot
from tests.builders.deep import a_run, done, reserved, with_run
from tests.builders.picture import T0, Picture, action_types, n, names

TOKEN = "abcdef012345-1-0"
STRESS = frozenset({DeepKind.STRESS})
ON_START: dict[str, Any] = {"cause": DeepCause.ON_START, "waiter": TOKEN, "kinds": STRESS}


def returning() -> Picture:
    picture = with_group(a_slot_at(SlotStep.RETURN), on_start_checks=("InstanceStress",))
    return picture.see(reservations_at=picture.now)


def given_back(picture: Picture) -> Picture:
    return picture.node(NODE, flags=frozenset({"DYNAMIC_NORM"}), reason=None)


def kinds(picture: Picture) -> list[type]:
    return action_types(picture.plan())


def test_its_node_is_reserved_while_it_is_still_held() -> None:
    decided = returning().plan()

    (run,) = decided.memory.deeps.values()
    assert (run.cause, run.waiter, run.kinds, run.nodes) == (DeepCause.ON_START, TOKEN, STRESS, names(NODE))
    assert action_types(decided) == [ReserveNodes]
    assert decided.memory.slots[n(NODE)].step is SlotStep.RETURN


def test_it_is_given_back_once_slurm_keeps_it_for_us() -> None:
    run = a_run(NODE, state=DeepState.RESERVED, **ON_START)
    assert ReturnNode not in kinds(with_run(returning(), run))
    assert ReturnNode in kinds(reserved(with_run(returning(), run), run))


def test_it_does_not_serve_while_the_check_goes_on() -> None:
    run = a_run(NODE, state=DeepState.RUNNING, **ON_START)
    picture = given_back(reserved(with_run(returning(), run), run))
    assert slot(picture.then(), NODE).step is SlotStep.RETURN


def test_it_serves_when_the_check_passed() -> None:
    run = done(DeepResult.PASSED, NODE, **ON_START)
    picture = given_back(reserved(with_run(returning(), run), run))
    assert slot(picture.then(), NODE).step is SlotStep.SERVING
    assert ReleaseNodes in kinds(picture)


def test_it_is_drained_before_it_is_released_when_the_check_failed() -> None:
    run = done(DeepResult.FAILED, NODE, **ON_START)
    picture = given_back(reserved(with_run(returning(), run), run))
    assert kinds(picture) == [DrainNode]


def test_its_instance_is_given_up_when_it_is_out_after_a_failed_check() -> None:
    failed = with_run(returning(), done(DeepResult.FAILED, NODE, **ON_START)).then()
    record = slot(failed, NODE)
    assert (record.step, record.hitch) == (SlotStep.END, Hitch.CHECKS)
    assert "a bit flipped" in record.trouble


def runs_of(picture: Picture) -> list[DeepRun]:
    return list(picture.memory.deeps.values())


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 2)])
def test_a_check_that_could_not_tell_is_made_once_more_and_no_oftener(before: int, after: int) -> None:
    picture = returning()
    for number in range(before):
        picture = with_run(picture, done(DeepResult.INCONCLUSIVE, NODE, id=f"d{number + 100}", **ON_START))
    assert len(runs_of(picture.then())) == after


def test_a_lone_machine_is_not_held_up_for_want_of_a_second_one() -> None:
    pairs = {"kinds": frozenset({DeepKind.CONNECTIVITY}), "asked": T0 - 60}
    picture = with_run(returning(), a_run(NODE, **{**ON_START, **pairs})).then()
    (run,) = runs_of(picture)
    assert run.results == {n(NODE): DeepResult.SKIPPED}
    assert ReturnNode in kinds(with_run(returning(), run))


def test_without_checks_on_start_nothing_is_reserved() -> None:
    picture = a_slot_at(SlotStep.RETURN)
    assert ReserveNodes not in kinds(picture)
    assert ReturnNode in kinds(picture)


@pytest.mark.parametrize("state", [DeepState.WAITING, DeepState.RESERVED, DeepState.RUNNING])
def test_a_slot_whose_check_was_called_off_is_checked_anew_when_it_is_to_serve_after_all(state: DeepState) -> None:
    run = a_run(NODE, state=state, **ON_START)
    away = with_slot(with_run(returning(), run), step=SlotStep.VERIFY).then(1.0)
    assert (slot(away, NODE).step, runs_of(away)[0].state) == (SlotStep.VERIFY, DeepState.DONE)
    again = with_slot(given_back(away), step=SlotStep.RETURN)
    assert slot(again.then(), NODE).step is SlotStep.RETURN
    assert [each.waiter for each in runs_of(again.then()) if each.is_open] == [TOKEN]


def test_a_slot_that_shall_leave_calls_its_check_off() -> None:
    run = a_run(NODE, state=DeepState.WAITING, **ON_START)
    gone = with_run(a_slot_at(SlotStep.SERVING), run).then()
    assert [one.state for one in runs_of(gone)] == [DeepState.DONE]
