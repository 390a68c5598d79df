"""What a slot asks for on its way into service: held, launched, set up, verified, given to Slurm."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.action import CheckNow, DownNode, DrainNode, LaunchInstance, ReturnNode
from steward.model.agent_action import SetUpNode
from steward.model.capacity_policy import Pool
from steward.model.group import Role, Version
from steward.model.health import Severity
from steward.model.ids import InstanceId
from steward.model.instance import InstanceState
from steward.model.node import NodeBase, Reason
from steward.model.observed import Freshness
from steward.model.setup import SetupState
from steward.model.slot import Hitch, SlotStep
from tests.builders.capacity import (
    MARK,
    NODE,
    SCRIPTS,
    a_slot_at,
    asked,
    nothing_there,
    planned,
    reported,
    slot,
    the,
    with_group,
    with_slot,
)
from tests.builders.picture import T0, Picture, n
from tests.builders.want import but

TOKEN = "abcdef012345-1-0"


def waiting(**fields: Any) -> Picture:
    return with_slot(nothing_there(a_slot_at(SlotStep.WAITING)), instance=None, **fields)


def pooled(picture: Picture, *, fixed: bool = False) -> Picture:
    pools = {"workers": Pool(group="workers", nodes=(n(NODE),), fixed=fixed)}
    return replace(picture, want=replace(picture.want, capacity=but(picture.want.capacity, pools=pools)))


def known_to_slurm(**fields: Any) -> Picture:
    """A waiting slot of a pool: slurm.conf has its node, no machine runs."""
    shown = {"flags": frozenset(), "reason": None, **fields}
    return pooled(
        with_slot(a_slot_at(SlotStep.WAITING), instance=None).see(instances={}, agents={}).node(NODE, **shown)
    )


def refusing(error: str, tries: int = 0, hitch: Hitch = Hitch.NONE) -> Picture:
    fields = {"step": SlotStep.LAUNCH, "launched": T0 - 10, "tries": tries, "hitch": hitch}
    return asked(waiting(**fields), f"launch:{TOKEN}:{T0 - 10:.3f}", error)


def refused(error: str, tries: int = 0, hitch: Hitch = Hitch.NONE) -> Picture:
    return refusing(error, tries, hitch).then()


def scripted(step: SlotStep = SlotStep.SETUP, **rules: Any) -> Picture:
    return with_group(a_slot_at(step, **rules), lifecycle=SCRIPTS)


def test_a_node_is_launched_once_it_has_powered_down() -> None:
    hold = Reason(text=MARK)
    going = known_to_slurm(flags=frozenset({"CLOUD", "DRAIN", "POWERING_DOWN"}), reason=hold)
    off = going.node(NODE, flags=frozenset({"CLOUD", "DRAIN", "POWERED_DOWN"}))
    assert [slot(picture.then(), NODE).step for picture in (going, off)] == [SlotStep.WAITING, SlotStep.LAUNCH]


def test_a_node_that_is_only_down_is_drained_before_it_is_powered_up() -> None:
    hold = Reason(text=MARK)
    off = known_to_slurm(base=NodeBase.DOWN, flags=frozenset({"CLOUD", "POWERED_DOWN"}), reason=hold)
    assert planned(off) == [DrainNode]
    held = off.then(1).node(NODE, flags=frozenset({"CLOUD", "DRAIN", "POWERED_DOWN"}), reason=hold)
    assert planned(held) == [LaunchInstance]


@pytest.mark.parametrize(("serial", "tries"), [(0, 2), (1, 0)], ids=["same version", "another version"])
def test_what_is_made_from_another_version_has_not_failed_yet(serial: int, tries: int) -> None:
    failed = waiting(tries=2, hitch=Hitch.SCRIPT, trouble="exit status 1")
    record = slot(with_group(failed, version=Version(serial=serial)).then(), NODE)
    assert (record.step, record.version.serial, record.tries) == (SlotStep.LAUNCH, serial, tries)
    assert record.hitch is (Hitch.SCRIPT if tries else Hitch.NONE)


def test_a_launch_names_the_slots_token_the_groups_types_and_its_feature() -> None:
    launch = the(LaunchInstance, waiting())
    assert launch.token == TOKEN
    assert (launch.slot.types, launch.slot.features, launch.slot.role) == (("ml.g5.xlarge",), {"workers"}, "Compute")
    assert launch.case is None


def test_a_node_that_slurm_knows_is_held_before_its_machine_is_launched() -> None:
    picture = known_to_slurm()
    assert str(the(DrainNode, picture).mark) == MARK
    assert LaunchInstance not in planned(picture)
    assert planned(picture.then(1).drained(NODE, MARK)) == [LaunchInstance]


def test_a_node_that_somebody_else_took_out_is_left_as_it_is_and_its_machine_is_launched() -> None:
    assert planned(known_to_slurm().drained(NODE, "maintenance")) == [LaunchInstance]


def test_jobs_on_a_machine_that_is_gone_are_told_so() -> None:
    assert planned(with_slot(known_to_slurm(base=NodeBase.ALLOCATED), launches=1)) == [DownNode]


def test_a_stopped_machine_that_bears_the_name_is_neither_ended_nor_doubled() -> None:
    stopped = a_slot_at(SlotStep.WAITING).seen.instances[InstanceId("i-1")]
    picture = known_to_slurm().drained(NODE, MARK)
    seen = picture.see(instances={stopped.id: replace(stopped, state=InstanceState.STOPPED, token="")})
    assert planned(seen) == []


def in_use(picture: Picture) -> Picture:
    """An agent speaks for the node of a slot that has no machine, and a job runs there; the provider lists nothing."""
    there = pooled(with_slot(picture, instance=None)).see(instances={})
    return there.node(NODE, base=NodeBase.ALLOCATED, flags=frozenset(), reason=None).job(7, on=(NODE,))


@pytest.mark.parametrize("launches", [0, 1])
def test_a_machine_that_the_provider_does_not_list_keeps_its_jobs_and_its_name(launches: int) -> None:
    busy = with_slot(in_use(a_slot_at(SlotStep.WAITING)), launches=launches)
    for _ in range(3):
        busy = busy.then(3600)
        assert planned(busy) == []


def test_so_does_one_whose_agent_is_away_or_whose_node_somebody_took_out() -> None:
    busy = in_use(a_slot_at(SlotStep.WAITING)).then(3600)
    assert planned(busy.see(agents={})) == []
    assert planned(busy.drained(NODE, "maintenance")) == []


def test_an_idle_one_is_let_be_until_its_agent_had_the_time_to_connect_to_a_new_head() -> None:
    idle = known_to_slurm().see(agents_since=T0 - 1)
    assert planned(idle) == []
    assert planned(idle.then(3600)) == [DrainNode]


def test_a_dynamic_node_that_registers_itself_drained_gets_our_mark() -> None:
    picture = a_slot_at(SlotStep.PROVISION).node(NODE, reason=None).see(agents={})
    assert str(the(DrainNode, picture).mark) == MARK


def test_a_dynamic_node_that_registers_itself_in_service_is_held_at_once() -> None:
    picture = a_slot_at(SlotStep.PROVISION).node(NODE, reason=None, flags=frozenset({"DYNAMIC_NORM"})).see(agents={})
    assert str(the(DrainNode, picture).mark) == MARK


@pytest.mark.parametrize(
    ("error", "hitch", "waits"),
    [
        ("capacity: none left", Hitch.CAPACITY, [30.0, 60.0, 120.0, 300.0, 300.0]),
        ("quota: 10 of 10 used", Hitch.QUOTA, [600.0, 1800.0, 1800.0]),
        ("refused: no such image", Hitch.REFUSED, [10.0, 60.0, 300.0, 300.0]),
        ("no answer", Hitch.OTHER, [10.0, 60.0, 300.0, 300.0]),
    ],
)
def test_each_kind_of_refusal_has_its_own_patience(error: str, hitch: Hitch, waits: list[float]) -> None:
    for tries, wait in enumerate(waits):
        record = slot(refused(error, tries, hitch if tries else Hitch.NONE), NODE)
        assert (record.step, record.hitch, record.trouble, record.next_try - T0) == (
            SlotStep.WAITING,
            hitch,
            error,
            wait,
        )


def test_a_launch_whose_fault_is_said_to_pass_and_never_does_is_taken_for_refused_and_that_is_told_once() -> None:
    error = "machines launch: no such image"
    eleven = refused(error, 10, Hitch.OTHER)
    assert (slot(eleven, NODE).hitch, slot(eleven, NODE).tries) == (Hitch.OTHER, 11)
    events = refusing(error, 11, Hitch.OTHER).plan().events
    told = [event.text for event in events if event.kind == "slot.refused"]
    assert told == [f"{NODE}: 12 launches in a row failed, the last one: {error}; this counts as a refusal"]
    twelve = refused(error, 11, Hitch.OTHER)
    assert (slot(twelve, NODE).hitch, slot(twelve, NODE).tries) == (Hitch.REFUSED, 12)
    assert slot(twelve, NODE).next_try == T0 + 300.0, "it is asked for again all the same"
    again = refused(error, 12, Hitch.REFUSED)
    assert (slot(again, NODE).hitch, slot(again, NODE).tries) == (Hitch.REFUSED, 13)


def test_not_so_while_the_provider_does_not_answer_at_all() -> None:
    silent = refusing("no answer", 40, Hitch.OTHER).see(provider=Freshness.OLD)
    assert slot(silent.then(), NODE).hitch is not Hitch.REFUSED


def machine_coming(state: InstanceState) -> Picture:
    """A machine is listed that was asked for some seconds ago; nobody knows how the launch went."""
    picture = with_slot(a_slot_at(SlotStep.PROVISION).see(agents={}), launched=T0 - 5)
    machine = replace(picture.seen.instances[InstanceId("i-1")], state=state, token=TOKEN)
    return picture.see(instances={machine.id: machine})


def test_a_machine_that_is_not_on_is_asked_for_again_where_the_head_was_killed_in_its_launch() -> None:
    """The provider may have been left between two steps; the token is the same."""
    picture = machine_coming(InstanceState.PENDING)
    assert the(LaunchInstance, picture).token == TOKEN
    assert planned(picture.then(1)) == []
    known = asked(picture, f"launch:{TOKEN}:{T0 - 5:.3f}")
    assert planned(known) == []
    assert planned(machine_coming(InstanceState.RUNNING)) == []


def test_a_refused_launch_is_asked_for_again_with_the_same_token_when_its_time_has_come() -> None:
    picture = refused("capacity: none left")
    assert planned(picture.after(29.9)) == []
    assert the(LaunchInstance, picture.after(30.0)).token == TOKEN


def test_scripts_are_ordered_once_the_node_is_held_and_its_agent_speaks() -> None:
    order = the(SetUpNode, scripted())
    assert (order.token, order.lifecycle, order.features) == (f"{TOKEN}-0-0", SCRIPTS, {"workers"})
    assert NODE in order.resource_config
    assert SetUpNode not in planned(scripted().node(NODE, flags=frozenset(), reason=None))
    assert SetUpNode not in planned(scripted().see(agents={}))


def test_scripts_that_run_are_not_ordered_again() -> None:
    assert planned(reported(scripted(), f"{TOKEN}-0-0", SetupState.RUNNING)) == []


def test_scripts_that_failed_are_tried_again_with_another_token_after_a_while() -> None:
    picture = reported(scripted(), f"{TOKEN}-0-0", SetupState.FAILED, step="on_create.sh", exit_status=3, why="exit 3")
    after = picture.then()
    assert slot(after, NODE).trouble == (
        "lifecycle scripts did not run successfully: on_create.sh, exit status 3; exit 3"
    )
    assert planned(after.after(59.9)) == []
    assert the(SetUpNode, after.after(60.0)).token == f"{TOKEN}-0-1"


def test_after_three_failures_on_one_machine_another_one_is_launched() -> None:
    picture = with_slot(scripted(), tries=2, hitch=Hitch.SCRIPT)
    after = reported(picture, f"{TOKEN}-0-2", SetupState.FAILED).then()
    assert slot(after, NODE).step is SlotStep.END
    empty = nothing_there(after).after(40).then()
    assert (slot(empty, NODE).step, slot(empty, NODE).token) == (SlotStep.WAITING, "abcdef012345-1-1")
    assert slot(empty, NODE).next_try == T0 + 900.0


def test_a_report_of_another_run_says_nothing() -> None:
    after = reported(scripted(), f"{TOKEN}-7-0", SetupState.SUCCEEDED).then()
    assert slot(after, NODE).step is SlotStep.SETUP


def test_a_node_is_verified_by_checks_that_were_made_since() -> None:
    picture = a_slot_at(SlotStep.VERIFY)
    assert CheckNow in planned(picture.agent(NODE, checked_at=T0 - 10))
    assert planned(picture.agent(NODE, checked_at=T0 - 9)) == [ReturnNode]


@pytest.mark.parametrize("spoil", ["finding", "no slurmd", "old slurmd", "silent", "not held", "no agent"])
def test_an_unsound_node_is_not_given_to_slurm(spoil: str) -> None:
    picture = with_slot(a_slot_at(SlotStep.VERIFY), launched=T0 - 60, old_slurmd=T0 - 500).checked(NODE)
    worse = {
        "finding": lambda p: p.failing(NODE, Severity.DEGRADED, event=False),
        "no slurmd": lambda p: p.node(NODE, slurmd_started=None),
        "old slurmd": lambda p: p.node(NODE, slurmd_started=T0 - 500),
        "silent": lambda p: p.node(NODE, responding=False),
        "not held": lambda p: p.node(NODE, flags=frozenset(), reason=None),
        "no agent": lambda p: p.see(agents={}),
    }[spoil](picture)
    assert slot(worse.then(), NODE).step is SlotStep.VERIFY
    assert ReturnNode in planned(picture)


def test_a_node_that_fails_its_checks_for_long_gets_another_machine_and_the_trouble_says_which() -> None:
    picture = with_slot(a_slot_at(SlotStep.VERIFY), entered=T0 - 300).failing(NODE, check="gpu", text="lost one")
    record = slot(picture.then(), NODE)
    assert (record.step, record.hitch, record.trouble) == (SlotStep.END, Hitch.CHECKS, "check gpu failed: lost one")


def test_a_node_that_slurm_does_not_take_back_is_given_back_again_with_growing_patience() -> None:
    late = with_slot(a_slot_at(SlotStep.RETURN), entered=T0 - 60, tries=1, hitch=Hitch.OTHER, next_try=T0 - 60)
    again = late.then(5.0)
    assert (slot(again, NODE).step, slot(again, NODE).tries) == (SlotStep.VERIFY, 2)
    nearly = again.wait(50.0).checked(NODE)
    assert slot(nearly.then(), NODE).step is SlotStep.VERIFY
    assert slot(nearly.then(5.0).checked(NODE).then(), NODE).step is SlotStep.RETURN


def test_that_patience_never_costs_the_node_its_machine() -> None:
    fields = {"entered": T0 - 149, "tries": 9, "hitch": Hitch.OTHER, "next_try": T0 + 9_000}
    picture = with_slot(a_slot_at(SlotStep.VERIFY), **fields).checked(NODE)
    assert slot(picture.then(), NODE).step is SlotStep.VERIFY
    assert slot(picture.after(1.0).then(), NODE).step is SlotStep.RETURN


def test_only_our_own_hold_is_lifted() -> None:
    picture = a_slot_at(SlotStep.RETURN)
    assert planned(picture) == [ReturnNode]
    assert planned(picture.node(NODE, reason=Reason(text="maintenance"))) == []


def test_a_login_machine_is_no_node_of_slurm() -> None:
    picture = with_group(a_slot_at(SlotStep.VERIFY), role=Role.LOGIN).see(nodes={}).checked(NODE)
    assert slot(picture.then(), NODE).step is SlotStep.SERVING


def test_a_fixed_machine_is_taken_as_it_is_and_never_launched() -> None:
    picture = pooled(with_slot(a_slot_at(SlotStep.WAITING), instance=None), fixed=True)
    assert slot(picture.then(), NODE).step is SlotStep.VERIFY
    assert planned(picture.see(instances={}, agents={})) == []


def test_the_agent_of_the_machine_before_is_not_taken_for_the_new_ones() -> None:
    picture = with_slot(a_slot_at(SlotStep.WAITING), instance=None, entered=T0).see(instances={})
    assert planned(picture) == []
    assert planned(picture.see(agents={})) == [LaunchInstance]
