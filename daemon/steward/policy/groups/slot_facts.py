"""The facts of a slot: one question for each fact of the table, answered from the picture.

Before the questions are asked, `noted` writes on the slot since when its instance is missing or gone.
"""

from collections.abc import Callable
from dataclasses import replace

from steward.model.instance import InstanceState
from steward.model.slot import Hitch, Purpose, SlotFact, SlotStep
from steward.policy.facts.setup import NodeSetup, is_prepared, setup_failure
from steward.policy.groups.slot_save import is_saved, is_unsaved, restore_is_over
from steward.policy.groups.slot_scene import LET_BE_S, SlotScene, is_busy, is_turn
from steward.policy.groups.slot_table import SLOT_TABLE
from steward.policy.guards.deep_start import DeepStart
from steward.policy.guards.new_machine import LAUNCH_AGAIN_S, has_passed, is_in_service, may_take_jobs, was_checked

GONE_FOR_S = 1.0
"""How much later a second list without the instance must begin before the instance counts as lost."""


def noted(scene: SlotScene) -> SlotScene:
    """Return the slot with the times since when its instance is missing, and since when nothing of it exists."""
    record, draft = scene.record, scene.draft
    asked, missing, over = SLOT_TABLE.facts_of(record.step), record.missing, record.over
    instance = record.instance
    if record.step is SlotStep.END and instance is None and (made := scene.launched) is not None:
        instance = made.id  # the launch made an instance after all: the slot ends when that one is gone
    if SlotFact.LOST in asked and _may_judge(scene) and record.step is not SlotStep.LAUNCH:
        missing = None if _is_there(scene) else _earlier_or_now(missing, draft.now)
    if SlotFact.GONE in asked and record.purpose is Purpose.LEAVE and _is_over(scene):
        over = _earlier_or_now(over, draft.now)
    if (instance, missing, over) == (record.instance, record.missing, record.over):
        return scene
    kept = replace(record, instance=instance, missing=missing, over=over)
    return replace(scene, record=draft.slots.keep(kept))


def _earlier_or_now(before: float | None, now: float) -> float:
    return now if before is None else before


def setup_of(scene: SlotScene) -> NodeSetup:
    """Return the present run of the group's scripts, with a token of its own per instance, version and try."""
    record = scene.record
    tries = record.tries if record.hitch is Hitch.SCRIPT else 0
    token = f"{record.token}-{record.version.serial}-{tries}"
    return NodeSetup(node=record.node, group=scene.group, token=token)


def _unwanted(scene: SlotScene) -> bool:
    return scene.record.purpose is not Purpose.STAY


def _found(scene: SlotScene) -> bool:
    """Return whether the slot has a machine: for a pool's node any one; else one made for the slot."""
    if scene.pool is None or scene.draft.now < scene.record.next_try:
        return scene.launched is not None
    alive = (InstanceState.PENDING, InstanceState.RUNNING)
    return any(i.state in alive for i in scene.draft.instances_of(scene.record.node))


def _serves(scene: SlotScene) -> bool:
    """Return whether a machine of the pool is in service already and needs no scripts; cases handle its faults."""
    in_service = scene.is_in_service and not scene.is_agent_gone
    return scene.pool is not None and in_service and not scene.group.lifecycle.has_scripts and _found(scene)


def _due(scene: SlotScene) -> bool:
    is_going = scene.node is not None and scene.node.is_powering_down
    return is_turn(scene) and scene.is_out and not is_going


def _refused(scene: SlotScene) -> bool:
    key = scene.launch_key
    return key in scene.draft.seen.failures and scene.draft.asked_at(key) is not None


def _connected(scene: SlotScene) -> bool:
    return scene.incarnation is not None


def _prepared(scene: SlotScene) -> bool:
    return is_prepared(setup_of(scene), scene.view)


def _stumbled(scene: SlotScene) -> bool:
    return bool(setup_failure(setup_of(scene), scene.view))


def _failed(scene: SlotScene) -> bool:
    record = scene.record
    tries = record.tries + 1 if record.hitch is Hitch.SCRIPT else 1
    return _stumbled(scene) and tries % scene.draft.want.capacity.setup_tries == 0


def _sound(scene: SlotScene) -> bool:
    record = scene.record
    if scene.incarnation is None or not was_checked(scene.view, record.entered) or not _may_return_again(scene):
        return False
    return has_passed(scene.view, record.entered, scene.draft) and is_registered(scene) and restore_is_over(scene)


def _may_return_again(scene: SlotScene) -> bool:
    """Return whether to try to return the node to Slurm again, after a wait that grows with each failed try."""
    # The wait takes at most half of the time for the verification.
    record, draft = scene.record, scene.draft
    if record.hitch is not Hitch.OTHER:
        return True
    until = min(record.next_try, record.entered + draft.want.repair.verify_timeout_s / 2)
    draft.wake(until)
    return draft.now >= until


def is_registered(scene: SlotScene) -> bool:
    """Return whether the instance's slurmd has registered and its node takes no jobs yet; true for other roles."""
    node, record = scene.node, scene.record
    if not scene.is_compute:
        return True
    if node is None or not node.responding or node.is_refused or node.slurmd_started is None or not scene.is_out:
        return False
    return node.slurmd_started != record.old_slurmd


def _taken(scene: SlotScene) -> bool:
    return scene.is_compute and scene.is_foreign


def _unfit(scene: SlotScene) -> bool:
    return scene.start is DeepStart.FAILED and scene.is_out


def _back(scene: SlotScene) -> bool:
    if not may_take_jobs(scene.start):
        return False
    return not scene.is_compute or (scene.node is not None and is_in_service(scene.node))


def _lost(scene: SlotScene) -> bool:
    record, draft = scene.record, scene.draft
    if not _may_judge(scene):
        return False
    if record.step is SlotStep.LAUNCH:
        tokens = (i.token for i in draft.seen.instances.values() if i.state is InstanceState.GONE)
        return scene.launched is None and record.token in tokens
    return not _is_there(scene) and _is_missed(scene)


def _may_judge(scene: SlotScene) -> bool:
    """Return whether the list of instances can show that the slot's own is gone; False during a repair."""
    draft = scene.draft
    return draft.provider_is_fresh and not scene.is_hosted and draft.cases.in_work(scene.record.node) is None


def _is_there(scene: SlotScene) -> bool:
    """Return whether the slot's instance is listed or its agent is connected; true for a slot without an instance."""
    record = scene.record
    return record.instance is None or scene.draft.instance(record.instance) is not None or _speaks(scene)


def _speaks(scene: SlotScene) -> bool:
    """Return whether the slot's agent is connected, or may still reconnect after the head's start."""
    # A list of instances may be wrong; a connected agent proves that the machine runs.
    return scene.incarnation is not None or scene.may_come_back


def _is_missed(scene: SlotScene) -> bool:
    """Return whether the slot's instance is listed as gone, or missing in two lists."""
    record, draft = scene.record, scene.draft
    if record.instance in draft.seen.instances:
        return True
    first = _earlier_or_now(record.missing, draft.now)
    listed = draft.seen.listed_at if draft.seen.listed_at is not None else draft.now
    draft.wake(first + GONE_FOR_S)
    return listed >= first + GONE_FOR_S


def _empty(scene: SlotScene) -> bool:
    return scene.is_out and not is_busy(scene)


def _hurried(scene: SlotScene) -> bool:
    at = scene.record.deadline
    scene.draft.wake(at)
    return scene.is_out and at is not None and scene.draft.now >= at


def _is_over(scene: SlotScene) -> bool:
    """Return whether nothing of the slot exists any more, by a fresh list of instances."""
    record, draft = scene.record, scene.draft
    if scene.is_hosted:
        return True
    if scene.is_fixed:
        return scene.node is None or scene.node.is_down or not is_busy(scene)
    if not draft.provider_is_fresh or scene.own or may_still_come(scene):
        return False
    draft.wake(record.entered + LET_BE_S)
    return scene.is_agent_gone or record.instance is None or draft.now >= record.entered + LET_BE_S


def may_still_come(scene: SlotScene) -> bool:
    """Return whether a requested launch may still make an instance: none, and no error, was seen so far."""
    asked = scene.draft.asked_at(scene.launch_key) if scene.record.launched else None
    if asked is None or scene.record.instance is not None or scene.launch_key in scene.draft.seen.failures:
        return False
    scene.draft.wake(asked + LAUNCH_AGAIN_S)
    return scene.draft.now < asked + LAUNCH_AGAIN_S


def _gone(scene: SlotScene) -> bool:
    """Return whether a leaving slot is over; leave time for Slurm's record of a dynamic node to be deleted first."""
    if scene.record.purpose is not Purpose.LEAVE or not _is_over(scene):
        return False
    if scene.pool is not None or not scene.is_compute or scene.node is None:
        return True
    until = _earlier_or_now(scene.record.over, scene.draft.now) + LET_BE_S
    scene.draft.wake(until)
    return scene.draft.now >= until


def _vacated(scene: SlotScene) -> bool:
    return scene.record.purpose is not Purpose.LEAVE and _is_over(scene)


def _late(scene: SlotScene) -> bool:
    """Return whether the step's deadline has passed, or the provider lists the machine as stopped."""
    record = scene.record
    if record.step is SlotStep.SETUP and is_busy(scene):
        return False
    instance = scene.draft.instance(record.instance)
    is_stopped = instance is not None and instance.state is InstanceState.STOPPED
    return scene.is_late or is_stopped


QUESTIONS: dict[SlotFact, Callable[[SlotScene], bool]] = {
    SlotFact.UNWANTED: _unwanted,
    SlotFact.HOSTED: lambda scene: scene.is_hosted,
    SlotFact.SERVES: _serves,
    SlotFact.FOUND: _found,
    SlotFact.DUE: _due,
    SlotFact.LAUNCHED: lambda scene: scene.launched is not None,
    SlotFact.REFUSED: _refused,
    SlotFact.CONNECTED: _connected,
    SlotFact.PREPARED: _prepared,
    SlotFact.STUMBLED: _stumbled,
    SlotFact.FAILED: _failed,
    SlotFact.SOUND: _sound,
    SlotFact.UNFIT: _unfit,
    SlotFact.BACK: _back,
    SlotFact.TAKEN: _taken,
    SlotFact.LOST: _lost,
    SlotFact.KEPT: lambda scene: scene.record.purpose is Purpose.STAY,
    SlotFact.EMPTY: _empty,
    SlotFact.HURRIED: _hurried,
    SlotFact.SAVED: is_saved,
    SlotFact.UNSAVED: is_unsaved,
    SlotFact.GONE: _gone,
    SlotFact.VACATED: _vacated,
    SlotFact.LATE: _late,
}
