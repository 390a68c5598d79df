"""The table of a slot: complete, as the page shows it, and each row is taken when its fact is true."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from steward.model.capacity_policy import Pool
from steward.model.deep import DeepCause, DeepResult
from steward.model.group import Role
from steward.model.ids import InstanceId
from steward.model.instance import InstanceState
from steward.model.node import NodeBase, Reason
from steward.model.setting_types import RepairMode
from steward.model.setup import SetupState
from steward.model.slot import Purpose, SlotFact, SlotStep
from steward.policy.groups.slot_table import SLOT_TABLE, deadline, page
from tests.builders.capacity import MARK, NODE, SCRIPTS, a_slot_at, asked, nothing_there, reported, with_slot
from tests.builders.deep import done, with_run
from tests.builders.picture import T0, Picture, n
from tests.builders.want import a_want, but

PAGE = Path(__file__).parents[4] / "docs" / "slot.md"
LEAVE = Purpose.LEAVE
LAUNCH_KEY = f"launch:abcdef012345-1-0:{T0 - 10:.3f}"
LONG_AGO = T0 - 100_000.0

Change = Callable[[Picture], Picture]


def unwanted(picture: Picture) -> Picture:
    return with_slot(picture, purpose=LEAVE)


def lost(picture: Picture) -> Picture:
    gone = replace(picture.seen.instances[InstanceId("i-1")], state=InstanceState.GONE)
    return picture.see(instances={gone.id: gone}, agents={})


def late(picture: Picture) -> Picture:
    return with_slot(picture, entered=LONG_AGO)


def pooled(picture: Picture) -> Picture:
    pools = {"workers": Pool(group="workers", nodes=(n(NODE),))}
    return replace(picture, want=replace(picture.want, capacity=but(picture.want.capacity, pools=pools)))


def hosted(picture: Picture) -> Picture:
    groups = {"workers": replace(picture.memory.groups["workers"], role=Role.CONTROLLER)}
    return replace(nothing_there(picture), memory=replace(picture.memory, groups=groups))


def without_instance(picture: Picture) -> Picture:
    return with_slot(picture, instance=None)


def scripted(picture: Picture) -> Picture:
    groups = {"workers": replace(picture.memory.groups["workers"], lifecycle=SCRIPTS)}
    return replace(picture, memory=replace(picture.memory, groups=groups))


def failed_script(picture: Picture) -> Picture:
    return reported(scripted(picture), "abcdef012345-1-0-0-0", SetupState.FAILED, step="on_create.sh", exit_status=3)


def in_service(picture: Picture) -> Picture:
    return picture.node(NODE, flags=frozenset({"DYNAMIC_NORM"}), reason=None)


def somebody_elses(picture: Picture) -> Picture:
    return picture.node(NODE, reason=Reason(text="maintenance", user="root"))


def busy(picture: Picture) -> Picture:
    return picture.node(NODE, base=NodeBase.ALLOCATED)


def backed_up(picture: Picture) -> Picture:
    capacity = but(picture.want.capacity, backup=("/sbin/save", "%n"))
    return with_slot(replace(picture, want=replace(picture.want, capacity=capacity)), purpose=LEAVE, has_served=True)


BACKUP_KEY = "backup:abcdef012345-1-0:i-1:0"


def gone(picture: Picture) -> Picture:
    return with_slot(nothing_there(picture), instance=None)


SCENES: dict[tuple[SlotStep, SlotFact], Change] = {
    (SlotStep.WAITING, SlotFact.UNWANTED): lambda p: unwanted(without_instance(p)),
    (SlotStep.WAITING, SlotFact.HOSTED): lambda p: hosted(without_instance(p)),
    (SlotStep.WAITING, SlotFact.SERVES): lambda p: in_service(pooled(without_instance(p))),
    (SlotStep.WAITING, SlotFact.FOUND): lambda p: pooled(without_instance(p)),
    (SlotStep.WAITING, SlotFact.DUE): lambda p: without_instance(nothing_there(p)),
    (SlotStep.LAUNCH, SlotFact.UNWANTED): unwanted,
    (SlotStep.LAUNCH, SlotFact.LAUNCHED): without_instance,
    (SlotStep.LAUNCH, SlotFact.LOST): lambda p: lost(without_instance(p)),
    (SlotStep.LAUNCH, SlotFact.REFUSED): lambda p: asked(
        with_slot(nothing_there(p), instance=None, launched=T0 - 10), LAUNCH_KEY, "capacity: none left"
    ),
    (SlotStep.LAUNCH, SlotFact.LATE): lambda p: late(without_instance(nothing_there(p))),
    (SlotStep.PROVISION, SlotFact.UNWANTED): unwanted,
    (SlotStep.PROVISION, SlotFact.LOST): lost,
    (SlotStep.PROVISION, SlotFact.CONNECTED): lambda p: p,
    (SlotStep.PROVISION, SlotFact.LATE): lambda p: late(p.see(agents={})),
    (SlotStep.SETUP, SlotFact.UNWANTED): unwanted,
    (SlotStep.SETUP, SlotFact.LOST): lost,
    (SlotStep.SETUP, SlotFact.PREPARED): lambda p: reported(scripted(p), "abcdef012345-1-0-0-0", SetupState.SUCCEEDED),
    (SlotStep.SETUP, SlotFact.FAILED): lambda p: replace(
        failed_script(p), want=replace(p.want, capacity=but(p.want.capacity, setup_tries=1))
    ),
    (SlotStep.SETUP, SlotFact.STUMBLED): failed_script,
    (SlotStep.SETUP, SlotFact.LATE): lambda p: late(scripted(p)),
    (SlotStep.VERIFY, SlotFact.UNWANTED): unwanted,
    (SlotStep.VERIFY, SlotFact.LOST): lost,
    (SlotStep.VERIFY, SlotFact.SOUND): lambda p: p.checked(NODE),
    (SlotStep.VERIFY, SlotFact.LATE): late,
    (SlotStep.RETURN, SlotFact.UNWANTED): unwanted,
    (SlotStep.RETURN, SlotFact.LOST): lost,
    (SlotStep.RETURN, SlotFact.TAKEN): somebody_elses,
    (SlotStep.RETURN, SlotFact.UNFIT): lambda p: with_run(
        p, done(DeepResult.FAILED, NODE, cause=DeepCause.ON_START, waiter="abcdef012345-1-0")
    ),
    (SlotStep.RETURN, SlotFact.BACK): in_service,
    (SlotStep.RETURN, SlotFact.LATE): late,
    (SlotStep.SERVING, SlotFact.UNWANTED): unwanted,
    (SlotStep.SERVING, SlotFact.LOST): lost,
    (SlotStep.DRAIN, SlotFact.LOST): lambda p: lost(unwanted(busy(p))),
    (SlotStep.DRAIN, SlotFact.KEPT): busy,
    (SlotStep.DRAIN, SlotFact.EMPTY): unwanted,
    (SlotStep.DRAIN, SlotFact.HURRIED): lambda p: with_slot(busy(p), purpose=LEAVE, deadline=T0 - 1),
    (SlotStep.BACKUP, SlotFact.LOST): lambda p: lost(backed_up(p)),
    (SlotStep.BACKUP, SlotFact.SAVED): lambda p: backed_up(p).see(done=frozenset({BACKUP_KEY})),
    (SlotStep.BACKUP, SlotFact.UNSAVED): lambda p: asked(backed_up(p), BACKUP_KEY, "disk full"),
    (SlotStep.END, SlotFact.GONE): lambda p: unwanted(gone(p)),
    (SlotStep.END, SlotFact.VACATED): lambda p: with_slot(gone(p), purpose=Purpose.RENEW),
}


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text() == page(), "run: python -m steward.policy.groups.slot_table > docs/slot.md"


def test_every_fact_is_used() -> None:
    assert set(SlotFact) == {fact for _, fact in SLOT_TABLE.rows}


def test_every_row_has_a_scene() -> None:
    assert set(SCENES) == set(SLOT_TABLE.rows)


@pytest.mark.parametrize("step", [step for step in SlotStep if deadline(step, a_want()) is not None])
def test_every_step_with_a_deadline_has_a_way_out_by_it(step: SlotStep) -> None:
    assert SlotFact.LATE in SLOT_TABLE.facts_of(step)


@pytest.mark.parametrize(("step", "fact"), SLOT_TABLE.rows, ids=lambda value: value.name.lower())
def test_a_slot_moves_by_the_fact_that_is_true(step: SlotStep, fact: SlotFact) -> None:
    told = [event.text for event in SCENES[step, fact](a_slot_at(step)).plan().events]
    after = SLOT_TABLE.rows[step, fact]
    row = f"{NODE}: {step.value} -> {after.value if after else 'gone'}: {fact.value}"
    assert any(text.startswith(row) for text in told), told


@pytest.mark.parametrize("step", [step for step in SlotStep if step not in (SlotStep.WAITING, SlotStep.SERVING)])
def test_nothing_moves_or_acts_without_a_fresh_list_of_instances(step: SlotStep) -> None:
    from_old = unwanted(late(a_slot_at(step)))
    picture = from_old.see(provider=type(from_old.seen.provider).OLD)
    decided = picture.plan()
    assert decided.memory.slots[n(NODE)].step is step
    assert decided.actions == ()


@pytest.mark.parametrize("step", list(SlotStep))
def test_nothing_moves_or_acts_while_paused(step: SlotStep) -> None:
    picture = unwanted(late(a_slot_at(step)))
    decided = replace(picture, memory=replace(picture.memory, paused=True)).plan()
    assert decided.memory.slots[n(NODE)].step is step
    assert decided.actions == ()
    assert [event.kind for event in decided.events].count("group.idle") == 1


def test_the_mark_of_a_slot_is_one_that_we_can_read_back() -> None:
    node = a_slot_at(SlotStep.VERIFY).seen.nodes[n(NODE)]
    assert str(node.mark) == MARK


def test_groups_are_made_and_ended_where_repairs_are_only_reported() -> None:
    picture = unwanted(late(a_slot_at(SlotStep.SERVING)))
    want = replace(picture.want, repair=but(picture.want.repair, mode=RepairMode.REPORT))
    assert replace(picture, want=want).plan().actions == picture.plan().actions != ()
