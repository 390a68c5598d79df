"""Partitions of API groups: closed until the minimum is there, open then; ours only; people's settings stand."""

from dataclasses import replace

from steward.model.action import SetGate, WritePartitions
from steward.model.agent_action import Action
from steward.model.capacity_policy import GateRule
from steward.model.group import Goal, GroupStatus
from steward.model.memory import Memory
from steward.model.node import Node, NodeBase
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why
from tests.builders.gates import (
    DOWN,
    GATED,
    INACTIVE,
    SERVING,
    UP,
    decide,
    dev,
    head,
    kinds,
    regrouped,
    set_gates,
    shown,
    then,
)
from tests.builders.picture import action_types, n


def test_a_partition_is_closed_while_its_group_waits_for_its_minimum() -> None:
    plan = decide(head(dev(GATED)))

    assert set_gates(plan) == [False]
    assert kinds(plan) == ["gate.closed"]
    assert "group w waits for its minimum" in str(plan.actions[0].why)
    assert "minimum 2, target 4" in str(plan.actions[0].why)


def test_it_is_opened_when_the_group_is_in_service() -> None:
    closed = then(head(dev(GATED), state=DOWN))
    plan = decide(regrouped(shown(closed, DOWN), dev(SERVING)))

    assert set_gates(plan) == [True]
    assert kinds(plan) == ["gate.opened"]


def test_the_same_picture_again_asks_for_nothing() -> None:
    closing = head(dev(GATED))
    closed = shown(then(closing), DOWN)

    assert not decide(then(closing)).actions
    assert not decide(closed).actions
    assert not decide(shown(then(closed), DOWN)).actions
    assert decide(then(closed)).memory == then(closed).memory


def test_a_setting_that_did_not_take_is_asked_for_again() -> None:
    again = shown(then(head(dev(GATED)), 60.0), UP)

    assert set_gates(decide(again)) == [False]
    assert not decide(again).events


def test_a_wish_that_turns_twice_before_the_next_look_is_asked_for_twice() -> None:
    opening = regrouped(head(dev(GATED), state=DOWN), dev(SERVING))
    assert set_gates(decide(opening)) == [True]

    closing = regrouped(then(opening), dev(GATED))  # the picture still shows it as it was before we opened it
    assert set_gates(decide(closing)) == [False]


def test_a_partition_that_serves_is_not_closed_when_a_second_group_joins_it() -> None:
    old = dev(SERVING, good=Goal(target=4, minimum=2))

    assert set_gates(decide(head(old, dev(GATED, name="x"), state=DOWN))) == [True]
    assert set_gates(decide(head(dev(GATED), dev(GATED, name="x")))) == [False]


def test_a_raised_minimum_closes_the_partition_of_a_lone_group() -> None:
    assert set_gates(decide(head(dev(GroupStatus.UPDATING, good=Goal(target=2, minimum=1))))) == [False]


def test_only_the_strict_rule_closes_below_the_minimum_later() -> None:
    serving = dev(SERVING, good=Goal(target=4, minimum=2))

    assert not set_gates(decide(head(serving)))
    plan = decide(head(serving, gate=GateRule.STRICT))
    assert set_gates(plan) == [False]
    assert plan.actions[0].why.rule == "gate.strict"


def test_why_a_gate_is_closed_is_told_as_it_is_now() -> None:
    deleting = shown(then(head(dev(GroupStatus.DELETING))), DOWN)
    again = decide(regrouped(deleting, dev(GATED)))

    assert again.actions == ()
    assert "waits for its minimum" in again.memory.gates["dev"].why


def test_the_strict_rule_is_content_with_the_minimum() -> None:
    picture = head(dev(SERVING, minimum=1), gate=GateRule.STRICT, state=DOWN)
    slot = SlotRecord(
        node=n("n1"), group="w", logical="l1", step=SlotStep.SERVING, entered=0, created=0, why=Why(rule="x", text="x")
    )
    picture = replace(picture, memory=replace(picture.memory, slots={n("n1"): slot}))
    there = picture.see(nodes={n("n1"): Node(name=n("n1"), base=NodeBase.IDLE)})

    assert set_gates(decide(there)) == [True]


def test_a_partition_without_a_node_is_closed_so_that_jobs_can_wait_in_it() -> None:
    plan = decide(shown(head(dev(SERVING)), UP, nodes=""))

    assert set_gates(plan) == [False]
    assert plan.actions[0].why.rule == "gate.empty"


def test_a_partition_of_the_site_is_never_touched_and_that_is_told_once() -> None:
    picture = head(dev(GATED), owned=False)
    plan = decide(picture)

    assert not plan.actions
    assert kinds(plan) == ["gate.foreign"]
    assert "capacity.owned_partitions" in plan.events[0].text
    assert not decide(shown(then(picture), UP)).events


def test_an_admins_own_setting_is_told_once_and_left_until_our_wish_changes() -> None:
    closed = then(shown(then(head(dev(GATED))), DOWN))
    opened_by_hand = shown(closed, UP)
    plan = decide(opened_by_hand)

    assert not plan.actions
    assert kinds(plan) == ["gate.yielded"]
    later = shown(then(opened_by_hand, 500.0), UP)
    assert not decide(later).actions
    assert not decide(later).events
    assert kinds(decide(regrouped(later, dev(SERVING)))) == ["gate.opened"]
    closed_by_hand = shown(then(regrouped(later, dev(SERVING))), UP)
    assert set_gates(decide(regrouped(closed_by_hand, dev(GATED)))) == [False]


def test_an_admin_who_sets_it_back_is_followed_again_with_the_next_change() -> None:
    closed = then(shown(then(head(dev(GATED))), DOWN))
    back = then(shown(then(shown(closed, UP)), DOWN))

    assert back.memory.gates["dev"].yielded is None
    assert kinds(decide(shown(back, INACTIVE))) == ["gate.yielded"]


def test_a_state_that_we_never_set_is_somebodys_from_the_beginning() -> None:
    plan = decide(head(dev(GATED), state=INACTIVE))

    assert not plan.actions
    assert kinds(plan) == ["gate.yielded"]


def test_a_restart_of_slurmctld_is_no_admin() -> None:
    closed = then(shown(then(head(dev(GATED))), DOWN))
    began = closed.now - 1.0
    plan = decide(shown(closed, UP, loaded=began))

    assert set_gates(plan) == [False]
    assert not plan.events
    assert plan.actions[0].why.rule == "gate.again"
    settled = shown(then(shown(closed, UP, loaded=began)), DOWN, loaded=began)
    assert kinds(decide(shown(then(settled), UP, loaded=began))) == ["gate.yielded"]


def test_a_restart_that_shows_our_wish_does_not_excuse_a_later_change_by_hand() -> None:
    closed = then(shown(then(head(dev(GATED))), DOWN))
    began = closed.now - 1.0
    same = then(shown(closed, DOWN, loaded=began))

    assert kinds(decide(shown(same, UP, loaded=began))) == ["gate.yielded"]


def test_a_restart_ends_an_admins_setting() -> None:
    yielded = then(shown(then(shown(then(head(dev(GATED))), DOWN)), UP))
    after = shown(yielded, UP, loaded=yielded.now)

    assert set_gates(decide(after)) == [False]


def test_nothing_is_done_on_an_old_look_at_the_partitions() -> None:
    picture = head(dev(GATED))

    assert not decide(picture.after(31.0)).actions
    assert not decide(picture.see(partitions_at=0.0)).actions


def test_nothing_is_done_while_a_person_paused_us() -> None:
    picture = head(dev(GATED))
    paused = replace(picture, memory=replace(picture.memory, paused=True))

    assert not decide(paused).actions


def test_a_partition_whose_groups_are_all_being_deleted_is_closed() -> None:
    plan = decide(head(dev(GroupStatus.DELETING)))

    assert set_gates(plan) == [False]
    assert plan.actions[0].why.rule == "gate.deleting"
    assert not set_gates(decide(head(dev(GroupStatus.DELETING), dev(SERVING, name="x"))))


def test_a_partition_that_goes_with_our_file_is_not_set_besides() -> None:
    ours = shown(then(head(dev(SERVING), state=None, owned=False)), UP)
    plan = decide(regrouped(ours))

    assert action_types(plan) == [WritePartitions]
    assert "dev" in plan.memory.gates
    assert "dev" not in decide(shown(then(regrouped(ours)), None)).memory.gates


def test_a_partition_on_its_way_out_is_still_ours_when_a_new_group_wants_it() -> None:
    going = then(regrouped(shown(then(head(dev(SERVING), state=None, owned=False)), UP)))
    plan = decide(regrouped(going, dev(GATED)))

    assert "gate.foreign" not in kinds(plan)
    assert set_gates(plan) == [False]


def test_a_lent_partition_goes_back_open() -> None:
    closed = then(shown(then(head(dev(GATED))), DOWN))
    left = regrouped(shown(closed, DOWN))

    assert set_gates(decide(left)) == [True]
    assert "dev" not in decide(shown(then(left), UP)).memory.gates


def test_without_groups_nothing_is_looked_at() -> None:
    picture = regrouped(head(dev(GATED)))
    empty: Memory = replace(picture.memory, cluster=None)

    plan = decide(replace(picture, memory=empty))
    assert plan.actions == ()
    assert plan.memory == empty


def test_no_action_names_a_job() -> None:
    every: list[Action] = []
    picture = head(dev(GATED), state=None, owned=False)
    for state in (None, DOWN, UP, INACTIVE, DOWN, None):
        every += decide(picture).actions
        picture = shown(then(picture), state)

    assert {type(action) for action in every} <= {SetGate, WritePartitions}
