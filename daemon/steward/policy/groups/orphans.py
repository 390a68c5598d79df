"""End orphan instances, which Steward made and which belong to no slot. Foreign instances are only reported."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from steward.model.action import ForgetNode, TerminateInstance
from steward.model.case import CaseStep
from steward.model.events import Level
from steward.model.group import Cluster
from steward.model.ids import CaseId, InstanceId, Key, NodeName
from steward.model.instance import Instance, InstanceState
from steward.model.memory import Stray
from steward.model.node import Node
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.draft import Draft

SEEN_FOR_S = 60.0
"""How long an instance must be listed as an orphan or as late before it is ended: its slot may be about to change."""


def end_orphan_instances(draft: Draft) -> None:
    """End the instances that Steward made and that belong to no slot, and report foreign ones once.

    Among the ended ones are instances of a deleted cluster, and those launched to repair a slot that is gone.
    """
    if not draft.provider_is_fresh:
        return
    if draft.cluster is not None:
        _end_strays(draft.cluster, draft)
    for id in sorted(draft.ended):
        _end_unused_of(id, draft)
    for name in sorted(draft.overview.remembered("left_at")):
        _delete_node(name, draft)


def _end_strays(cluster: Cluster, draft: Draft) -> None:
    ours, records = f"{cluster.id}-", draft.slots.unchanged
    of = (draft.seen.instances, records if records is not None else object(), cluster.id)
    for instance in draft.ground.once(_strays, of, ours, draft):
        if instance.token.startswith(ours):
            _end_if_due(instance, draft)
        elif instance.node not in draft.slots.repairable:
            _tell_foreign(instance, draft)


def _strays(ours: str, draft: Draft) -> list[Instance]:
    """Return the instances with our token and no slot, and foreign ones with the name of a slot's node."""
    owners = {record.logical: record for record in draft.slots.values()}
    found = []
    for instance in draft.seen.instances.values():
        if instance.state is InstanceState.GONE:
            continue
        if instance.token.startswith(ours):
            is_stray = not _belongs_to(owners.get(instance.token.rpartition("-")[0]), instance)
        else:
            record = draft.slots.get(instance.node)
            is_stray = record is not None and record.instance != instance.id
        if is_stray:
            found.append(instance)
    return sorted(found, key=lambda instance: instance.id)


def _belongs_to(record: SlotRecord | None, instance: Instance) -> bool:
    """Return whether the instance is, or becomes, the slot's machine, or is ended by the slot."""
    # A slot in END itself ends every instance that was launched for it.
    if record is None or record.step is SlotStep.END:
        return record is not None
    return instance.token == record.token or instance.id == record.instance


def _end_unused_of(id: str, draft: Draft) -> None:
    """End unused instances of the ended cluster or repair `id`: of a launch that came late, or seemed to fail."""
    for instance in draft.seen.instances.values():
        is_there = instance.state is not InstanceState.GONE
        if is_there and instance.token.startswith(f"{id}-") and not _is_used(instance, draft):
            _end_if_due(instance, draft)


def _is_used(instance: Instance, draft: Draft) -> bool:
    """Return whether a slot uses the instance; without a slot, whether jobs or the pool use its node."""
    record, node = draft.slots.get(instance.node), draft.seen.nodes.get(instance.node)
    if record is not None or node is None:
        return record is not None and record.instance == instance.id
    return node.is_busy or (node.is_schedulable and instance.node in draft.want.slots)


def _end_if_due(instance: Instance, draft: Draft) -> None:
    if _is_listed_long_enough(instance, "orphan", draft) and draft.may_provision:
        _end(instance, "orphan", f"instance {instance.id} was made for a slot that is gone", draft)
        draft.nodes.note(instance.node, left_at=draft.now)


def _delete_node(name: NodeName, draft: Draft) -> None:
    """Delete the Slurm node of an ended orphan, so that Slurm sends no jobs there."""
    node, left_at = draft.seen.nodes.get(name), draft.nodes.of(name).left_at
    ended = left_at if left_at is not None else draft.now
    if name in draft.slots or name in draft.want.slots:
        draft.nodes.note(name, left_at=None)
        return
    listed = draft.seen.listed_at if draft.seen.listed_at is not None else draft.now
    if draft.instances_of(name) or listed < ended + SEEN_FOR_S or not draft.slurm_is_fresh:
        draft.wake(ended + SEEN_FOR_S)
        return
    if node is None:
        draft.nodes.note(name, left_at=None)
    elif draft.may_provision and _is_left_over(node, ended, draft):
        why = Why(rule="orphan.forget", text=f"the instance of {name} is gone", evidence=("it has no slot",))
        draft.wish(ForgetNode(key=Key(f"forget:orphan:{name}"), why=why, node=name), draft.want.repair.retry_s)


def _is_left_over(node: Node, ended: float, draft: Draft) -> bool:
    """Return whether the node is unused, and no machine has registered under its name since `ended`."""
    view = draft.seen.agents.get(node.name)
    is_silent = (view is None or not view.is_heard) and (node.slurmd_started or 0.0) <= ended
    return node.is_dynamic and is_silent and not node.is_busy and not node.is_foreign


def end_late_instances(draft: Draft) -> None:
    """End instances that appeared after their repair had given up waiting and the node got another instance."""
    if not draft.provider_is_fresh or not draft.may_touch_nodes:
        return
    for node in sorted({case.node for case in draft.cases.values()} - _launching(draft)):
        there = [instance for instance in draft.instances_of(node) if not instance.state.is_dead]
        tries = {instance.id: tried for instance in there if (tried := _launch_of(instance, draft)) is not None}
        if len(there) < 2 or not tries:
            continue
        kept = _instance_to_keep(node, there, tries, draft)
        for instance in there:
            if instance.id == kept or instance.id not in tries:
                _note(instance.id, "late", None, draft)
            elif _is_listed_long_enough(instance, "late", draft):
                text = f"{node}: instance {instance.id} appeared after another machine took its place: it is ended"
                _end(instance, "late", text, draft)


def _launching(draft: Draft) -> set[NodeName]:
    """Return the nodes whose repair is about to launch: that repair itself ends the old instances."""
    return {case.node for case in draft.cases.values() if case.step is CaseStep.LAUNCH}


_Tries = Mapping[InstanceId, tuple[float, CaseId, int]]
"""For each instance: when its repair began, the repair, and the number of the repair's earlier launches."""


def _launch_of(instance: Instance, draft: Draft) -> tuple[float, CaseId, int] | None:
    id, _, number = instance.token.rpartition("-")
    case = draft.cases.get(CaseId(id))
    return (case.opened, case.id, int(number)) if case is not None and number.isdecimal() else None


def _instance_to_keep(node: NodeName, there: list[Instance], tries: _Tries, draft: Draft) -> InstanceId | None:
    """Return the instance to keep: that of the connected agent, else the slot's, else the last one launched."""
    # while a repair is open, the machine that was found bad cannot stay
    case, view, record = draft.cases.open_of(node), draft.seen.agents.get(node), draft.slots.get(node)
    may_stay = {instance.id for instance in there if case is None or instance.id in tries}
    speaks = view.incarnation.instance if view is not None and view.is_heard and view.incarnation is not None else None
    for id in (speaks, record.instance if record is not None else None):
        if id in may_stay:
            return id
    return max(tries, key=lambda id: tries[id])


_What = Literal["orphan", "late"]


def _since(instance: Instance, what: _What, draft: Draft) -> float:
    """Return since when the instance is listed as an orphan or as late; note the time if this is the first look."""
    at: float | None = getattr(draft.strays.get(instance.id, Stray()), what)
    if at is None:
        _note(instance.id, what, draft.now, draft)
    return draft.now if at is None else at


def _note(id: InstanceId, what: _What, at: float | None, draft: Draft) -> None:
    told: dict[str, Any] = {what: at}
    stray = replace(draft.strays.get(id, Stray()), **told)
    if stray == Stray():
        draft.strays.pop(id, None)
    else:
        draft.strays[id] = stray


def prune_strays(since: float, draft: Draft) -> None:
    """Forget the notes about orphan and late instances that are as old as `since`."""
    for id, stray in list(draft.strays.items()):
        if stray.orphan is not None and stray.orphan <= since:
            _note(id, "orphan", None, draft)
        if stray.late is not None and stray.late <= since:
            _note(id, "late", None, draft)


def _is_listed_long_enough(instance: Instance, what: _What, draft: Draft) -> bool:
    """Return whether the instance is listed as an orphan or as late for long enough."""
    first = _since(instance, what, draft)
    listed = draft.seen.listed_at if draft.seen.listed_at is not None else draft.now
    draft.wake(first + SEEN_FOR_S)
    return listed >= first + SEEN_FOR_S


def _end(instance: Instance, what: _What, text: str, draft: Draft) -> None:
    """Ask for the end of the instance again and again until it is gone; report once."""
    key = f"{what}:{instance.id}"
    listed_s = draft.now - _since(instance, what, draft)
    why = Why(rule=f"{what}.end", text=text, evidence=(f"token {instance.token}", f"listed for {listed_s:.0f} s"))
    action = TerminateInstance(key=Key(key), why=why, instance=instance.id, node=instance.node)
    if draft.wish(action, draft.want.repair.retry_s):
        draft.tell(f"instance.{what}", text, once=f"told:{key}", level=Level.WARNING, node=instance.node)


def _tell_foreign(instance: Instance, draft: Draft) -> None:
    """Report an instance that has the name of a slot's node and is not the slot's; it is left alone."""
    record = draft.slots[instance.node]
    is_known = instance.id == record.instance or instance.token.startswith(f"{record.logical}-")
    if is_known or any(instance.token.startswith(f"{id}-") for id in draft.cases):
        return
    text = f"{instance.node}: instance {instance.id} was not made by Steward and is left alone"
    draft.tell("instance.foreign", text, once=f"foreign:{instance.id}", level=Level.WARNING, node=instance.node)
