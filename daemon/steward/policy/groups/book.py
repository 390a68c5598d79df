"""The slots of a plan in the making: the part of memory that is about them, their order, and the nodes that may be
repaired."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from steward.model.desired import Desired
from steward.model.group import Group, Role
from steward.model.ids import NodeName
from steward.model.instance import Slot
from steward.model.slot import SlotRecord, SlotStep
from steward.policy.groups.slot_of import slot_of
from steward.policy.kept import Kept


class SlotBook(Kept[NodeName, SlotRecord]):
    """The slots of API groups by node. Every change goes through `keep`, `forget` and `drop_group`."""

    __slots__ = ("_groups", "_members", "_repairable", "_sizes", "_want", "launching")

    def __init__(self, before: Mapping[NodeName, SlotRecord], groups: dict[str, Group], want: Desired) -> None:
        """`groups` are those of the same plan, and are changed as it goes on."""
        super().__init__(before)
        self._groups, self._want = groups, want
        self.launching = sum(1 for record in self.values() if record.step is SlotStep.LAUNCH)
        """So many launches are under way."""
        self._members: defaultdict[str, dict[NodeName, None]] | None = None
        self._sizes: Counter[str] | None = None
        self._repairable: dict[NodeName, Slot] | None = None

    @property
    def repairable(self) -> dict[NodeName, Slot]:
        """The nodes that may be repaired: slots of pools that no API group took over, and of API groups those in
        service. Made when it is first asked for: a quiet plan does without."""
        if self._repairable is None:
            self._repairable = {node: slot for node, slot in self._want.slots.items() if slot.group not in self._groups}
            for record in self.values():
                self._note_repairable(record, self._repairable)
        return self._repairable

    @property
    def group_sizes(self) -> Counter[str]:
        """How many nodes of each group may be repaired."""
        if self._sizes is None:
            self._sizes = Counter(slot.group for slot in self.repairable.values())
        return self._sizes

    def members(self, group: str) -> list[SlotRecord]:
        """The slots of a group, the oldest first."""
        if self._members is None:
            self._members = defaultdict(dict)
            for record in sorted(self.values(), key=lambda r: (r.created, len(r.logical), r.logical)):
                self._members[record.group][record.node] = None
        return [self[node] for node in self._members[group]] if group in self._members else []

    def keep(self, record: SlotRecord) -> SlotRecord:
        """Remember the slot as it is now."""
        before = self.get(record.node)
        self.launching += (record.step is SlotStep.LAUNCH) - (before is not None and before.step is SlotStep.LAUNCH)
        self[record.node] = record
        if self._members is not None:
            self._members[record.group][record.node] = None
        if self._repairable is not None and not self._note_repairable(record, self._repairable):
            self._repairable.pop(record.node, None)
        return record

    def forget(self, record: SlotRecord) -> None:
        """Drop the slot from memory."""
        self.launching -= self.pop(record.node).step is SlotStep.LAUNCH
        if self._members is not None:
            del self._members[record.group][record.node]
        if self._repairable is not None:
            self._repairable.pop(record.node, None)

    def drop_group(self, name: str) -> None:
        """Drop a group without slots from memory; the nodes of its pool are the pool's again."""
        del self._groups[name]
        self._repairable = None

    def _note_repairable(self, record: SlotRecord, found: dict[NodeName, Slot]) -> bool:
        """Whether the slot's node may be repaired; if so it is in `found` then."""
        group = self._groups.get(record.group)
        if group is None or group.role is Role.CONTROLLER or record.step is not SlotStep.SERVING:
            return False
        found[record.node] = slot_of(record, group, self._want)
        return True
