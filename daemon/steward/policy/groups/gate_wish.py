"""Whether a partition should be open, and why: decided from its groups alone."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from steward.model.capacity_policy import GateRule
from steward.model.group import Group, GroupStatus, Role
from steward.model.ids import NodeName
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.groups.members import current


@dataclass(frozen=True, slots=True, kw_only=True)
class GateWish:
    partition: str
    open: bool
    why: Why
    groups: tuple[Group, ...] = ()


def gate_wishes(draft: Draft) -> Mapping[str, GateWish]:
    """By partition: every one that a compute group of the API names, and those left over that we still keep a gate for.

    A partition is closed while a group in it waits for its minimum, unless another group of it has been in service:
    one that serves already is not closed because a second group joins it. The rule `strict` closes it again whenever a
    group has less than its minimum.
    """
    by_partition: defaultdict[str, list[Group]] = defaultdict(list)
    for group in sorted(draft.groups.values(), key=lambda group: group.name):
        if group.partition and group.role is Role.COMPUTE:
            by_partition[group.partition].append(group)
    counts = {group.name: current(group, draft) for groups in by_partition.values() for group in groups}
    wishes = {name: _wish(name, groups, counts, draft) for name, groups in by_partition.items()}
    return wishes | {name: _left_over(name, draft) for name in draft.gates if name not in wishes}


def _wish(name: str, groups: list[Group], counts: Mapping[str, int], draft: Draft) -> GateWish:
    evidence = tuple(_told(group, counts) for group in groups)

    def wish(rule: str, text: str, *, open: bool) -> GateWish:
        why = Why(rule=rule, text=f"partition {name} is {'open' if open else 'closed'}: {text}", evidence=evidence)
        return GateWish(partition=name, open=open, why=why, groups=tuple(groups))

    if all(group.status is GroupStatus.DELETING for group in groups):
        return wish("gate.deleting", "its groups are being deleted", open=False)
    if waiting := [group for group in groups if group.status.is_gated and not _serves_beside(group, groups)]:
        return wish("gate.minimum", f"group {waiting[0].name} waits for its minimum", open=False)
    if short := [group for group in groups if _is_short(group, counts, draft)]:
        return wish("gate.strict", f"group {short[0].name} has less than its minimum", open=False)
    if not _has_nodes(name, groups, draft):
        return wish("gate.empty", "no node of it has come yet; jobs wait", open=False)
    return wish("gate.open", "its groups have what they need", open=True)


def _serves_beside(group: Group, groups: list[Group]) -> bool:
    return any(other.good is not None for other in groups if other.name != group.name)


def _is_short(group: Group, counts: Mapping[str, int], draft: Draft) -> bool:
    return draft.want.capacity.gate is GateRule.STRICT and counts.get(group.name, 0) < group.goal.minimum


def _has_nodes(name: str, groups: list[Group], draft: Draft) -> bool:
    """A partition without nodes starts nothing either way; Slurm from 23 on takes jobs for it only while it is DOWN."""
    if shown := draft.seen.partitions.get(name):
        return bool(shown.nodes)
    return any(nodes_of_conf(group.name, draft) for group in groups)


def nodes_of_conf(group: str, draft: Draft) -> frozenset[NodeName]:
    """Nodes of the group's pool that are in slurm.conf: only those may be named in a partition."""
    pool = draft.want.capacity.pools.get(group)
    found = (draft.seen.nodes.get(name) for name in (pool.nodes if pool else ()))
    return frozenset(node.name for node in found if node is not None and not node.is_dynamic)


def _left_over(name: str, draft: Draft) -> GateWish:
    """A partition that the site lent us is open when it goes back; ours takes no jobs while it goes."""
    is_lent = name in draft.want.capacity.owned_partitions
    why = Why(rule="gate.left", text=f"partition {name} has no group any more", evidence=())
    return GateWish(partition=name, open=is_lent, why=why)


def _told(group: Group, counts: Mapping[str, int]) -> str:
    goal = group.goal
    has = counts.get(group.name, 0)
    return f"group {group.name} is {group.status.value} with {has} nodes, minimum {goal.minimum}, target {goal.target}"
