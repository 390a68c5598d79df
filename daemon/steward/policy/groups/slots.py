"""Move every slot of the API's groups as far as the picture lets it."""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from steward.model.events import Level
from steward.model.group import Group
from steward.model.ids import NodeName
from steward.model.slot import Purpose, SlotRecord, SlotStep
from steward.policy.draft import Draft
from steward.policy.groups.orphans import ENDED
from steward.policy.groups.slot_cases import close_case, follow_repair
from steward.policy.groups.slot_facts import QUESTIONS, noted
from steward.policy.groups.slot_scene import SlotScene
from steward.policy.groups.slot_steps import entered
from steward.policy.groups.slot_table import TABLE, SlotFact, facts_of
from steward.policy.groups.slot_wishes import wish_for
from steward.policy.node.bring_up import note_bring_up

MOST_MOVES = 2 * len(SlotStep)
"""Moves of one slot in one plan; each needs a fact of its own, so more would be a loop in the table."""
WORRYING = frozenset(
    {
        SlotFact.LOST,
        SlotFact.REFUSED,
        SlotFact.STUMBLED,
        SlotFact.FAILED,
        SlotFact.LATE,
        SlotFact.UNSAVED,
        SlotFact.UNFIT,
    }
)


def move_slots(draft: Draft) -> None:
    """Move every slot by the facts, controllers first, then the oldest, and ask for what its step needs.

    Without a fresh list of instances nothing is launched, moved or ended; nor while we are paused.
    """
    if not draft.slots or not draft.provider_is_fresh or not draft.may_provision:
        return
    settled = _settled(draft)
    for group in sorted(draft.groups.values(), key=lambda group: group.turn):
        for record in draft.slots.members(group.name):
            if record.node not in settled:
                _move(record, group, draft)


def _settled(draft: Draft) -> AbstractSet[NodeName]:
    """The usual case, seen quickly: nodes whose slot serves and shall stay, and whose instance is listed."""
    if draft.found.settled is None:
        records = draft.slots.unchanged
        of = (records if records is not None else object(), draft.seen.instances)
        draft.found.settled = draft.ground.once("settled slots", of, lambda: _find_settled(draft))
    return draft.found.settled - draft.slots.touched


def _find_settled(draft: Draft) -> frozenset[NodeName]:
    staying = (r for r in draft.slots.values() if r.step is SlotStep.SERVING and r.purpose is Purpose.STAY)
    listed = (record for record in staying if draft.instance(record.instance) is not None)
    return frozenset(record.node for record in listed if record.missing is None)


def _move(record: SlotRecord, group: Group, draft: Draft) -> None:
    scene = SlotScene(record=follow_repair(record, draft), group=group, draft=draft)
    for _ in range(MOST_MOVES):
        scene = noted(scene)
        fact = next((f for f in facts_of(scene.record.step) if QUESTIONS[f](scene)), None)
        if fact is None:
            break
        step = TABLE[scene.record.step, fact]
        if step is None:
            _go(scene, fact)
            return
        scene = replace(scene, record=_enter(scene, fact, step))
    wish_for(scene)


def _enter(scene: SlotScene, fact: SlotFact, step: SlotStep) -> SlotRecord:
    draft, before = scene.draft, scene.record
    after = entered(scene, fact, step)
    if before.step is SlotStep.SERVING:
        close_case(after, draft)
    note_bring_up(before, after, fact, scene.group, draft)
    trouble = f": {after.trouble}" if fact in WORRYING and after.trouble else ""
    text = f"{before.node}: {before.step.value} -> {step.value}: {fact.value}{trouble}"
    level = Level.WARNING if fact in WORRYING else Level.INFO
    draft.tell(f"slot.{step.value}", text, level=level, node=before.node, group=before.group)
    return draft.slots.keep(after)


def _go(scene: SlotScene, fact: SlotFact) -> None:
    record, draft = scene.record, scene.draft
    draft.slots.forget(record)
    for id in () if scene.is_fixed else scene.repairs:
        draft.noted[f"{ENDED}{id}"] = draft.now
    text = f"{record.node}: {record.step.value} -> gone: {fact.value}"
    draft.tell("slot.gone", text, node=record.node, group=record.group)
