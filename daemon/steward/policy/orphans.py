"""Instances without a slot: those that we made and lost track of are ended, those of others are only told about."""

from steward.model.action import TerminateInstance
from steward.model.events import Level
from steward.model.ids import Key
from steward.model.instance import Instance, InstanceState
from steward.model.slot import SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.draft import Draft

SEEN_FOR_S = 60.0
"""Seen twice at least this far apart: a slot that is just being made or ended is not an orphan's."""


def settle_orphans(draft: Draft) -> None:
    """End instances that carry a token of this cluster's slots and belong to none; say once what is somebody else's."""
    if draft.cluster is None or not draft.provider_is_fresh:
        return
    ours, records = f"{draft.cluster.id}-", draft.records.unchanged
    of = (draft.seen.instances, records if records is not None else object(), draft.cluster.id)
    for instance in draft.ground.once("strays", of, lambda: _strays(ours, draft)):
        if instance.token.startswith(ours):
            _settle(instance, draft)
        elif instance.node not in draft.slots:
            _tell_foreign(instance, draft)


def _strays(ours: str, draft: Draft) -> list[Instance]:
    """Those that bear a token of ours and belong to no slot, and those of others under the name of a slot's node."""
    owners = {record.logical: record for record in draft.records.values()}
    found = []
    for instance in draft.seen.instances.values():
        if instance.state is InstanceState.GONE:
            continue
        if instance.token.startswith(ours):
            is_stray = not _is_of(owners.get(instance.token.rpartition("-")[0]), instance)
        else:
            record = draft.records.get(instance.node)
            is_stray = record is not None and record.instance != instance.id
        if is_stray:
            found.append(instance)
    return sorted(found, key=lambda instance: instance.id)


def _is_of(record: SlotRecord | None, instance: Instance) -> bool:
    """It is, or becomes, the slot's machine; a slot that ends sees to all that it ever launched."""
    if record is None or record.step is SlotStep.END:
        return record is not None
    return instance.token == record.token or instance.id == record.instance


def _settle(instance: Instance, draft: Draft) -> None:
    first = draft.first_seen(f"orphan:{instance.id}")
    listed = draft.seen.listed_at if draft.seen.listed_at is not None else draft.now
    draft.wake(first + SEEN_FOR_S)
    if listed < first + SEEN_FOR_S or not draft.may_provision:
        return
    why = Why(
        rule="orphan.end",
        text=f"instance {instance.id} was made for a slot that is no more",
        evidence=(f"token {instance.token}", f"listed for {draft.now - first:.0f} s"),
    )
    action = TerminateInstance(key=Key(f"orphan:{instance.id}"), why=why, instance=instance.id, node=instance.node)
    if draft.wish(action, draft.want.repair.retry_s):
        once = f"told:orphan:{instance.id}"
        draft.tell("instance.orphan", why.text, once=once, level=Level.WARNING, node=instance.node)


def _tell_foreign(instance: Instance, draft: Draft) -> None:
    """A machine that is not the slot's bears its node's name: left alone."""
    record = draft.records[instance.node]
    is_known = instance.id == record.instance or instance.token.startswith(f"{record.logical}-")
    if is_known or any(instance.token.startswith(f"{id}-") for id in draft.cases):
        return
    text = f"{instance.node}: instance {instance.id} is not one of ours and is left alone"
    draft.tell("instance.foreign", text, once=f"foreign:{instance.id}", level=Level.WARNING, node=instance.node)
