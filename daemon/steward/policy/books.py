"""The tables of memory that have indexes or rules of their own: cases, slots, nodes, deep checks, runs, evictions.

A table lives as long as its plan is made, and is changed only through its own methods.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from steward.model.case import Case, CaseStep, Trigger
from steward.model.deep import DeepRun
from steward.model.desired import Desired
from steward.model.elastic import ElasticRun, Replica, SizeChange
from steward.model.group import Group, Role
from steward.model.ids import CaseId, JobId, NodeName
from steward.model.instance import Slot
from steward.model.memory import NodeMemory
from steward.model.quota import Eviction, QuotaJob
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.fact_cache import FactCache
from steward.policy.kept import Kept
from steward.policy.slot_of import slot_of

_NOT_IN_REPAIR = (CaseStep.SUSPECT, CaseStep.CLOSED)
"""Steps in which no repair is under way: it has not begun yet, or is over."""
_NEW_MACHINE = (CaseStep.VERIFY, CaseStep.RETURN)
"""Steps in which the repaired or new machine is up and is tested."""
REPLACING = (CaseStep.MEND, CaseStep.LAUNCH, CaseStep.PROVISION, CaseStep.VERIFY, CaseStep.RETURN)
"""Steps that count as a running repair in the budgets."""


class CaseBook(Kept[CaseId, Case]):
    """The cases by id. Every change goes through `keep`, `close` and `forget`."""

    __slots__ = ("_of", "_open", "replacing")

    def __init__(self, before: Mapping[CaseId, Case]) -> None:
        super().__init__(before)
        self._open = {case.node: case.id for case in self.values() if case.is_open}
        self._of: defaultdict[NodeName, dict[CaseId, None]] | None = None
        self.replacing = {case.id: case.node for case in self.values() if case.step in REPLACING}
        """The node of each case in one of the steps `REPLACING`, by case id."""

    @property
    def nodes_in_repair(self) -> Collection[NodeName]:
        """Return the nodes with an open case."""
        return self._open.keys()

    def open_of(self, node: NodeName) -> Case | None:
        """Return the node's open case; None if it has none. A node has at most one."""
        return self[self._open[node]] if node in self._open else None

    def in_work(self, node: NodeName) -> Case | None:
        """Return the node's open case if it is past suspicion; else None."""
        return case if (case := self.open_of(node)) and case.step not in _NOT_IN_REPAIR else None

    def lost(self, node: NodeName) -> Case | None:
        """Return the node's confirmed case if the node was lost and no machine is up in its place yet; else None."""
        case = self.in_work(node)
        return case if case is not None and case.trigger is Trigger.LOST and case.step not in _NEW_MACHINE else None

    def expects_no_agent(self, node: NodeName) -> bool:
        """Return whether the node's repair explains why its agent is away.

        That is so if the node was lost, is held for a person, or its machine is being mended or replaced.
        """
        case = self.in_work(node)
        if case is None or case.step in _NEW_MACHINE:
            return False
        return case.trigger is Trigger.LOST or case.step not in (CaseStep.DRAIN, CaseStep.RELEASE)

    def of(self, node: NodeName) -> list[Case]:
        """Return every remembered case of a node, open and closed ones."""
        if self._of is None:
            self._of = defaultdict(dict)
            for case in self.values():
                self._of[case.node][case.id] = None
        return [self[id] for id in self._of[node]] if node in self._of else []

    def keep(self, case: Case) -> Case:
        """Remember the case in its new state."""
        self[case.id] = case
        self.replacing.pop(case.id, None)
        if case.step in REPLACING:
            self.replacing[case.id] = case.node
        if self._of is not None:
            self._of[case.node][case.id] = None
        if case.is_open:
            self._open[case.node] = case.id
        elif self._open.get(case.node) == case.id:
            del self._open[case.node]
        return case

    def close(self, case: Case, why: Why, now: float) -> Case:
        """Remember the case as closed."""
        return self.keep(replace(case, step=CaseStep.CLOSED, entered=now, closed=now, why=why))

    def forget(self, case: Case) -> None:
        """Drop the case from memory."""
        self.pop(case.id, None)
        self.replacing.pop(case.id, None)
        if self._of is not None:
            self._of[case.node].pop(case.id, None)
        if self._open.get(case.node) == case.id:
            del self._open[case.node]


class SlotBook(Kept[NodeName, SlotRecord]):
    """The slots of API groups by node. Every change goes through `keep`, `forget` and `drop_group`."""

    __slots__ = ("_groups", "_members", "_repairable", "_sizes", "_want", "launching")

    def __init__(self, before: Mapping[NodeName, SlotRecord], groups: dict[str, Group], want: Desired) -> None:
        """Index the slots. `groups` is the draft's own table, which later steps of the plan change."""
        super().__init__(before)
        self._groups, self._want = groups, want
        self.launching = sum(1 for record in self.values() if record.step is SlotStep.LAUNCH)
        """How many slots are in the step LAUNCH."""
        self._members: defaultdict[str, dict[NodeName, None]] | None = None
        self._sizes: Counter[str] | None = None
        self._repairable: dict[NodeName, Slot] | None = None

    @property
    def repairable(self) -> dict[NodeName, Slot]:
        """Return the slot of each node that may be repaired.

        These are the slots of pools that no API group took over, and those of API groups that are in service and no
        controller.
        """
        # made at the first call: a plan without trouble does not need it
        if self._repairable is None:
            self._repairable = {node: slot for node, slot in self._want.slots.items() if slot.group not in self._groups}
            for record in self.values():
                self._note_repairable(record, self._repairable)
        return self._repairable

    @property
    def group_sizes(self) -> Counter[str]:
        """Return how many nodes of each group may be repaired."""
        if self._sizes is None:
            self._sizes = Counter(slot.group for slot in self.repairable.values())
        return self._sizes

    def members(self, group: str) -> list[SlotRecord]:
        """Return the slots of a group, oldest first."""
        if self._members is None:
            self._members = defaultdict(dict)
            for record in sorted(self.values(), key=lambda r: (r.created, len(r.logical), r.logical)):
                self._members[record.group][record.node] = None
        return [self[node] for node in self._members[group]] if group in self._members else []

    def keep(self, record: SlotRecord) -> SlotRecord:
        """Remember the slot in its new state."""
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
        """Drop a group without slots from memory; the nodes of its pool belong to the pool again."""
        del self._groups[name]
        self._repairable = None

    def _note_repairable(self, record: SlotRecord, found: dict[NodeName, Slot]) -> bool:
        """Return whether the slot's node may be repaired; if so, put its slot into `found`."""
        group = self._groups.get(record.group)
        if group is None or group.role is Role.CONTROLLER or record.step is not SlotStep.SERVING:
            return False
        found[record.node] = slot_of(record, group, self._want)
        return True


_EMPTY = NodeMemory()
_EXPIRING = (
    "back_at",
    "lost_at",
    "renewed_at",
    "shutdown_from",
    "reclaimed_from",
    "silent_since",
    "left_at",
    "leave_announced",
    "suspected",
)
"""The fields of a node's memory whose times expire."""
_EXPIRING_IF_UNKNOWN = (*_EXPIRING, "away_since")
"""The times that expire for a node that Slurm no longer knows."""


class NodeBook(Kept[NodeName, NodeMemory]):
    """The memory of nodes, by name; a quiet node has no row. Every change goes through `note`."""

    __slots__ = ()

    def of(self, node: NodeName) -> NodeMemory:
        return self.get(node, _EMPTY)

    def note(self, node: NodeName, **news: Any) -> None:
        """Set these fields of the node's memory."""
        before = self.of(node)
        after = replace(before, **news)
        if after == _EMPTY:
            self.pop(node, None)
        elif after != before:
            self[node] = after

    def prune(self, since: float, in_slurm: Container[NodeName], ground: FactCache) -> None:
        """Forget times at or before `since`.

        Not `settling`, nor `away_since` of a node that Slurm knows: other steps clear them when they no longer hold.
        """
        # the oldest time is found once for the same memory and the same nodes of Slurm
        before = self.unchanged
        of = (before, ground.nodes.keys_stamp)
        if before is not None and ground.once(NodeBook._oldest, of, self, in_slurm) > since:
            return
        for name, mem in list(self.items()):
            if any(at <= since for at in _times(mem, is_there=name in in_slurm)):
                self.note(name, **_without_old_times(mem, since, is_there=name in in_slurm))

    def _oldest(self, in_slurm: Container[NodeName]) -> float:
        return min(
            (at for name, mem in self.items() for at in _times(mem, is_there=name in in_slurm)), default=math.inf
        )


def _times(mem: NodeMemory, *, is_there: bool) -> Iterator[float]:
    yield from mem.excluded_by.values()
    yield from mem.failed_launches.values()
    for what in _EXPIRING if is_there else _EXPIRING_IF_UNKNOWN:
        at: float | None = getattr(mem, what)
        if at is not None:
            yield at


def _without_old_times(mem: NodeMemory, since: float, *, is_there: bool) -> dict[str, Any]:
    """Return the fields that expire, without the times at or before `since`."""
    told = {what: getattr(mem, what) for what in (_EXPIRING if is_there else _EXPIRING_IF_UNKNOWN)}
    young = {what: at if at is not None and at > since else None for what, at in told.items()}
    tables = {what: getattr(mem, what) for what in ("excluded_by", "failed_launches")}
    left = {
        what: MappingProxyType({id: at for id, at in table.items() if at > since}) for what, table in tables.items()
    }
    return {**young, **left}


class DeepBook(Kept[str, DeepRun]):
    """The deep checks by id. Every change goes through `keep` and `forget`."""

    __slots__ = ("_holding", "_of_waiter")

    def __init__(self, before: Mapping[str, DeepRun]) -> None:
        super().__init__(before)
        self._of_waiter: dict[str, dict[str, DeepRun]] | None = None
        self._holding: dict[NodeName, dict[str, DeepRun]] | None = None

    def keep(self, run: DeepRun) -> DeepRun:
        """Remember the check in its new state."""
        before = self.get(run.id)
        if before is not run:
            self[run.id] = run
            self._changed(before, run)
        return run

    def forget(self, id: str) -> None:
        """Drop the check from memory."""
        self._changed(self.pop(id), None)

    def of(self, waiter: str) -> Collection[DeepRun]:
        """Return the deep checks that were made for a slot or repair; `waiter` is its token."""
        if self._of_waiter is None:
            self._of_waiter = {}
            for run in self.values():
                self._of_waiter.setdefault(run.waiter, {})[run.id] = run
        return self._of_waiter.get(waiter, {}).values()

    @property
    def holding(self) -> Mapping[NodeName, Mapping[str, DeepRun]]:
        """Return node -> the deep checks, by id, that reserved or requested the node and have no result for it yet."""
        if self._holding is None:
            self._holding = {}
            for run in self.values():
                self._add_holding(run, self._holding)
        return self._holding

    def _changed(self, before: DeepRun | None, after: DeepRun | None) -> None:
        if before is None or after is None or before.waiter != after.waiter:
            self._of_waiter = None
        elif self._of_waiter is not None:
            self._of_waiter[after.waiter][after.id] = after
        if self._holding is None:
            return
        if before is not None:
            self._drop_holding(before, self._holding)
        if after is not None:
            self._add_holding(after, self._holding)

    @staticmethod
    def _drop_holding(run: DeepRun, holding: dict[NodeName, dict[str, DeepRun]]) -> None:
        for node in _unmeasured(run) if run.has_nodes else ():
            del holding[node][run.id]
            if not holding[node]:
                del holding[node]

    @staticmethod
    def _add_holding(run: DeepRun, holding: dict[NodeName, dict[str, DeepRun]]) -> None:
        for node in _unmeasured(run) if run.has_nodes else ():
            holding.setdefault(node, {})[run.id] = run


def _unmeasured(run: DeepRun) -> frozenset[NodeName]:
    """Return the nodes of a check that have no result yet."""
    return run.nodes - run.results.keys()


EVICTIONS_KEPT = 8
"""Past evictions of one job that are remembered one by one."""


class QuotaJobBook(Kept[JobId, QuotaJob]):
    """The jobs that were evicted or marked for a quota, by id."""

    __slots__ = ()

    def add_eviction(self, id: JobId, team: str, eviction: Eviction) -> None:
        """Remember that this run of a job, of that team, is evicted."""
        memory = self.get(id) or QuotaJob(team=team)
        kept = (*memory.evictions, eviction)[-EVICTIONS_KEPT:]
        self[id] = replace(memory, evictions=kept, count=memory.count + 1)

    def was_evicted(self, id: JobId, restart: int) -> str:
        """Return why this run of a job was evicted; empty if it was not."""
        memory = self.get(id)
        found = [each.text for each in memory.evictions if each.restart == restart] if memory is not None else []
        return f"it {found[-1]}" if found else ""


CHANGES_KEPT = 64
"""How many changes of size are remembered for a run."""


RUNS_KEPT_S = 86_400.0
"""The time for which an ended run is remembered."""


class ElasticBook(Kept[JobId, ElasticRun]):
    """The elastic runs in memory, by the id of the base job; only `keep` and `prune` change them."""

    __slots__ = ()

    def keep(self, run: ElasticRun) -> ElasticRun:
        """Store the run if it changed, and return it."""
        if self.get(run.id) != run:
            self[run.id] = run
        return run

    def prune(self, now: float) -> None:
        """Forget the runs that ended `RUNS_KEPT_S` ago or earlier."""
        self.drop([id for id, run in self.items() if run.ended is not None and now >= run.ended + RUNS_KEPT_S])

    def run_of(self, job: JobId) -> ElasticRun | None:
        """Return the run of a replica job; None if there is none."""
        for run in self.values():
            if any(replica.job == job for replica in run.replicas):
                return run
        return None


def counted(run: ElasticRun, now: float) -> ElasticRun:
    """Return the run with its node-seconds beyond the base size added up to `now`."""
    beyond = max(len(run.members) - run.base, 0)
    return replace(run, node_seconds=run.node_seconds + beyond * max(now - run.counted, 0.0), counted=now)


def with_change(run: ElasticRun, change: SizeChange) -> ElasticRun:
    """Return the run with one more change of size in its history."""
    return replace(run, events=(*run.events, change)[-CHANGES_KEPT:], changes=run.changes + 1)


def last_change(run: ElasticRun, **fields: Any) -> ElasticRun:
    """Return the run with these fields in its last change of size."""
    return replace(run, events=(*run.events[:-1], replace(run.events[-1], **fields))) if run.events else run


def with_replica(run: ElasticRun, replica: Replica) -> ElasticRun:
    """Return the run with this replica in place of the one with the same token."""
    others = tuple(one for one in run.replicas if one.token != replica.token)
    return replace(run, replicas=(*others, replica))
