"""Move every slot of the API's groups as far as the picture allows, and update its record at each step."""

import hashlib
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from steward.model.capacity_policy import CapacityPolicy
from steward.model.case import CaseStep
from steward.model.events import Level
from steward.model.group import Group
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import InstanceState
from steward.model.slot import Hitch, Purpose, SlotFact, SlotRecord, SlotStep
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.facts.setup import setup_failure
from steward.policy.facts.verdict import blocks_return
from steward.policy.groups.slot_facts import QUESTIONS, is_registered, noted, setup_of
from steward.policy.groups.slot_save import backup_error, drain_wait_s
from steward.policy.groups.slot_scene import SlotScene
from steward.policy.groups.slot_table import SLOT_TABLE
from steward.policy.groups.slot_wishes import wish_for
from steward.policy.guards.bring_up import note_bring_up
from steward.policy.guards.deep_start import why_failed
from steward.policy.state_machine import StateMachine

WORRYING = frozenset(
    {
        SlotFact.LOST,
        SlotFact.REFUSED,
        SlotFact.STUMBLED,
        SlotFact.FAILED,
        SlotFact.LATE,
        SlotFact.UNSAVED,
        SlotFact.UNFIT,
    }
)


def move_slots(draft: Draft) -> None:
    """Move every slot by the facts, controllers first, then the oldest, and ask for the actions of its step."""
    # without a fresh list of instances, or while Steward is paused, nothing is launched, moved or ended
    if not draft.slots or not draft.provider_is_fresh or not draft.may_provision:
        return
    settled = _settled(draft)
    for group in sorted(draft.groups.values(), key=lambda group: group.turn):
        for record in draft.slots.members(group.name):
            if record.node not in settled:
                _move(record, group, draft)


def _settled(draft: Draft) -> AbstractSet[NodeName]:
    """Return the nodes whose slots need no look: serving, staying, and with their instances listed (the usual case)."""
    if draft.found.idle_slots is None:
        records = draft.slots.unchanged
        of = (records if records is not None else object(), draft.seen.instances)
        draft.found.idle_slots = draft.ground.once(_find_settled, of, draft)
    return draft.found.idle_slots - draft.slots.touched


def _find_settled(draft: Draft) -> frozenset[NodeName]:
    staying = (r for r in draft.slots.values() if r.step is SlotStep.SERVING and r.purpose is Purpose.STAY)
    listed = (record for record in staying if draft.instance(record.instance) is not None)
    return frozenset(record.node for record in listed if record.missing is None)


def _move(record: SlotRecord, group: Group, draft: Draft) -> None:
    scene = SlotScene(record=follow_repair(record, draft), group=group, draft=draft)
    moved = _SLOTS.move(scene)
    if moved is not None:
        wish_for(moved)


def _enter(scene: SlotScene, fact: SlotFact, step: SlotStep | None) -> SlotScene | None:
    if step is None:
        _remove(scene, fact)
        return None
    draft, before = scene.draft, scene.record
    after = entered(scene, fact, step)
    if before.step is SlotStep.SERVING:
        close_case(after, draft)
    note_bring_up(before, after, fact, scene.group, draft)
    trouble = f": {after.trouble}" if fact in WORRYING and after.trouble else ""
    text = f"{before.node}: {before.step.value} -> {step.value}: {fact.value}{trouble}"
    level = Level.WARNING if fact in WORRYING else Level.INFO
    draft.tell(f"slot.{step.value}", text, level=level, node=before.node, group=before.group)
    return replace(scene, record=draft.slots.keep(after))


_SLOTS = StateMachine(
    table=SLOT_TABLE, step_of=lambda scene: scene.record.step, questions=QUESTIONS, enter=_enter, noted=noted
)


def _remove(scene: SlotScene, fact: SlotFact) -> None:
    record, draft = scene.record, scene.draft
    draft.slots.forget(record)
    for id in () if scene.is_fixed else scene.repairs:
        draft.ended[id] = draft.now
    text = f"{record.node}: {record.step.value} -> gone: {fact.value}"
    draft.tell("slot.gone", text, node=record.node, group=record.group)


PASSING_TRIES = 12
"""This many launches in a row with a temporary error (50 minutes with the usual back-off) count as a refusal."""


def entered(scene: SlotScene, fact: SlotFact, step: SlotStep) -> SlotRecord:
    """Return the slot after it moved by `fact` to `step`, with its times and counts."""
    moved = replace(scene.record, step=step, entered=scene.draft.now)
    change = _ON_FACT.get(fact)
    moved = change(moved, scene) if change else moved
    if step is SlotStep.SERVING:
        return _serving(moved, scene)
    return _leaving(moved, scene) if step is SlotStep.DRAIN else moved


def with_failed_try(record: SlotRecord, hitch: Hitch, text: str, scene: SlotScene) -> SlotRecord:
    """Return the slot after another failed try: the kind of failure, and the time of the next try."""
    tries = record.tries + 1 if record.hitch is hitch else 1
    waits = backoff(hitch, scene.draft.want.capacity)
    next_try = scene.draft.now + waits[min(tries, len(waits)) - 1]
    return replace(record, tries=tries, hitch=hitch, trouble=text, next_try=next_try)


def backoff(hitch: Hitch, rules: CapacityPolicy) -> tuple[float, ...]:
    """Return the seconds to wait after the first, second, ... failure of a kind; the last one repeats."""
    return {
        Hitch.CAPACITY: rules.capacity_backoff_s,
        Hitch.QUOTA: rules.quota_backoff_s,
        Hitch.SCRIPT: rules.script_backoff_s,
        Hitch.BOOTSTRAP: rules.bootstrap_backoff_s,
    }.get(hitch, rules.other_backoff_s)


def hitch_of(error: str) -> Hitch:
    """Return the kind of failure, by the first word of a provider's error."""
    words = error.lower()
    return next((hitch for hitch in _WORDS if words.startswith(hitch.value)), Hitch.OTHER)


_WORDS = (Hitch.CAPACITY, Hitch.QUOTA, Hitch.REFUSED)


def host_instance(node: str) -> InstanceId:
    """Return the id of the head's own machine, in the form that the API's callers expect."""
    return InstanceId("i-" + hashlib.sha256(node.encode()).hexdigest()[:17])


def _given_up(record: SlotRecord) -> SlotRecord:
    """Return the slot without its instance; the next launch has another token."""
    bare = replace(record, instance=None, launched=None, launches=record.launches + 1, deadline=None)
    return replace(bare, missing=None, over=None)


def _serving(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    now = scene.draft.now
    sound = replace(record, tries=0, hitch=Hitch.NONE, trouble="", next_try=0.0, served=now, has_served=True)
    return replace(sound, updated=now if record.has_served else record.updated, saved=False)


def _leaving(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    until = scene.draft.now + drain_wait_s(record, scene.draft)
    return replace(record, deadline=until, tries=0, hitch=Hitch.NONE, trouble="")


def _found(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    """Return the slot with the instance that exists: the one made for it, or the newest of its node."""
    made = scene.launched
    if made is not None:
        return replace(record, instance=made.id)
    listed = scene.draft.instances_of(record.node)
    alive = [i for i in listed if i.state in (InstanceState.RUNNING, InstanceState.PENDING)]
    newest = max(alive, key=lambda i: (i.launched, i.id))
    return _with_present_version(replace(record, instance=newest.id, launched=None, old_slurmd=None), scene)


def _due(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    old_slurmd = scene.node.slurmd_started if scene.node else None
    return _with_present_version(replace(record, launched=scene.draft.now, old_slurmd=old_slurmd), scene)


def _with_present_version(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    """Return the slot with the group's present version; the failures of another version no longer count."""
    version = scene.group.version
    if record.version == version:
        return record
    return replace(record, version=version, tries=0, hitch=Hitch.NONE, trouble="")


def _launched(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    made = scene.launched
    with_it = replace(record, instance=made.id if made else None)
    if record.hitch in (*_WORDS, Hitch.OTHER):
        return replace(with_it, tries=0, hitch=Hitch.NONE, trouble="")
    return with_it


def _refused(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    error = scene.draft.seen.failures[scene.launch_key]
    hitch = hitch_of(error)
    if hitch is Hitch.OTHER and _fails_too_often(record, scene):
        return _counted_as_refused(record, error, scene)
    return with_failed_try(record, hitch, error, scene)


def _fails_too_often(record: SlotRecord, scene: SlotScene) -> bool:
    """Return whether too many launches in a row failed with a temporary error while the provider's lists work."""
    is_row = record.hitch in (Hitch.OTHER, Hitch.REFUSED)
    return is_row and record.tries + 1 >= PASSING_TRIES and scene.draft.provider_is_fresh


def _counted_as_refused(record: SlotRecord, error: str, scene: SlotScene) -> SlotRecord:
    tries = record.tries + 1
    text = f"{record.node}: {tries} launches in a row failed, the last one: {error}; this counts as a refusal"
    once = f"refused:{record.token}"
    scene.draft.tell("slot.refused", text, once=once, level=Level.WARNING, node=record.node, group=record.group)
    return with_failed_try(replace(record, hitch=Hitch.REFUSED), Hitch.REFUSED, error, scene)


def _lost(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    before = scene.record.step
    if before in (SlotStep.DRAIN, SlotStep.BACKUP):
        return record
    bare = _given_up(record)
    if before is SlotStep.SERVING:
        return replace(bare, trouble="its instance is gone")
    return with_failed_try(bare, Hitch.BOOTSTRAP, "its instance went away before it was ready", scene)


def _stumbled(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    return with_failed_try(record, Hitch.SCRIPT, setup_failure(setup_of(scene), scene.view), scene)


def _vacated(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    return replace(_given_up(record), purpose=Purpose.STAY)


def _unsaved(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    return replace(record, hitch=Hitch.OTHER, trouble=f"backup failed: {backup_error(scene)}")


def _unfit(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    return with_failed_try(record, Hitch.CHECKS, f"deep check failed: {why_failed(record.token, scene.draft)}", scene)


def _late(record: SlotRecord, scene: SlotScene) -> SlotRecord:
    hitch, text = _LATE.get(scene.record.step, (Hitch.OTHER, "the provider made nothing in time"))
    if scene.record.step is SlotStep.VERIFY:
        text = why_unsound(scene)
    return with_failed_try(record, hitch, text, scene)


_LATE = {
    SlotStep.PROVISION: (Hitch.BOOTSTRAP, "its agent did not connect in time"),
    SlotStep.SETUP: (Hitch.SCRIPT, "lifecycle scripts: execution timed out"),
    SlotStep.VERIFY: (Hitch.CHECKS, ""),
    SlotStep.RETURN: (Hitch.OTHER, "Slurm did not take its node back in time"),
}


def why_unsound(scene: SlotScene) -> str:
    """Return why a slot in VERIFY is not ready yet, in one line."""
    view = scene.view
    if scene.incarnation is None or view is None:
        return "its agent is not connected"
    bad = next((f for f in view.findings if blocks_return(f, scene.draft)), None)
    if bad is not None:
        return f"check {bad.check} failed: {bad.text}"
    if not is_registered(scene):
        return "its slurmd did not register with Slurm"
    return "its checks were not answered"


_ON_FACT: dict[SlotFact, Callable[[SlotRecord, SlotScene], SlotRecord]] = {
    SlotFact.HOSTED: lambda record, scene: replace(record, instance=host_instance(record.node)),
    SlotFact.SERVES: _found,
    SlotFact.FOUND: _found,
    SlotFact.DUE: _due,
    SlotFact.LAUNCHED: _launched,
    SlotFact.REFUSED: _refused,
    SlotFact.LOST: _lost,
    SlotFact.STUMBLED: _stumbled,
    SlotFact.FAILED: _stumbled,
    SlotFact.VACATED: _vacated,
    SlotFact.UNSAVED: _unsaved,
    SlotFact.UNFIT: _unfit,
    SlotFact.LATE: _late,
}


def follow_repair(record: SlotRecord, draft: Draft) -> SlotRecord:
    """Return the slot with the instance that a repair gave its node."""
    if record.step is not SlotStep.SERVING or draft.instance(record.instance) is not None:
        return record
    repaired = [c for c in draft.cases.of(record.node) if c.new_instance is not None]
    last = max(repaired, key=lambda c: (c.opened, c.id), default=None)
    if last is None or draft.instance(last.new_instance) is None:
        return record
    version = draft.groups[record.group].version
    return draft.slots.keep(replace(record, instance=last.new_instance, missing=None, version=version))


def close_case(record: SlotRecord, draft: Draft) -> None:
    """Close the node's open case: a slot that comes, leaves, or gets another instance takes over from the repair."""
    case = draft.cases.open_of(record.node)
    if case is None:
        return
    if case.step is CaseStep.SUSPECT:
        draft.cases.forget(case)
        return
    why = Why(rule="case.slot", text=f"group {record.group} replaces {record.node} now", evidence=(str(case.why),))
    draft.cases.close(case, why, draft.now)
    draft.tell("case.closed", why.text, node=record.node, case=case.id, group=record.group)
