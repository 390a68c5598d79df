"""Gates: keep partitions of API groups closed (DOWN) until the groups have their minimum. Pure.

A closed partition accepts jobs and starts none; running jobs go on. Steward changes only its own partitions: those of
`capacity.owned_partitions`, and those in its own include file. A state that an admin sets by hand is reported once and
left alone until Steward wants another state; a change by a restart of slurmctld is undone.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from steward.model.action import SetGate, WritePartitions
from steward.model.capacity_policy import GateRule
from steward.model.events import Level
from steward.model.group import Group, GroupStatus, Role
from steward.model.ids import Key, NodeName
from steward.model.node_names import fold
from steward.model.partition import Gate, Partition, PartitionState, is_reserved
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.serving import count_serving

# The text of our include file for slurm.conf, with the partitions of API groups: the same groups give the same text.

_HEAD = """\
# Written by Steward: partitions of groups made through its API. Changes made by hand are lost.
# A partition's State is what Steward wants now, so that a restart of slurmctld neither opens nor closes it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionShape:
    """A partition in our include file.

    `members` has, for each group, the nodes that are in slurm.conf; a group's other nodes have its name as a feature.
    A partition without members is kept only because jobs of a deleted group still wait in it.
    """

    name: str
    open: bool
    members: Mapping[str, frozenset[NodeName]] = field(default_factory=lambda: MappingProxyType({}))


def partitions_text(shapes: Iterable[PartitionShape]) -> str:
    """Return the text of the file, in an order that depends on names only."""
    ordered = sorted(shapes, key=lambda shape: shape.name)
    sets = {group: nodes for shape in ordered for group, nodes in shape.members.items()}
    lines = [*(_node_set(group, sets[group]) for group in sorted(sets)), *map(_partition, ordered)]
    return "\n".join([_HEAD, *lines, ""])


def _node_set(group: str, nodes: frozenset[NodeName]) -> str:
    named = f" Nodes={fold(nodes)}" if nodes else ""
    return f"NodeSet={_set_name(group)} Feature={group}{named}"


def _partition(shape: PartitionShape) -> str:
    sets = ",".join(map(_set_name, sorted(shape.members)))
    nodes = f"Nodes={sets} " if sets else ""
    return f"PartitionName={shape.name} {nodes}State={'UP' if shape.open else 'DOWN'} MaxTime=INFINITE"


def _set_name(group: str) -> str:
    return f"steward-{group}"


# Decide from a partition's groups alone whether the partition should be open or closed.


@dataclass(frozen=True, slots=True, kw_only=True)
class GateWish:
    """The state that Steward wants for a partition, open or closed, and why."""

    partition: str
    open: bool
    why: Why
    groups: tuple[Group, ...] = ()


def gate_wishes(draft: Draft) -> Mapping[str, GateWish]:
    """Return the wish for each partition of a compute group, and for each one without groups that still has a gate.

    A partition is closed while one of its groups waits for its minimum, unless another group of it has been in service.
    With the rule `strict` a partition is closed again whenever a group has less than its minimum.
    """
    by_partition: defaultdict[str, list[Group]] = defaultdict(list)
    for group in sorted(draft.groups.values(), key=lambda group: group.name):
        if group.partition and group.role is Role.COMPUTE:
            by_partition[group.partition].append(group)
    counts = {group.name: count_serving(group, draft) for groups in by_partition.values() for group in groups}
    wishes = {name: _wish(name, groups, counts, draft) for name, groups in by_partition.items()}
    return wishes | {name: _wish_without_groups(name, draft) for name in draft.gates if name not in wishes}


def _wish(name: str, groups: list[Group], counts: Mapping[str, int], draft: Draft) -> GateWish:
    evidence = tuple(_group_facts(group, counts) for group in groups)

    def wish(rule: str, text: str, *, open: bool) -> GateWish:
        why = Why(rule=rule, text=f"partition {name} is {'open' if open else 'closed'}: {text}", evidence=evidence)
        return GateWish(partition=name, open=open, why=why, groups=tuple(groups))

    if all(group.status is GroupStatus.DELETING for group in groups):
        return wish("gate.deleting", "its groups are being deleted", open=False)
    if waiting := [group for group in groups if group.status.is_gated and not _serves_with_another(group, groups)]:
        return wish("gate.minimum", f"group {waiting[0].name} waits for its minimum", open=False)
    if short := [group for group in groups if _is_short(group, counts, draft)]:
        return wish("gate.strict", f"group {short[0].name} has less than its minimum", open=False)
    if not _has_nodes(name, groups, draft):
        return wish("gate.empty", "it has no node yet; jobs wait", open=False)
    return wish("gate.open", "its groups have what they need", open=True)


def _serves_with_another(group: Group, groups: list[Group]) -> bool:
    return any(other.good is not None for other in groups if other.name != group.name)


def _is_short(group: Group, counts: Mapping[str, int], draft: Draft) -> bool:
    return draft.want.capacity.gate is GateRule.STRICT and counts.get(group.name, 0) < group.goal.minimum


def _has_nodes(name: str, groups: list[Group], draft: Draft) -> bool:
    """Return whether the partition has nodes."""
    # A partition without nodes starts no job, open or closed; from Slurm 23 on it accepts jobs only while DOWN.
    if shown := draft.seen.partitions.get(name):
        return bool(shown.nodes)
    return any(nodes_of_conf(group.name, draft) for group in groups)


def nodes_of_conf(group: str, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of the group's pool that are in slurm.conf: only those may be named in a partition."""
    pool = draft.want.capacity.pools.get(group)
    found = (draft.seen.nodes.get(name) for name in (pool.nodes if pool else ()))
    return frozenset(node.name for node in found if node is not None and not node.is_dynamic)


def _wish_without_groups(name: str, draft: Draft) -> GateWish:
    """Return the wish for a partition that has no group any more."""
    # The site gets an owned partition back open; a partition of our own file is closed until it is removed.
    is_lent = name in draft.want.capacity.owned_partitions
    why = Why(rule="gate.left", text=f"partition {name} has no group any more", evidence=())
    return GateWish(partition=name, open=is_lent, why=why)


def _group_facts(group: Group, counts: Mapping[str, int]) -> str:
    goal = group.goal
    has = counts.get(group.name, 0)
    return f"group {group.name} is {group.status.value} with {has} nodes, minimum {goal.minimum}, target {goal.target}"


_OLD_S = 30.0
_REFRESH_S = 43_200.0
_FILE = "partitions:"
_STATES = {PartitionState.UP: True, PartitionState.DOWN: False}


def keep_gates(draft: Draft) -> None:
    """Write our partitions, and open and close them; do nothing with an old picture or while Steward is paused."""
    if not draft.may_provision or not (draft.groups or draft.gates):
        return
    if draft.now - draft.seen.partitions_at > _OLD_S:
        return
    wishes = gate_wishes(draft)
    ours = {name: wish for name, wish in wishes.items() if _is_ours(wish, draft)}
    _write_file({name: wish for name, wish in ours.items() if not _is_lent(name, draft)}, draft)
    for name in sorted(ours):
        _keep_gate(ours[name], draft)


def _is_ours(wish: GateWish, draft: Draft) -> bool:
    """Return whether the partition is Steward's: owned by setting, or in our file; else it is the site's."""
    name = wish.partition
    if _is_lent(name, draft) or name in draft.gates:
        return True
    if name not in draft.seen.partitions and draft.want.capacity.has_include:
        return True
    remedy = "name it in capacity.owned_partitions"
    if name not in draft.seen.partitions:
        remedy = "make it in slurm.conf and name it in capacity.owned_partitions, or set capacity.slurm_include"
    text = f"partition {name} is not Steward's to open and close, so no gate is kept there: {remedy}"
    draft.tell("gate.foreign", text, once=f"gate.foreign:{name}", level=Level.WARNING)
    return False


def _is_lent(name: str, draft: Draft) -> bool:
    return name in draft.want.capacity.owned_partitions


def _write_file(wishes: Mapping[str, GateWish], draft: Draft) -> None:
    """Ask for a write of the file if its text is new, the last write failed, or Slurm lacks its partitions."""
    kept = {n: w for n, w in wishes.items() if (w.groups or _has_jobs(n, draft)) and _can_be_written(n, draft)}
    if not draft.want.capacity.has_include or not (kept or _file_keys(draft)):
        return
    text = partitions_text(_partition_shape(wish, draft) for wish in kept.values())
    key = Key(_FILE + hashlib.sha256(text.encode()).hexdigest()[:16])
    for other in _file_keys(draft) - {key}:
        del draft.asked[other]
    why = Why(rule="gate.file", text=f"partitions of API groups: {', '.join(sorted(kept)) or 'none any more'}")
    again = draft.want.capacity.other_backoff_s[-1] if _must_be_written_again(key, kept, draft) else None
    draft.wish(WritePartitions(key=key, why=why, text=text), again)
    if draft.now - draft.asked[key] > _REFRESH_S:
        draft.asked[key] = draft.now  # wishes are forgotten after a day, but the file is still in force
    for name in kept.keys() - draft.gates.keys():
        _save(Gate(partition=name, open=kept[name].open, set_at=draft.now, why=str(kept[name].why)), draft)


def _can_be_written(name: str, draft: Draft) -> bool:
    """Return whether Slurm accepts the name; Slurm would reject the whole file for one reserved word."""
    # The API refuses such names, but memory may hold an older group.
    if is_reserved(name):
        text = f"{name} is left out of Steward's partition file: Slurm reserves the name; make its group anew"
        draft.tell("gate.reserved", text, once=f"gate.reserved:{name}", level=Level.WARNING)
    return not is_reserved(name)


def _file_keys(draft: Draft) -> set[Key]:
    return {key for key in draft.asked if key.startswith(_FILE)}


def _must_be_written_again(key: Key, kept: Mapping[str, GateWish], draft: Draft) -> bool:
    asked = draft.asked.get(key)
    is_lost = asked is not None and draft.seen.partitions_at > asked and not kept.keys() <= draft.seen.partitions.keys()
    return key in draft.seen.failures or is_lost


def _partition_shape(wish: GateWish, draft: Draft) -> PartitionShape:
    names = [group.name for group in wish.groups if _can_be_written(group.name, draft)]
    members = {name: nodes_of_conf(name, draft) for name in names}
    return PartitionShape(name=wish.partition, open=wish.open, members=members)


def _has_jobs(name: str, draft: Draft) -> bool:
    """Return whether the partition has jobs, which Slurm would lose if the partition left its configuration."""
    jobs = draft.seen.jobs.values()
    return any(name in job.partition.split(",") for job in jobs if not job.is_over)


def _keep_gate(wish: GateWish, draft: Draft) -> None:
    shown, gate = draft.seen.partitions.get(wish.partition), draft.gates.get(wish.partition)
    if shown is None:
        if not wish.groups:
            draft.gates.pop(wish.partition, None)
    elif not (wish.groups or _is_lent(wish.partition, draft) or _has_jobs(wish.partition, draft)):
        return  # the next write of our file removes the partition; until then it is remembered as ours
    elif gate is None:
        _adopt(wish, shown, draft)
    elif gate.open is not wish.open:
        _change_state(wish, shown, draft, since=gate.set_at)
    else:
        gate = replace(gate, why=str(wish.why))
        _save(gate, draft)
        if draft.seen.partitions_at > gate.set_at:
            _compare(gate, wish, shown, draft)


def _adopt(wish: GateWish, shown: Partition, draft: Draft) -> None:
    """Take over a partition that has no gate yet; leave alone a state that Steward never sets."""
    if shown.state in _STATES:
        _change_state(wish, shown, draft)
    else:
        fresh = Gate(partition=shown.name, open=wish.open, set_at=draft.now, confirmed=True, why=str(wish.why))
        _leave_to_admin(fresh, shown, draft)


def _change_state(wish: GateWish, shown: Partition, draft: Draft, since: float = 0.0) -> None:
    """Ask for a new state, which also overrides an admin's own setting."""
    # a state that was read before our last change (`since`) does not confirm the new one
    done = draft.seen.partitions_at > since and _STATES.get(shown.state) is wish.open
    _save(Gate(partition=shown.name, open=wish.open, set_at=draft.now, confirmed=done, why=str(wish.why)), draft)
    draft.tell("gate.opened" if wish.open else "gate.closed", str(wish.why))
    if not done:
        draft.asked.pop(_key(wish), None)
        _ask_for_state(wish, wish.why, draft)


def _compare(gate: Gate, wish: GateWish, shown: Partition, draft: Draft) -> None:
    """Compare the gate with the state that Slurm shows since our last change: confirm, repeat, or leave to an admin."""
    has_begun_anew = shown.loaded > (gate.yielded or gate.set_at)
    if _STATES.get(shown.state) is gate.open:
        if not wish.groups and _is_lent(shown.name, draft):
            del draft.gates[shown.name]
        elif not gate.confirmed or gate.yielded is not None or has_begun_anew:
            set_at = max(gate.set_at, shown.loaded)
            _save(replace(gate, confirmed=True, yielded=None, set_at=set_at), draft)
    elif has_begun_anew:
        _save(replace(gate, set_at=draft.now, confirmed=False, yielded=None), draft)
        draft.asked.pop(_key(wish), None)
        text = f"slurmctld restarted with partition {shown.name} {shown.state.value}: {wish.why.text}"
        _ask_for_state(wish, Why(rule="gate.again", text=text, evidence=wish.why.evidence), draft)
    elif not gate.confirmed:
        _ask_for_state(wish, wish.why, draft)
    elif gate.yielded is None:
        _leave_to_admin(gate, shown, draft)


def _leave_to_admin(gate: Gate, shown: Partition, draft: Draft) -> None:
    _save(replace(gate, yielded=draft.now), draft)
    text = (
        f"partition {shown.name} was set {shown.state.value}, but not by Steward: left so until Steward's own wish "
        f"changes ({gate.why})"
    )
    draft.tell("gate.yielded", text, level=Level.WARNING)


def _save(gate: Gate, draft: Draft) -> None:
    draft.gates[gate.partition] = gate


def _ask_for_state(wish: GateWish, why: Why, draft: Draft) -> None:
    action = SetGate(key=_key(wish), why=why, partition=wish.partition, open=wish.open)
    draft.wish(action, draft.want.repair.retry_s)


def _key(wish: GateWish) -> Key:
    return Key(f"gate:{wish.partition}:{'open' if wish.open else 'close'}")
