"""A head with groups in the partition `dev`, and what Slurm shows of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from steward.model.action import SetGate, WritePartitions
from steward.model.group import Group, GroupStatus
from steward.model.partition import Partition, PartitionState
from steward.model.plan import Plan
from steward.policy.draft import Draft
from steward.policy.groups.gate import keep_gates
from tests.builders.capacity import a_group, an_empty_head
from tests.builders.picture import Picture, n

UP, DOWN, INACTIVE = PartitionState.UP, PartitionState.DOWN, PartitionState.INACTIVE
GATED, SERVING = GroupStatus.CREATING, GroupStatus.IN_SERVICE


def decide(picture: Picture) -> Plan:
    draft = Draft(replace(picture.seen, at=picture.now), picture.want, picture.memory, picture.now)
    keep_gates(draft)
    return draft.plan()


def head(*groups: Group, state: PartitionState | None = UP, owned: bool = True, **capacity: Any) -> Picture:
    """Slurm shows the partition `dev` with node n1, if at all; it is lent to us, or in our file."""
    lent = frozenset({"dev"}) if owned else frozenset()
    picture = an_empty_head(*groups, owned_partitions=lent, slurm_include=Path("/etc/slurm/steward.conf"), **capacity)
    return shown(picture, state)


def dev(status: GroupStatus = GATED, name: str = "w", **fields: Any) -> Group:
    return a_group(name, **{"partition": "dev", "status": status, "target": 4, "minimum": 2, **fields})


def shown(picture: Picture, state: PartitionState | None, *, nodes: str = "n1", loaded: float = 0.0) -> Picture:
    """Slurm is read anew and shows this."""
    members = frozenset(n(name) for name in nodes.split())
    found = {} if state is None else {"dev": Partition(name="dev", state=state, nodes=members, loaded=loaded)}
    return picture.see(partitions=found, partitions_at=picture.now)


def then(picture: Picture, after_s: float = 5.0) -> Picture:
    """What was decided is remembered; time goes on."""
    return replace(picture, memory=decide(picture).memory, now=picture.now + after_s)


def set_gates(plan: Plan) -> list[bool]:
    return [action.open for action in plan.actions if isinstance(action, SetGate)]


def files(plan: Plan) -> list[str]:
    return [action.text for action in plan.actions if isinstance(action, WritePartitions)]


def kinds(plan: Plan) -> list[str]:
    return [event.kind for event in plan.events]


def regrouped(picture: Picture, *groups: Group) -> Picture:
    return replace(picture, memory=replace(picture.memory, groups={group.name: group for group in groups}))
