"""Machines that break under one user's jobs, one after the other: rebooted and checked, not replaced."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import RebootInstance
from steward.model.case import Case, CaseStep, Remedy
from steward.model.health import Advice, Incarnation
from steward.model.ids import BootId, CaseId, InstanceId
from steward.model.node import NodeBase
from steward.policy.facts.users_faults import LITTLE_S, MOST_MACHINES, WITHIN_S
from tests.builders.picture import USER, Picture, a_cluster, action_types, n

OTHER = USER + 1
FIRST = tuple(f"n{number}" for number in range(1, MOST_MACHINES + 1))
NEXT = f"n{MOST_MACHINES + 1}"
HOUR_S = 3600.0


def breaks(picture: Picture, name: str, user: int = USER, *, ran_s: float = 60.0, **finding: Any) -> Picture:
    """A job of the user began on the node, and a fatal fault is found there."""
    job = 100 + len(picture.seen.jobs)
    running = picture.job(job, on=(name,), user_id=user, started=picture.now - ran_s)
    found = running.failing(name, **finding).then()
    return ended(found, job)


def ended(picture: Picture, job: int) -> Picture:
    return picture.see(jobs={id: one for id, one in picture.seen.jobs.items() if id != job})


def broke(*users: int, every_s: float = 300.0, ran_s: float = 60.0) -> Picture:
    """Jobs of these users broke the first nodes, one after the other."""
    picture = a_cluster(12, replacements_per_hour=100, breaker_min=100, check_breaker_min=100, concurrent_min=12)
    for name, user in zip(FIRST, users or (USER,) * len(FIRST), strict=False):
        picture = breaks(picture, name, user, ran_s=ran_s).after(every_s)
    return picture


def case_of(picture: Picture, name: str = NEXT) -> Case:
    return [case for case in picture.memory.cases.values() if case.node == n(name)][-1]


def test_the_first_machines_that_break_are_replaced() -> None:
    assert {case_of(broke(), name).rung for name in FIRST} == {Advice.REPLACE}


def test_one_more_that_breaks_in_the_same_way_under_the_same_user_is_rebooted_and_told_why() -> None:
    found = one_more()
    assert case_of(found.then()).rung is Advice.REBOOT
    (told,) = [event.text for event in found.plan().events if event.kind == "case.one_user"]
    assert f"{NEXT}: one user's jobs broke n[1-{MOST_MACHINES}] in the same way (kernel_log)" in told
    assert "case.one_user" not in [event.kind for event in found.then(1.0).plan().events]


def one_more(user: int = USER) -> Picture:
    """A job of the user has just begun on the next node, and its fault is found now."""
    picture = broke()
    return picture.job(99, on=(NEXT,), user_id=user, started=picture.now - 60.0).failing(NEXT)


@pytest.mark.parametrize(
    "picture",
    [
        lambda: breaks(broke(), NEXT, OTHER),
        lambda: breaks(broke(USER, OTHER, USER), NEXT),
        lambda: breaks(broke(), NEXT, check="other"),
        lambda: breaks(broke(), NEXT, ran_s=LITTLE_S),
        lambda: breaks(broke(ran_s=LITTLE_S), NEXT),
        lambda: breaks(broke().after(WITHIN_S), NEXT),
        lambda: broke().failing(NEXT).then(),
    ],
    ids=[
        "another user's job",
        "not all under one user",
        "another fault",
        "after a long run",
        "the others after long runs",
        "hours later",
        "no job is there",
    ],
)
def test_where_it_may_be_by_chance_the_machine_is_replaced(picture: Any) -> None:
    assert case_of(picture()).rung is Advice.REPLACE


def test_machines_that_break_under_one_run_may_have_lost_their_power_together() -> None:
    picture = a_cluster(12, replacements_per_hour=100, breaker_min=100, check_breaker_min=100, concurrent_min=12)
    picture = picture.job(99, on=(*FIRST, NEXT), started=picture.now - 60.0)
    for name in (*FIRST, NEXT):
        picture = picture.failing(name).then().after(300.0)
    assert {case_of(picture, name).rung for name in (*FIRST, NEXT)} == {Advice.REPLACE}


def test_a_user_with_much_of_the_cluster_meets_faults_by_chance() -> None:
    """All that runs for him counts, not only what runs where the fault is."""
    large = broke().job(99, on=("n11", "n12"), started=broke().now - LITTLE_S / 2)
    assert case_of(breaks(large, NEXT)).rung is Advice.REPLACE


def test_its_reboots_raise_no_other_repair_and_take_nothing_of_the_hours_repairs() -> None:
    out = breaks(broke(), NEXT).marked(NEXT)
    assert action_types(out.plan()) == [RebootInstance]
    picture = out.then(1.0)
    booted = picture.agent(NEXT, incarnation=Incarnation(instance=InstanceId(f"i-{NEXT}"), boot=BootId("boot-2")))
    back = booted.agent(NEXT, findings=()).then(1.0)
    assert case_of(back).step is CaseStep.PROVISION or case_of(back).step is CaseStep.VERIFY
    assert n(NEXT) not in back.memory.history
    again = breaks(over(back).after(HOUR_S), NEXT)
    assert (case_of(again).rung, case_of(again).is_open) == (Advice.REBOOT, True)


def over(picture: Picture) -> Picture:
    """The repair of the next one ended well."""
    case = replace(case_of(picture), step=CaseStep.CLOSED, closed=picture.now, returned=picture.now)
    served = picture.node(NEXT, base=NodeBase.IDLE, flags=frozenset(), reason=None)
    return replace(served, memory=replace(served.memory, cases={**served.memory.cases, case.id: case}))


def test_a_machine_that_does_not_pass_after_its_reboot_is_replaced() -> None:
    late = breaks(broke(), NEXT).marked(NEXT).then(1.0)
    rebooting = late.wait(late.want.repair.budgets.reboot_timeout_s + 30.0)
    case = case_of(rebooting)
    assert (case.rung, case.step) == (Advice.REPLACE, CaseStep.LAUNCH)


def often(user: int = USER) -> Picture:
    """The machine of the next one was rebooted as often as may be today, for faults that were found under his jobs."""
    found = one_more(user).then()
    made = tuple(
        Remedy(at=found.now - 60.0, rung=Advice.REBOOT, node=n(NEXT), instance=None, case=case, check="kernel_log")
        for case in (CaseId(f"c9{number}-1") for number in range(found.want.repair.budgets.reboots_per_day))
    )
    known = {case_of(found).hardware: made}
    return replace(found, memory=replace(found.memory, remedies=known)).marked(NEXT)


def test_a_machine_that_was_rebooted_for_it_again_and_again_is_held_and_not_replaced() -> None:
    held = often().then(1.0)
    case = case_of(held)
    assert case.step is CaseStep.HELD
    assert "one user's jobs broke n[1-3] in the same way" in case.why.text
    assert "no machine is replaced for what a job can do" in case.why.text
    assert case_of(often(OTHER).then(1.0)).step is CaseStep.LAUNCH


def test_where_no_machine_can_be_rebooted_it_is_replaced_as_ever() -> None:
    picture = broke()
    slots = {name: replace(slot, reboots=False) for name, slot in picture.want.slots.items()}
    without = replace(picture, want=replace(picture.want, slots=slots))
    assert case_of(breaks(without, NEXT)).rung is Advice.REPLACE
