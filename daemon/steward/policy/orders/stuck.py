"""Slots whose end waits for a person, because their backup failed: asking for the same again tries it again."""

from collections.abc import Sequence
from dataclasses import replace

from steward.model.order import NodeWish
from steward.model.slot import Hitch, Purpose, SlotRecord, SlotStep
from steward.policy.orders.desk import Desk

_WISHED = {NodeWish.DELETE: Purpose.LEAVE, NodeWish.REPLACE: Purpose.RENEW}


def is_stuck(slot: SlotRecord) -> bool:
    return slot.step is SlotStep.BACKUP and bool(slot.trouble)


def is_asked_again(wish: NodeWish, slot: SlotRecord) -> bool:
    """The wish is what the slot is stuck in."""
    return is_stuck(slot) and _WISHED.get(wish) is slot.purpose


def try_again(slots: Sequence[SlotRecord], desk: Desk) -> None:
    """The next try has a key of its own: the failure of the last one is not taken for its own."""
    for slot in slots:
        desk.slots[slot.node] = replace(slot, tries=slot.tries + 1, hitch=Hitch.NONE, trouble="")
        desk.tell("slot.again", f"{desk.who} has {slot.node} backed up again", node=slot.node, group=slot.group)
