"""Software updates of groups: batch by batch to the wanted version, or back to the previous one."""

from dataclasses import replace

from steward.model.action import LookAtAlarms
from steward.model.events import Level
from steward.model.group import BatchSize, Group, GroupStatus, Rollout, RolloutState, Version
from steward.model.ids import Key
from steward.model.node_names import fold
from steward.model.slot import Hitch, Purpose, SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.incidents import AGENTS, is_going_on
from steward.policy.groups.victims import least_harm

ALARMS_EVERY_S = 30.0
FIRING = "firing: "
"""The start of the error that says which alarms fire; any other error is a failed look, and says nothing."""
_BAD = (Hitch.REFUSED, Hitch.SCRIPT, Hitch.BOOTSTRAP, Hitch.CHECKS)
"""Failures that may be the version's fault, unlike a lack of capacity."""
_BACK = RolloutState.ROLLBACK_IN_PROGRESS
_SERVING = SlotStep.SERVING


def move_rollouts(draft: Draft) -> None:
    """Move every update as far as the picture allows; the groups stay open for jobs meanwhile."""
    if not draft.may_provision or not draft.provider_is_fresh:
        return
    for name in sorted(draft.groups):
        group = draft.groups[name]
        if group.status is GroupStatus.SYSTEM_UPDATING and group.rollout is not None:
            _move(group, group.rollout, draft)


def _move(group: Group, rollout: Rollout, draft: Draft) -> None:
    if rollout.state is RolloutState.PENDING:
        rollout = _begin(group, rollout, draft)
    rollout = _count_failures(group, rollout, draft)
    why = _why_rolled_back(group, rollout, draft)
    if why:
        rollout = _turn_back(group, rollout, why, draft)
    group = _save(group, rollout, draft)
    if _is_done(group, rollout, draft):
        _finish(group, rollout, draft)
    else:
        _next_batch(group, rollout, draft)


def _save(group: Group, rollout: Rollout, draft: Draft) -> Group:
    """Save the rollout and the version for new instances from now on, and return the group."""
    draft.groups[group.name] = replace(group, rollout=rollout, version=target_version(rollout))
    return draft.groups[group.name]


def target_version(rollout: Rollout) -> Version:
    """Return the version that the nodes are to get now: the wanted one, or the previous one in a rollback."""
    return rollout.previous if rollout.state is _BACK else rollout.wanted


def _begin(group: Group, rollout: Rollout, draft: Draft) -> Rollout:
    draft.tell("rollout.begun", f"{group.name}: the software update begins", group=group.name)
    _replace_coming(group, rollout.wanted, draft)
    return replace(rollout, state=RolloutState.IN_PROGRESS, next_batch_at=draft.now)


def _replace_coming(group: Group, wanted: Version, draft: Draft) -> None:
    """Replace at once the instances of another version that are still being launched or set up."""
    for slot in draft.slots.members(group.name):
        is_made = slot.is_coming and slot.step is not SlotStep.WAITING
        if is_made and slot.purpose is Purpose.STAY and slot.version != wanted:
            _replace_instance(slot, f"{slot.node} is being made from another version", draft)


def _replace_instance(slot: SlotRecord, text: str, draft: Draft) -> None:
    why = Why(rule="rollout.renew", text=text, evidence=(f"made from {_version_text(slot.version)}",))
    draft.slots.keep(replace(slot, purpose=Purpose.RENEW, why=why))


def _version_text(version: Version) -> str:
    words = [version.image or "the default image", version.release and f"release {version.release}"]
    return ", ".join(word for word in words if word) + f", update {version.serial}"


def _count_failures(group: Group, rollout: Rollout, draft: Draft) -> Rollout:
    """Return the rollout with each failed bring-up of the present version counted once."""
    for slot in draft.slots.members(group.name):
        if slot.hitch not in _BAD or slot.version != target_version(rollout):
            continue
        tried = f"{slot.token}:{slot.hitch.value}:{slot.tries}"
        if tried not in rollout.counted:
            counted = rollout.counted | {tried}
            why = f"{slot.node}: {slot.trouble}"
            rollout = replace(rollout, failures=rollout.failures + 1, counted=counted, why=why)
    return rollout


def _why_rolled_back(group: Group, rollout: Rollout, draft: Draft) -> str:
    """Return why the update is rolled back; empty while it goes on."""
    if rollout.state is not RolloutState.IN_PROGRESS:
        return ""
    most = draft.want.capacity.rollout_failures
    if rollout.failures >= most:
        return f"{rollout.failures} bring-ups failed (limit {most}), the last one {rollout.why}"
    return _firing_alarms(group, rollout, draft)


def _firing_alarms(group: Group, rollout: Rollout, draft: Draft) -> str:
    if not rollout.alarms:
        return ""
    key = Key(f"alarms:{group.name}:{rollout.wanted.serial}")
    error = draft.seen.failures.get(key, "")
    if error.startswith(FIRING) and draft.asked_at(key) is not None:
        return f"alarms are {error}"
    text = f"an alarm rolls the update of {group.name} back"
    why = Why(rule="rollout.alarms", text=text, evidence=rollout.alarms)
    draft.wish(LookAtAlarms(key=key, why=why, alarms=rollout.alarms), ALARMS_EVERY_S)
    return ""


def _turn_back(group: Group, rollout: Rollout, why: str, draft: Draft) -> Rollout:
    """Roll back to the previous version; instances not in service are replaced at once."""
    text = f"{group.name}: the software update is rolled back: {why}"
    draft.tell("rollout.back", text, level=Level.WARNING, group=group.name)
    _replace_coming(group, rollout.previous, draft)
    return replace(rollout, state=_BACK, next_batch_at=draft.now, failures=0, counted=frozenset(), why=why)


def _being_replaced(group: Group, draft: Draft) -> list[SlotRecord]:
    """Return the slots that are being replaced: the next batch waits for them."""
    return [
        slot
        for slot in draft.slots.members(group.name)
        if not slot.is_leaving and (slot.purpose is Purpose.RENEW or (slot.step is not _SERVING and slot.has_served))
    ]


def _with_other_version(group: Group, rollout: Rollout, draft: Draft) -> list[SlotRecord]:
    """Return the slots in service with another version."""
    return [
        slot
        for slot in draft.slots.members(group.name)
        if slot.step is _SERVING and slot.purpose is Purpose.STAY and slot.version != target_version(rollout)
    ]


def _is_done(group: Group, rollout: Rollout, draft: Draft) -> bool:
    """Return whether every node in service has the version, or a rollback has failed too often."""
    is_hopeless = rollout.state is _BACK and rollout.failures >= draft.want.capacity.rollout_failures
    return is_hopeless or not (_being_replaced(group, draft) or _with_other_version(group, rollout, draft))


def _next_batch(group: Group, rollout: Rollout, draft: Draft) -> None:
    """Begin the next batch once the last one serves and the wait after it is over."""
    # not while many agents are silent for one cause: replaced nodes would drop out of the count, and the rest would
    # look like single dead nodes
    if _being_replaced(group, draft) or is_going_on(AGENTS, draft):
        return
    if not rollout.next_batch_at:
        rollout = replace(rollout, next_batch_at=draft.now + rollout.wait_s)
        _save(group, rollout, draft)
    if draft.now < rollout.next_batch_at:
        draft.wake(rollout.next_batch_at)
        return
    batch = _batch(group, rollout, draft)
    for slot in batch:
        _replace_instance(slot, f"{slot.node} gets the version of the software update of {group.name}", draft)
    names = fold(slot.node for slot in batch)
    draft.tell("rollout.batch", f"{group.name}: {rollout.state.value}: {names}", group=group.name)
    _save(group, replace(rollout, next_batch_at=0.0), draft)


def _batch(group: Group, rollout: Rollout, draft: Draft) -> list[SlotRecord]:
    """Return the next slots to replace, the least work to lose first; nodes under repair only if no other is left."""
    waiting = _with_other_version(group, rollout, draft)
    free = [slot for slot in waiting if draft.cases.in_work(slot.node) is None]
    size = rollout.rollback_batch or rollout.batch if rollout.state is _BACK else rollout.batch
    return least_harm(free or waiting, nodes_of(size, len(draft.slots.members(group.name))), draft)


def nodes_of(size: BatchSize | None, members: int) -> int:
    """Return the number of nodes in a batch: a percentage is rounded up, and at least one node; all without a size."""
    if size is None:
        return members
    return max(1, size.count or -(-members * size.percent // 100))


def _finish(group: Group, rollout: Rollout, draft: Draft) -> None:
    if rollout.state is not _BACK:
        state, level, text = RolloutState.SUCCEEDED, Level.INFO, "the software update is done"
    elif _being_replaced(group, draft) or _with_other_version(group, rollout, draft):
        state, level = RolloutState.FAILED, Level.ERROR
        text = f"the software update failed, and so did its rollback: {rollout.why}"
    else:
        state, level, text = RolloutState.ROLLBACK_COMPLETE, Level.WARNING, f"rolled back: {rollout.why}"
    message = "" if state is RolloutState.SUCCEEDED else text
    ended = replace(rollout, state=state, finished=draft.now)
    draft.groups[group.name] = replace(group, rollout=ended, status=GroupStatus.IN_SERVICE, message=message)
    draft.tell("rollout.over", f"{group.name}: {text}", level=level, group=group.name)
