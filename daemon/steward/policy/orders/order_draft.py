"""The draft in which a caller's order is carried out, with the methods that only orders need."""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from steward.model.arn import arn_of
from steward.model.capacity_policy import CapacityPolicy
from steward.model.desired import Desired
from steward.model.group import Cluster, Goal, Group, GroupStatus, Operation
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.order import Carried, OrderAnswer, Refusal, RefusalKind
from steward.policy.draft import Draft

_KEPT_OPERATIONS = 500


class OrderDraft(Draft):
    """A draft for one order; after a Refusal the draft is dropped, so that nothing has changed."""

    def __init__(self, who: str, memory: Memory, seen: Observed, want: Desired) -> None:
        super().__init__(seen, want, memory, seen.at)
        self.who = who
        self.before = memory

    @property
    def rules(self) -> CapacityPolicy:
        return self.want.capacity

    def cluster_named(self, name: str) -> Cluster:
        """Return the cluster by its name or its ARN. Raises Refusal if the head has no such cluster."""
        cluster = self.cluster
        if cluster is None or name not in (cluster.name, arn_of(cluster.id, self.rules)):
            raise Refusal(RefusalKind.NOT_FOUND, f"Cluster {name} is not known.")
        return cluster

    def next_serial(self) -> int:
        """Return a number that this cluster never gave before."""
        assert self.cluster is not None
        self.cluster = replace(self.cluster, serial=self.cluster.serial + 1)
        return self.cluster.serial

    def set_goals(self, goals: Mapping[str, Goal]) -> Operation | None:
        """Change the goals of groups as one operation. Return None if no goal differs from before."""
        before = {name: self.groups[name].goal if name in self.groups else Goal(target=0) for name in goals}
        changed = sorted(name for name in goals if goals[name] != before[name])
        if not changed:
            return None
        for name in changed:
            self.groups[name] = replace(self.groups[name], goal=goals[name])
        return self.record({name: before[name] for name in changed}, {name: goals[name] for name in changed})

    def record(self, before: Mapping[str, Goal], after: Mapping[str, Goal]) -> Operation:
        """Remember a scaling operation, which supersedes earlier operations of the same groups."""
        assert self.cluster is not None
        id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.cluster.id}:{self.next_serial()}"))
        for old in [each for each in self.operations.values() if each.finished is None]:
            self.operations[old.id] = self._superseded(old, frozenset(after))
        made = Operation(id=id, at=self.now, before=MappingProxyType(before), after=MappingProxyType(after))
        self.operations[id] = made
        self._drop_old_operations()
        return made

    def _superseded(self, old: Operation, groups: frozenset[str]) -> Operation:
        """Return the old operation with these groups superseded; finished if all of its groups are superseded."""
        gone = old.superseded | (groups & old.after.keys())
        return replace(old, superseded=gone, finished=self.now if gone >= old.after.keys() else None)

    def _drop_old_operations(self) -> None:
        over = sorted((op for op in self.operations.values() if op.finished is not None), key=lambda op: (op.at, op.id))
        for op in over[: max(0, len(self.operations) - _KEPT_OPERATIONS)]:
            del self.operations[op.id]

    def keep_group(self, group: Group) -> Group:
        """Remember the group in its new state."""
        self.groups[group.name] = group
        return group

    def groups_that_stay(self) -> list[Group]:
        """Return the groups that are not being deleted, by name."""
        return [self.groups[name] for name in sorted(self.groups) if not is_going(self.groups[name])]

    def result(self, answer: OrderAnswer) -> Carried:
        """Return the memory and the events after the order, with the caller's answer."""
        plan = self.plan()
        return Carried(memory=plan.memory, events=plan.events, answer=answer)


def is_going(group: Group) -> bool:
    return group.status is GroupStatus.DELETING


def new_cluster_id(name: str, created: float) -> str:
    """Return the last part of a cluster's ARN: 12 of a-z0-9."""
    return hashlib.sha256(f"{name}:{created:.6f}".encode()).hexdigest()[:12]
