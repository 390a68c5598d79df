"""A node whose repair the store has lost: its checks alone decide whether it serves again."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import DrainNode, LaunchInstance, RebootInstance, ReturnNode
from steward.model.case import Case, CaseStep, new_case_id, time_in_case_id
from steward.model.health import Advice, Severity
from steward.model.setting_types import RepairMode
from steward.policy.facts.lost_case import CASES_KEPT_S
from tests.builders.picture import T0, Picture, a_cluster, action_types, n

LOST = str(new_case_id(7, T0 - 60.0))


def drained(mark: str = f"steward:gpu:replace:{LOST}", **repair: Any) -> Picture:
    """A head with an empty store, and a node that an earlier one had taken out."""
    return a_cluster(**repair).drained("n2", mark)


def cases(picture: Picture) -> list[Case]:
    return [case for case in picture.memory.cases.values() if case.node == n("n2")]


def kinds(picture: Picture) -> list[str]:
    return [event.kind for event in picture.plan().events]


def checked() -> Picture:
    """Its new case is at the checks."""
    picture = drained().then()
    (case,) = cases(picture)
    return picture.drained("n2", f"steward:{case.check}:{case.rung.value}:{case.id}").wait(3.0, every_s=1.0)


def test_it_is_drained_for_a_new_case_in_which_the_checks_decide() -> None:
    (drain,) = [one for one in drained().plan().actions if isinstance(one, DrainNode)]
    assert (drain.node, drain.mark.check, drain.mark.action) == ("n2", "gpu", "none")
    assert "node.orphan" not in kinds(drained())
    (case,) = cases(checked())
    assert (case.step, case.rung, case.why.rule) == (CaseStep.VERIFY, Advice.NONE, "node.lost_case")


def test_it_is_given_back_when_its_checks_pass_and_nothing_was_done_to_its_machine() -> None:
    picture = checked()
    sound = picture.after(2.0).agent("n2", checked_at=picture.now + 2.0)
    assert [one.node for one in sound.plan().actions if isinstance(one, ReturnNode)] == ["n2"]
    closed = sound.then(1.0).node("n2", flags=frozenset(), reason=None).then()
    assert [case.step for case in cases(closed)] == [CaseStep.CLOSED]


def test_what_a_check_still_finds_there_is_repaired() -> None:
    found = drained().failing("n2", Severity.FATAL).then()
    (case,) = cases(found)
    assert (case.check, case.rung) == ("kernel_log", Advice.REPLACE)


def test_a_node_that_was_down_serves_again_only_after_its_checks() -> None:
    picture = a_cluster().down("n2", f"steward:agent:replace:{LOST}")
    assert not {ReturnNode, LaunchInstance, RebootInstance} & set(action_types(picture.plan()))
    assert len(cases(picture.then())) == 1


def silent_slurmd(picture: Picture) -> Picture:
    return picture.node("n2", responding=False)


def gone(picture: Picture) -> Picture:
    return picture.see(agents={name: view for name, view in picture.seen.agents.items() if name != n("n2")})


@pytest.mark.parametrize("silent", [silent_slurmd, gone])
def test_a_silent_machine_is_left_to_a_person_until_it_is_heard(silent: Callable[[Picture], Picture]) -> None:
    picture = silent(drained())
    assert (picture.plan().actions, kinds(picture)) == ((), ["node.orphan"])
    heard = replace(picture.then(30.0), seen=drained().seen)
    assert len(cases(heard.then())) == 1


@pytest.mark.parametrize(
    "mark",
    [
        f"steward:gpu:replace:{new_case_id(7, T0 - CASES_KEPT_S - 1.0)}",
        "steward:gpu:replace:by-hand",
        "my own drain",
    ],
)
def test_a_mark_of_a_repair_that_would_be_forgotten_by_now_and_a_persons_reason_stay(mark: str) -> None:
    assert drained(mark).plan().actions == ()


@pytest.mark.parametrize("mark", ["steward:setup:hold:abcdef012345", "steward:spare:hold:pool"])
def test_marks_of_slots_and_spares_are_no_repairs(mark: str) -> None:
    assert cases(drained(mark).then()) == []


def test_a_case_that_is_remembered_was_not_lost() -> None:
    """Who sets the mark of a repair that is over is a person."""
    picture = checked()
    closed = {case.id: replace(case, step=CaseStep.CLOSED, closed=picture.now) for case in cases(picture)}
    over = replace(picture, memory=replace(picture.memory, cases=closed))
    assert over.plan().actions == ()


def test_a_head_that_may_not_act_only_tells_of_it() -> None:
    picture = drained(mode=RepairMode.REPORT)
    assert picture.plan().actions == ()
    assert "case.withheld" in kinds(picture)


def test_the_time_in_an_id_is_that_of_its_case() -> None:
    assert time_in_case_id(new_case_id(12, T0 + 0.7)) == T0
    assert [time_in_case_id(id) for id in ("c1-", "pool", "12-65f", "c1-65g")] == [None] * 4
