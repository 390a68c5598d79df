"""The actions that a slot needs in each step. Only the slot's own instances are ended."""

from collections.abc import Callable

from steward.model.action import DownNode, DrainNode, ForgetNode, LaunchInstance, ReturnNode, TerminateInstance
from steward.model.ids import Key
from steward.model.slot import Purpose, SlotStep
from steward.model.why import Why
from steward.policy.groups.slot_facts import setup_of
from steward.policy.groups.slot_save import ask_backup, ask_restore, signal_jobs
from steward.policy.groups.slot_scene import LET_BE_S, SlotScene, is_busy, is_turn
from steward.policy.guards.deep_start import DeepStart, ask_start
from steward.policy.guards.new_machine import LAUNCH_AGAIN_S, ask_checks, ask_setup, may_be_half_made
from steward.policy.slot_of import slot_of


def wish_for(scene: SlotScene) -> None:
    """Ask for what the slot needs in its present step."""
    wish = _WISHES.get(scene.record.step)
    if wish:
        wish(scene)


def _retry(scene: SlotScene) -> float:
    return scene.draft.want.repair.retry_s


def _why(scene: SlotScene, rule: str, text: str) -> Why:
    return Why(rule=rule, text=text, evidence=(f"slot {scene.record.logical}", str(scene.record.why)))


def _await_turn(scene: SlotScene) -> None:
    if is_turn(scene):
        _keep_out_of_service(scene)


def _keep_out_of_service(scene: SlotScene) -> None:
    """Take the node out of service until it is verified: drain it; DOWN if its machine is gone but it has jobs."""
    record = scene.record
    if scene.is_out or scene.node is None:
        return
    why = _why(scene, "slot.hold", f"{record.node} takes no job before it is verified")
    key = f"{scene.mark.check}:{record.token}"
    if record.instance is None and is_busy(scene):
        scene.draft.wish(DownNode(key=Key(f"down:{key}"), why=why, node=record.node, mark=scene.mark), _retry(scene))
    else:
        scene.draft.wish(DrainNode(key=Key(f"drain:{key}"), why=why, node=record.node, mark=scene.mark), _retry(scene))


def _launch(scene: SlotScene) -> None:
    record, draft, node = scene.record, scene.draft, scene.node
    if scene.is_compute and node is not None and not node.is_powered and not node.is_drain:
        _drain_first(scene)
        return
    goal = scene.group.goal
    why = Why(
        rule="slot.launch",
        text=f"an instance for {record.node} of group {record.group}",
        evidence=(f"target {goal.target}, minimum {goal.minimum}", str(record.why)),
    )
    slot = slot_of(record, scene.group, draft.want)
    draft.wish(LaunchInstance(key=scene.launch_key, why=why, slot=slot, token=record.token), LAUNCH_AGAIN_S)


def _drain_first(scene: SlotScene) -> None:
    """Drain a cloud node before its launch: a node that is only DOWN would take jobs once it is powered up."""
    record = scene.record
    why = _why(scene, "slot.hold", f"{record.node} takes no job before it is verified")
    key = Key(f"drain:{scene.mark.check}:{record.token}:off")
    scene.draft.wish(DrainNode(key=key, why=why, node=record.node, mark=scene.mark), _retry(scene))


def _provision(scene: SlotScene) -> None:
    _keep_out_of_service(scene)
    if may_be_half_made(scene.launched, scene.launch_key, scene.draft):
        _launch(scene)


def _set_up(scene: SlotScene) -> None:
    _keep_out_of_service(scene)
    record = scene.record
    if not scene.is_out or is_busy(scene) or scene.incarnation is None:
        return
    if scene.draft.now < record.next_try:
        scene.draft.wake(record.next_try)
        return
    why = _why(scene, "slot.setup", f"the lifecycle scripts of group {record.group} run on {record.node}")
    ask_setup(setup_of(scene), why, scene.draft)


def _verify(scene: SlotScene) -> None:
    _keep_out_of_service(scene)
    record = scene.record
    if scene.incarnation is None:
        return
    ask_restore(scene)
    why = _why(scene, "slot.verify", f"the instance of {record.node} must pass its checks")
    ask_checks(record.node, Key(f"verify:{record.token}"), why, scene.draft)


def _return_to_service(scene: SlotScene) -> None:
    node, record = scene.node, scene.record
    if scene.start is DeepStart.WAITS:
        ask_start(record.node, record.token, scene.draft)
        return
    if scene.start is DeepStart.FAILED:
        _keep_out_of_service(scene)
        return
    if not scene.is_ours or node is None or node.mark is None:
        return
    why = _why(scene, "slot.return", f"all checks of {record.node} passed")
    key = Key(f"return:{record.token}")
    scene.draft.wish(ReturnNode(key=key, why=why, node=record.node, mark=node.mark), _retry(scene))


def _drain(scene: SlotScene) -> None:
    record = scene.record
    signal_jobs(scene)
    if scene.is_out or scene.node is None:
        return
    why = _why(scene, f"slot.{record.purpose.value}", _why_it_goes(scene))
    key = Key(f"drain:{record.purpose.value}:{record.token}")
    scene.draft.wish(DrainNode(key=key, why=why, node=record.node, mark=scene.mark), _retry(scene))


def _why_it_goes(scene: SlotScene) -> str:
    record = scene.record
    return f"{record.node} {'leaves' if record.purpose is Purpose.LEAVE else 'is made anew in'} group {record.group}"


def _end(scene: SlotScene) -> None:
    """End the slot: take its node down, then end its instance, then delete its dynamic node from Slurm."""
    # A slot that never had an instance has no node to take out of service.
    if scene.is_hosted or (scene.record.instance is None and not scene.own):
        _delete_node(scene)
        return
    _keep_out_of_service(scene)
    _take_down(scene)
    if scene.is_fixed or not _may_terminate(scene):
        return
    own = scene.own
    for instance in own:
        why = _why(scene, "slot.end", _why_it_ends(scene))
        key = Key(f"terminate:{scene.record.logical}:{instance.id}")
        action = TerminateInstance(key=key, why=why, instance=instance.id, node=instance.node)
        scene.draft.wish(action, _retry(scene))
    if not own:
        _delete_node(scene)


def _why_it_ends(scene: SlotScene) -> str:
    record = scene.record
    return f"{record.node}: {record.trouble}" if record.purpose is Purpose.STAY else _why_it_goes(scene)


def _take_down(scene: SlotScene) -> None:
    node, record = scene.node, scene.record
    if node is None or not scene.is_ours or node.is_down or not scene.is_compute:
        return
    why = _why(scene, "slot.down", _why_it_ends(scene))
    key = Key(f"down:{scene.mark.check}:{record.token}")
    scene.draft.wish(DownNode(key=key, why=why, node=record.node, mark=scene.mark), _retry(scene))


def _may_terminate(scene: SlotScene) -> bool:
    node, until = scene.node, scene.record.entered + LET_BE_S
    if node is None or not scene.is_compute or node.is_down or scene.is_foreign:
        return scene.draft.provider_is_fresh
    scene.draft.wake(until)
    return scene.draft.now >= until and scene.draft.provider_is_fresh


def _delete_node(scene: SlotScene) -> None:
    """Delete the dynamic node of a leaving slot from Slurm; another slot may use the name later."""
    record = scene.record
    if record.purpose is not Purpose.LEAVE or scene.pool is not None or scene.node is None or not scene.is_compute:
        return
    why = _why(scene, "slot.forget", f"the instance of {record.node} is gone")
    scene.draft.wish(ForgetNode(key=Key(f"forget:{record.token}"), why=why, node=record.node), _retry(scene))


_WISHES: dict[SlotStep, Callable[[SlotScene], None]] = {
    SlotStep.WAITING: _await_turn,
    SlotStep.LAUNCH: _launch,
    SlotStep.PROVISION: _provision,
    SlotStep.SETUP: _set_up,
    SlotStep.VERIFY: _verify,
    SlotStep.RETURN: _return_to_service,
    SlotStep.DRAIN: _drain,
    SlotStep.BACKUP: ask_backup,
    SlotStep.END: _end,
}
