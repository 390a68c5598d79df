"""What a case asks for in each step, and what it remembers when it enters one."""

from collections.abc import Callable
from dataclasses import replace

from steward.model.action import (
    CheckNow,
    DownNode,
    DrainNode,
    LaunchInstance,
    RebootInstance,
    ReturnNode,
    TerminateInstance,
)
from steward.model.case import Case, Step, Trigger
from steward.model.health import Advice
from steward.model.ids import InstanceId, Key, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.mark import SPARE, Mark
from steward.model.why import Why
from steward.policy.admin import command
from steward.policy.budget import must_wait
from steward.policy.case_facts import HARD, Scene, is_unsigned
from steward.policy.case_table import Fact
from steward.policy.draft import Draft
from steward.policy.setup import ask_setup
from steward.policy.spares import free_spare, loan_of, needs_spare, shortage

CHECK_EVERY_S = 2.0
LAUNCH_AGAIN_S = 60.0
"""A launch or reboot that left neither an error nor a trace is asked for again, with the same token."""
_ON_THE_WAY = (Step.LAUNCH, Step.PROVISION, Step.VERIFY, Step.RETURN)


def mark_of(case: Case) -> Mark:
    """Our mark for the node of this case."""
    return Mark(check=case.check, action=case.rung.value, id=case.id)


def entered(case: Case, fact: Fact, step: Step, scene: Scene) -> Case:
    """The case after it moved by `fact` to `step`, with the times and counts that belong to it."""
    now = scene.draft.now
    moved = replace(case, step=step, entered=now)
    change = _ON_FACT.get(fact)
    moved = change(moved, scene) if change else moved
    if step is Step.LAUNCH and case.step is Step.RELEASE:
        _begin_replacing(case, scene.draft)
        moved = replace(moved, old_instance=moved.old_instance or old_instance(moved, scene.draft))
    return replace(moved, closed=now) if step is Step.CLOSED else moved


def _begin_replacing(case: Case, draft: Draft) -> None:
    draft.history[case.node] = (*draft.history.get(case.node, ()), draft.now)


def _worse(case: Case, scene: Scene) -> Case:
    finding_is_fatal = scene.view is not None and scene.view.connected
    return replace(case, trigger=Trigger.FATAL if finding_is_fatal else Trigger.LOST, marked=None)


def _next_try(case: Case, scene: Scene) -> Case:
    fresh = replace(case, launches=case.launches + 1, tries=0, refusals=0, next_try=0.0, new_instance=None)
    return replace(fresh, rung=Advice.REPLACE, stand_in=None)


def _launched(case: Case, scene: Scene) -> Case:
    instance = scene.instance
    stand_in = instance.node if instance and needs_spare(case, scene.draft) else None
    return replace(case, new_instance=instance.id if instance else case.old_instance, stand_in=stand_in)


def _without_stand_in(case: Case, scene: Scene) -> Case:
    return replace(case, stand_in=None)


_ON_FACT: dict[Fact, Callable[[Case, Scene], Case]] = {
    Fact.WORSE: _worse,
    Fact.OUT: lambda case, scene: replace(case, marked=scene.draft.now),
    Fact.ESCALATE: _next_try,
    Fact.DUD: _next_try,
    Fact.LAUNCHED: _launched,
    Fact.REBORN: lambda case, scene: replace(case, replaced=scene.draft.now),
    Fact.SPENT: _without_stand_in,
    Fact.LATE: _without_stand_in,
    Fact.STOOD_IN: lambda case, scene: replace(case, returned=scene.draft.now),
    Fact.BACK: lambda case, scene: replace(case, returned=scene.draft.now),
}


def wish_for(scene: Scene) -> None:
    """Ask for what the case needs in its present step."""
    if scene.case.step in _ON_THE_WAY and is_unsigned(scene):
        _sign_again(scene)
    wish = _WISHES.get(scene.case.step)
    if wish:
        wish(scene)


def _take_out(scene: Scene) -> None:
    case, draft = scene.case, scene.draft
    if case.command:
        return
    of = DownNode if case.trigger in HARD else DrainNode
    verb = "down" if of is DownNode else "drain"
    draft.wish(of(key=Key(f"{verb}:{case.id}"), why=case.why, node=case.node, mark=mark_of(case)), _retry(draft))


def _sign_again(scene: Scene) -> None:
    """Else its new machine would take jobs before it is verified, or could not be given back."""
    case, draft = scene.case, scene.draft
    why = Why(rule="case.sign", text=f"{case.node} lost our mark when its power changed", evidence=(str(case.why),))
    key = Key(f"sign:{case.id}:{case.launches}:{case.step.value}")
    draft.wish(DrainNode(key=key, why=why, node=case.node, mark=mark_of(case)), _retry(draft))


def _wait(scene: Scene) -> None:
    if scene.node.is_busy and scene.case.trigger not in HARD:
        text = f"{scene.case.node}: waits for the jobs on it to end"
    else:
        text = must_wait(scene.case, scene.draft)
    if text:
        once = f"wait:{scene.case.id}:{text.split(':')[0]}"
        scene.draft.tell("case.waiting", text, once=once, node=scene.case.node, case=scene.case.id)


def _replace(scene: Scene) -> None:
    case, draft = scene.case, scene.draft
    if not draft.provider_is_fresh or _is_listing_older_than(case, draft):
        return
    if case.rung is Advice.REBOOT:
        _reboot(scene)
        return
    if needs_spare(case, draft):
        _take_spare(scene)
        return
    stale = stale_instances(case, draft)
    for instance in stale:
        why = Why(rule="case.terminate", text=f"{case.node} gets a new instance", evidence=(str(case.why),))
        key = Key(f"terminate:{case.id}:{instance.id}")
        draft.wish(TerminateInstance(key=key, why=why, instance=instance.id, node=case.node), _retry(draft))
    if not stale and not is_unsigned(scene) and not scene.node.is_powering_down:
        _launch(scene)


def _is_listing_older_than(case: Case, draft: Draft) -> bool:
    """The old instance may be missing in it, and two machines would bear one name."""
    return draft.seen.listed_at is not None and draft.seen.listed_at < case.opened


def _launch(scene: Scene) -> None:
    case = scene.case
    why = Why(rule="case.launch", text=f"a new instance for {case.node}", evidence=(str(case.why),))
    _ask_for(scene.draft.slots[case.node], why, scene)


def _take_spare(scene: Scene) -> None:
    """The broken machine is left alone; what earlier tries took is given back by the keeper of the spares."""
    case, draft = scene.case, scene.draft
    spare = free_spare(case, draft)
    if spare is not None:
        slot = replace(draft.slots[case.node], node=spare, instead_of=case.node)
        why = Why(rule="case.spare", text=f"{spare} shall serve for {case.node}", evidence=(str(case.why),))
        _ask_for(slot, why, scene)


def _ask_for(slot: Slot, why: Why, scene: Scene) -> None:
    case, draft = scene.case, scene.draft
    if draft.now >= case.next_try:
        key = Key(f"launch:{case.token}:{case.tries}")
        draft.wish(LaunchInstance(key=key, why=why, slot=slot, token=case.token, case=case.id), LAUNCH_AGAIN_S)
    draft.wake(case.next_try)


def _reboot(scene: Scene) -> None:
    case, draft = scene.case, scene.draft
    instance = case.old_instance or (case.old.instance if case.old else InstanceId(""))
    why = Why(rule="case.reboot", text=f"reboot {case.node}", evidence=(str(case.why),))
    if draft.now >= case.next_try:
        key = Key(f"reboot:{case.token}:{case.tries}")
        draft.wish(
            RebootInstance(key=key, why=why, instance=instance, node=case.node, token=case.token), LAUNCH_AGAIN_S
        )
    draft.wake(case.next_try)


def _verify(scene: Scene) -> None:
    case, draft = scene.case, scene.draft
    if not scene.is_reborn:
        return
    if scene.setup is not None and not scene.is_prepared:
        why = Why(rule="case.setup", text=f"lifecycle scripts run on the new instance of {case.node}")
        ask_setup(scene.setup, why, draft)
        return
    node = scene.server.name
    what = f"{node}, which shall serve for {case.node}," if case.stand_in else f"the new incarnation of {node}"
    why = Why(rule="case.verify", text=f"{what} must pass its checks")
    key = Key(f"verify:{case.id}:{case.launches}")
    budget = draft.want.resume.check_budget_s
    draft.wish(CheckNow(key=key, why=why, nodes=frozenset({node}), budget_s=budget), CHECK_EVERY_S)


def _give_back(scene: Scene) -> None:
    """A command that an admin gave while the node was being repaired is carried out by that repair."""
    case, draft = scene.case, scene.draft
    if case.stand_in:
        _send_to_serve(case.stand_in, scene)
        return
    why = Why(rule="case.return", text=f"all checks of {case.node} passed on its new incarnation")
    key = Key(f"return:{case.id}:{case.launches}")
    order = command(scene.node)
    mark = scene.node.mark or mark_of(case)
    action = ReturnNode(key=key, why=why, node=case.node, mark=mark, command=order.text if order else case.command)
    if mark.id == case.id:
        draft.wish(action, _retry(draft))


def _send_to_serve(spare: NodeName, scene: Scene) -> None:
    case, draft = scene.case, scene.draft
    why = Why(rule="spare.serve", text=f"all checks of {spare} passed; it serves for {case.node}")
    key = Key(f"return:{case.id}:{case.launches}")
    if scene.server.mark == SPARE:
        draft.wish(ReturnNode(key=key, why=why, node=spare, mark=SPARE), _retry(draft))


_WISHES: dict[Step, Callable[[Scene], None]] = {
    Step.DRAIN: _take_out,
    Step.RELEASE: _wait,
    Step.LAUNCH: _replace,
    Step.VERIFY: _verify,
    Step.RETURN: _give_back,
}


def _retry(draft: Draft) -> float:
    return draft.want.repair.retry_s


def old_instance(case: Case, draft: Draft) -> InstanceId | None:
    """The instance behind the node when it was found bad: the one its agent named, else the newest one listed."""
    if case.old is not None and case.old.instance in draft.seen.instances:
        return case.old.instance
    listed = [i for i in _alive(case, draft) if not i.token.startswith(f"{case.id}-")]
    return max(listed, key=lambda i: (i.launched, i.id)).id if listed else None


def stale_instances(case: Case, draft: Draft) -> list[Instance]:
    """What must be gone before a new instance is launched: the old one and earlier tries of this case."""
    ours = [i for i in _alive(case, draft) if i.token.startswith(f"{case.id}-") and i.token != case.token]
    old = [i for i in _alive(case, draft) if i.id == case.old_instance]
    return sorted((*ours, *old), key=lambda i: i.id)


def _alive(case: Case, draft: Draft) -> list[Instance]:
    """Every instance of the node that can still be terminated (a stopped one too)."""
    listed = draft.seen.instances.values()
    return [i for i in listed if i.node == case.node and i.state is not InstanceState.GONE]


def note_old_instance(case: Case, draft: Draft) -> Case:
    """The instance that must go, once the provider's list shows it; it may not have when the case was opened."""
    if case.step is not Step.LAUNCH or case.old_instance is not None:
        return case
    return replace(case, old_instance=old_instance(case, draft))


def note_failures(case: Case, draft: Draft) -> Case:
    """Count a refused launch or reboot and choose when it is tried again."""
    if case.step is not Step.LAUNCH:
        return case
    verb = "reboot" if case.rung is Advice.REBOOT else "launch"
    key = Key(f"{verb}:{case.token}:{case.tries}")
    error = draft.seen.failures.get(key)
    return case if error is None or draft.asked_at(key) is None else _refused(case, error, draft)


def note_shortage(case: Case, draft: Draft) -> Case:
    """Want of a spare is want of capacity: it is told, and looked at again with growing patience."""
    if case.step is not Step.LAUNCH or not needs_spare(case, draft) or not draft.provider_is_fresh:
        return case
    has_one = loan_of(case, draft) is not None or free_spare(case, draft) is not None
    return case if has_one or draft.now < case.next_try else _refused(case, shortage(draft), draft)


def _refused(case: Case, error: str, draft: Draft) -> Case:
    rules = draft.want.repair
    for_want_of_capacity = error.startswith("capacity")
    steps = rules.capacity_backoff_s if for_want_of_capacity else (rules.retry_s,)
    wait = steps[min(case.tries, len(steps) - 1)]
    draft.tell("case.refused", f"{case.node}: {error}; again in {wait:.0f} s", node=case.node, case=case.id)
    refusals = case.refusals + (0 if for_want_of_capacity else 1)
    return replace(case, tries=case.tries + 1, refusals=refusals, next_try=draft.now + wait)
