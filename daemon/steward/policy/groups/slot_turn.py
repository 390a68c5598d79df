"""Whether a waiting slot may ask for its instance now, and what it waits for otherwise."""

from steward.model.group import Role
from steward.model.slot import SlotStep
from steward.policy.groups.slot_scene import LET_BE_S, SlotScene, is_busy
from steward.policy.node.bring_up import why_paused


def is_turn(scene: SlotScene) -> bool:
    return not why_not_yet(scene)


def why_not_yet(scene: SlotScene) -> str:
    """Why nothing is asked of the provider for this slot now; empty when it is its turn."""
    record, draft = scene.record, scene.draft
    if scene.is_fixed:
        return "capacity: its machine is fixed and does not run; switch it on"
    if paused := why_paused(record.group, draft):
        return paused
    if draft.now < record.next_try:
        draft.wake(record.next_try)
        return f"waits before the next try: {record.trouble}"
    if not draft.provider_is_fresh:
        return "waits for the provider: its machines cannot be listed now"
    if machine := _other_machine(scene):
        return f"waits: machine {machine} bears its name and does not run; start it, or end it"
    if _is_held_by_stranger(scene):
        return "waits: a machine that the provider does not list runs under its name; have it listed, or end it"
    if _waits_for_controller(scene):
        return "waits for the controller group"
    if draft.slots.launching >= draft.want.capacity.launches_at_once:
        return f"waits for its turn: {draft.slots.launching} launches are under way"
    return _waits_for_old_agent(scene)


def _other_machine(scene: SlotScene) -> str:
    """A stopped one that is not ours to end; two machines must not bear one name."""
    return next((instance.id for instance in scene.draft.instances_of(scene.record.node)), "")


def _is_held_by_stranger(scene: SlotScene) -> bool:
    """A machine is there that the slot never had, or does not have any more: its agent is connected, or Slurm has jobs
    there. Neither are they ended nor is a second machine made, however long it takes."""
    if scene.pool is None:
        return False
    if scene.record.launches == 0 and (not scene.is_agent_gone or (scene.is_in_service and is_busy(scene))):
        return True
    return scene.is_in_service and (not scene.is_agent_gone or scene.may_come_back)


def _waits_for_controller(scene: SlotScene) -> bool:
    draft = scene.draft
    if scene.group.role is Role.CONTROLLER:
        return False
    controllers = [group.name for group in draft.groups.values() if group.role is Role.CONTROLLER]
    serving = (r.step is SlotStep.SERVING for name in controllers for r in draft.slots.members(name))
    return bool(controllers) and not any(serving)


def _waits_for_old_agent(scene: SlotScene) -> str:
    """The agent of the machine before may still be taken for there: it must not be mistaken for the new one's."""
    until = scene.record.entered + LET_BE_S
    if scene.is_agent_gone or scene.draft.now >= until:
        return ""
    scene.draft.wake(until)
    return "waits until the agent of the machine before is gone"
