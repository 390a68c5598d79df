"""A site with fixed machines: spares wait out of service, serve for broken nodes, and go back."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import (
    DownNode,
    DrainNode,
    LaunchInstance,
    RebootInstance,
    ReturnNode,
    TerminateInstance,
)
from steward.model.case import Case, Step
from steward.model.health import Advice, Incarnation, Severity
from steward.model.ids import BootId, InstanceId
from steward.model.instance import SPARES, Instance, InstanceState, Slot
from steward.model.mark import SPARE
from steward.model.node import NodeBase
from steward.model.observed import Freshness
from steward.policy.explain import explain_node
from tests.builders.picture import Picture, a_cluster, a_node, an_agent, n, names

HOLD = str(SPARE)
AGAIN_S = 61.0
"""After this long a launch that left no trace is asked for again."""


def a_site(*spares: str, held: bool = True, **repair: Any) -> Picture:
    """n1..n6 with fixed machines, and the named spares."""
    whole = a_cluster(**repair)
    seen, all_names = whole.seen, [*whole.seen.nodes, *(n(name) for name in spares)]
    machines = {InstanceId(f"static-{name}"): machine(name) for name in all_names}
    picture = whole.see(
        nodes={**seen.nodes, **{n(name): a_node(n(name)) for name in spares}},
        agents={**seen.agents, **{n(name): an_agent(n(name)) for name in spares}},
        instances=machines,
    )
    slots = {name: Slot(node=name, group=SPARES if name in spares else "main", fixed=True) for name in all_names}
    picture = replace(picture, want=replace(picture.want, slots=slots, spares=names(*spares)))
    for name in spares if held else ():
        picture = picture.drained(name, HOLD)
    return picture


def machine(name: str, **fields: object) -> Instance:
    made = Instance(id=InstanceId(f"static-{name}"), node=n(name), state=InstanceState.RUNNING)
    return replace(made, **fields)  # type: ignore[arg-type]


def case_of(picture: Picture, name: str = "n2") -> Case:
    return [case for case in picture.memory.cases.values() if case.node == name][-1]


def broken(picture: Picture, name: str = "n2") -> Picture:
    """The node died and was taken out of service by us."""
    return picture.lost(name).then().marked(name)


def lent(picture: Picture, spare: str = "s1", name: str = "n2") -> Picture:
    """The provider lists the spare as the case's."""
    token = case_of(picture, name).token
    loan = machine(spare, id=InstanceId(f"static-{spare}-{token}"), token=token, instead_of=n(name))
    others = {k: v for k, v in picture.seen.instances.items() if k != f"static-{spare}"}
    return picture.see(instances={**others, loan.id: loan}).then(1)


def free(picture: Picture, name: str) -> Picture:
    return picture.node(name, base=NodeBase.IDLE, flags=frozenset(), reason=None)


def serving(picture: Picture, spare: str = "s1", name: str = "n2") -> Picture:
    """The spare passed its checks and takes jobs."""
    return free(lent(picture, spare, name).checked(spare).then(1), spare).then(1)


def taken_back(picture: Picture, spare: str = "s1") -> Picture:
    """The provider ended the loan."""
    kept = {k: v for k, v in picture.seen.instances.items() if v.node != spare}
    return picture.see(instances={**kept, InstanceId(f"static-{spare}"): machine(spare)})


def actions(picture: Picture) -> list[tuple[type, str]]:
    """What is planned: each action and the node that it is about."""
    planned = picture.plan().actions
    return [(type(a), a.slot.node if isinstance(a, LaunchInstance) else getattr(a, "node", "")) for a in planned]


def text_of(picture: Picture, name: str) -> str:
    return "\n".join(explain_node(n(name), picture.seen, picture.want, picture.memory, picture.now))


# Waiting


def test_spares_in_service_are_held_with_one_mark() -> None:
    planned = a_site("s1", "s2", held=False).plan().actions
    assert [(type(a), a.mark) for a in planned if isinstance(a, DrainNode)] == [(DrainNode, SPARE)] * 2
    assert HOLD == "steward:spare:hold:pool"


def test_a_held_spare_is_left_as_it_is_and_is_no_orphan() -> None:
    decided = a_site("s1").plan()
    assert decided.actions == ()
    assert decided.events == ()


def test_a_spare_on_which_jobs_run_takes_no_more_of_them() -> None:
    assert actions(a_site("s1", held=False).node("s1", base=NodeBase.ALLOCATED)) == [(DrainNode, "s1")]


@pytest.mark.parametrize("reason", ["fan broken", "Action:Replce"])
def test_a_spare_that_somebody_else_took_out_is_not_touched(reason: str) -> None:
    assert a_site("s1").drained("s1", reason).plan().actions == ()


@pytest.mark.parametrize("blind", ["report", "old list"])
def test_nothing_is_held_when_nodes_may_not_be_touched_or_loans_are_unknown(blind: str) -> None:
    picture = a_site("s1", held=False, act=blind != "report")
    if blind == "old list":
        picture = picture.see(provider=Freshness.OLD)
    assert picture.plan().actions == ()


# Serving


def test_a_sound_spare_is_taken_for_a_broken_node_and_no_machine_is_ended() -> None:
    (action,) = broken(a_site("s1")).plan().actions
    assert isinstance(action, LaunchInstance)
    assert (action.slot.node, action.slot.instead_of, action.slot.group) == ("s1", "n2", "main")


def test_the_spare_is_checked_before_it_serves() -> None:
    picture = lent(broken(a_site("s1")))
    assert case_of(picture).step is Step.VERIFY
    checked = picture.checked("s1")
    assert actions(checked) == [(ReturnNode, "s1")]
    (action,) = checked.plan().actions
    assert isinstance(action, ReturnNode)
    assert action.mark == SPARE


def test_when_the_spare_serves_the_broken_node_is_left_to_a_person_with_our_mark() -> None:
    picture = serving(broken(a_site("s1")))
    case = case_of(picture)
    assert (case.step, case.stand_in, case.returned) == (Step.HELD, "s1", picture.now - 1)
    assert picture.wait(3600).plan().actions == ()


def test_explain_says_who_serves_and_what_a_person_is_to_do() -> None:
    picture = serving(broken(a_site("s1")))
    for part in ("Spare s1 serves in its place", "repair n2", "`scontrol update nodename=n2 state=resume`"):
        assert part in text_of(picture, "n2")
    assert "A spare that serves for n2" in text_of(picture, "s1")
    assert "we keep it out of service" in text_of(a_site("s1"), "s1")


def test_the_spare_goes_back_when_a_person_returns_the_mended_node() -> None:
    picture = serving(broken(a_site("s1")))
    picture = free(picture, "n2").agent("n2", connected=True, lost_at=None).then(1)
    assert case_of(picture).step is Step.CLOSED
    assert actions(picture.then(6)) == [(TerminateInstance, "s1")]
    assert actions(taken_back(picture)) == [(DrainNode, "s1")]


def test_the_spare_goes_on_serving_while_an_admin_has_the_broken_node() -> None:
    picture = serving(broken(a_site("s1"))).down("n2", "ticket 4711: board").then(1)
    assert case_of(picture).step is Step.CLOSED
    assert picture.wait(8 * 86400).plan().actions == ()
    assert "spare s1 served" in text_of(picture, "n2")


def test_the_spare_goes_on_serving_when_the_returned_node_is_broken_still() -> None:
    picture = serving(broken(a_site("s1")))
    picture = free(picture, "n2").lost("n2").then(1)
    assert case_of(picture).step is not Step.CLOSED
    assert not [a for a in picture.plan().actions if isinstance(a, TerminateInstance)]


def test_a_node_that_breaks_again_keeps_the_spare_that_serves_for_it() -> None:
    picture = serving(broken(a_site("s1", "s2"))).drained("n2", "Action:Replace", "FAIL").after(5)
    picture = picture.drained("n2", "Action:Replace", "FAIL").then().then(1)
    assert (case_of(picture).stand_in, case_of(picture).trigger.value) == ("s1", "admin")
    picture = picture.checked("s1").then(1)
    assert case_of(picture).step is Step.HELD
    assert actions(picture.after(1)) == []


def test_a_broken_spare_that_serves_gets_a_spare_itself() -> None:
    picture = serving(broken(a_site("s1", "s2", breaker_min=3)))
    picture = broken(picture, "s1")
    assert actions(picture) == [(LaunchInstance, "s2")]


def test_a_spare_that_serves_for_a_spare_goes_back_when_that_one_is_needed_no_longer() -> None:
    picture = serving(broken(serving(broken(a_site("s1", "s2", breaker_min=3))), "s1"), "s2", "s1")
    mended = free(picture, "n2").agent("n2", connected=True, lost_at=None).then(AGAIN_S)
    assert actions(mended) == [(TerminateInstance, "s1")]
    assert actions(taken_back(mended)) == [(TerminateInstance, "s2")]
    assert actions(taken_back(taken_back(mended), "s2")) == [(DrainNode, "s2")]


def test_stood_in_nodes_do_not_trip_the_breaker() -> None:
    picture = serving(broken(serving(broken(a_site("s1", "s2"))), "n4"), "s2", "n4")
    assert (DownNode, "n5") in actions(picture.lost("n5"))


# Want


def test_without_a_free_spare_capacity_is_told_to_be_wanting_with_growing_patience() -> None:
    picture = a_site("s1", breaker_min=9)
    picture = broken(serving(broken(picture)), "n4").then(1)
    waits = []
    for _ in range(4):
        waits.append(round(case_of(picture, "n4").next_try - picture.now) + 1)
        assert picture.plan().actions == ()
        picture = picture.after(waits[-1]).then(1)
    assert waits == [60, 120, 300, 600]
    assert "waits for a spare; capacity: no spare is free (s1 serves for n2)" in text_of(picture, "n4")


def test_the_first_want_is_an_event() -> None:
    picture = a_site("s1").drained("s1", "mine").lost("n2").then().marked("n2")
    told = [e.text for _ in range(1) for e in (*picture.plan().events, *picture.then(1).plan().events)]
    assert "n2: capacity: no spare is free (s1 was taken by somebody else); again in 60 s" in told


def test_a_spare_that_becomes_free_is_taken_at_once() -> None:
    picture = broken(a_site("s1").drained("s1", "mine")).after(3)
    assert picture.plan().actions == ()
    assert actions(picture.drained("s1", HOLD)) == [(LaunchInstance, "s1")]


@pytest.mark.parametrize("ill", ["no agent", "check", "off", "Slurm"])
def test_an_unsound_spare_is_passed_over(ill: str) -> None:
    picture = broken(a_site("s1", "s2"))
    if ill == "no agent":
        picture = picture.agent("s1", connected=False)
    elif ill == "check":
        picture = picture.failing("s1", Severity.DEGRADED, event=False)
    elif ill == "off":
        off = machine("s1", state=InstanceState.STOPPED)
        picture = picture.see(instances={**picture.seen.instances, off.id: off})
    else:
        picture = picture.node("s1", responding=False)
    assert (LaunchInstance, "s2") in actions(picture)


def test_two_broken_nodes_ask_for_two_spares() -> None:
    picture = a_site("s1", "s2", concurrent_min=2).lost("n2", "n4").then().marked("n2").marked("n4")
    assert actions(picture) == [(LaunchInstance, "s1"), (LaunchInstance, "s2")]


def test_a_spare_that_fails_its_verification_is_given_up_for_another() -> None:
    picture = lent(broken(a_site("s1", "s2", verify_timeout_s=20.0))).failing("s1", Severity.SUSPECT)
    picture = picture.agent("s1", findings=()).wait(21)
    assert case_of(picture).launches == 1
    assert case_of(picture).stand_in is None
    planned = actions(picture.after(AGAIN_S))
    assert (TerminateInstance, "s1") in planned
    assert (LaunchInstance, "s2") in planned


def test_a_spare_that_an_admin_takes_meanwhile_is_given_up() -> None:
    picture = lent(broken(a_site("s1", "s2"))).drained("s1", "mine").then(1)
    assert case_of(picture).launches == 1


@pytest.mark.parametrize("spares", [(), ("s1",)])
def test_where_no_spare_can_be_hoped_for_a_person_is_asked_at_once(spares: tuple[str, ...]) -> None:
    name = spares[0] if spares else "n2"
    picture = broken(a_site(*spares), name).then(1)
    assert case_of(picture, name).step is Step.HELD
    assert picture.plan().actions == ()


# Reboot


def rebooting() -> Picture:
    return a_site("s1").failing("n2", advice=Advice.REBOOT).then().marked("n2")


def test_a_reboot_is_asked_of_the_machine_behind_the_node() -> None:
    (action,) = rebooting().plan().actions
    assert isinstance(action, RebootInstance)
    assert action.instance == "static-n2"


def test_a_rebooted_node_returns_under_its_own_name() -> None:
    picture = rebooting().then(1)
    who = Incarnation(instance=InstanceId("i-n2"), boot=BootId("boot-2"))
    picture = picture.agent("n2", incarnation=who, findings=()).then(1)
    picture = picture.checked("n2").node("n2", slurmd_started=picture.now)
    assert actions(picture) == [(ReturnNode, "n2")]


def test_a_reboot_that_does_not_help_takes_a_spare() -> None:
    picture = rebooting().repair(launch_timeout_s=100).wait(101)
    assert (LaunchInstance, "s1") in actions(picture.after(AGAIN_S))


def test_an_admin_reboots_the_mended_node_and_the_spare_goes_back() -> None:
    picture = serving(broken(a_site("s1"))).after(10)
    picture = picture.drained("n2", "Action:Reboot", "FAIL").then().then(1)
    assert case_of(picture).rung is Advice.REBOOT
    assert case_of(picture).stand_in is None
    assert not [a for a in picture.plan().actions if isinstance(a, TerminateInstance)]


def test_a_machine_that_its_site_calls_off_is_lost_by_two_witnesses() -> None:
    off = machine("n2", state=InstanceState.STOPPED)
    picture = a_site("s1").agent_lost("n2")
    assert not case_opened(picture)
    assert case_opened(picture.see(instances={**picture.seen.instances, off.id: off}))


def case_opened(picture: Picture) -> bool:
    return any(event.kind == "case.opened" for event in picture.plan().events)
