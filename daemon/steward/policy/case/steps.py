"""The actions that a case needs in each step, and the changes to its record when it enters a step."""

from collections.abc import Callable
from dataclasses import replace

from steward.model.action import DownNode, DrainNode, LaunchInstance, RebootInstance, ReturnNode, TerminateInstance
from steward.model.agent_action import MendNode
from steward.model.case import Case, CaseStep, Trigger
from steward.model.health import Advice
from steward.model.ids import InstanceId, Key, NodeName
from steward.model.instance import Slot
from steward.model.mark import SPARE, Mark
from steward.model.why import Why
from steward.policy.case.facts import (
    MARKED,
    bears_older_mark,
    is_forgotten,
    is_lost,
    is_unmarked,
    is_unsigned,
    own_fatal,
)
from steward.policy.case.incidents import note_scouted
from steward.policy.case.marks import note_mark
from steward.policy.case.scene import CaseScene, old_instance, stale_instances, try_key, waits_for_jobs
from steward.policy.case.spares import free_spare, needs_spare, with_possible_rung
from steward.policy.case.table import CaseFact
from steward.policy.draft import Draft
from steward.policy.facts.incidents import CHECK
from steward.policy.facts.verdict import NOTHING, admin_command, order_of, order_outcome
from steward.policy.guards.approval import ask_for_approval, needs_approval
from steward.policy.guards.budget import must_wait
from steward.policy.guards.deep_start import DeepStart, ask_launch, ask_start, why_failed
from steward.policy.guards.ladder import (
    bounded_for_users,
    first_rung,
    forget_remedy,
    higher,
    is_light,
    next_rung,
    note_remedy,
    was_repaired,
    why_kept,
    why_quarantined,
)
from steward.policy.guards.new_machine import LAUNCH_AGAIN_S, ask_checks, ask_setup, may_be_half_made

_CARRIED_OUT = (CaseFact.LAUNCHED, CaseFact.ESCALATE, CaseFact.DUD, CaseFact.SPENT)
"""The facts after which a launch or a reboot has taken place."""
_ON_THE_WAY = (CaseStep.MEND, CaseStep.LAUNCH, CaseStep.PROVISION, CaseStep.VERIFY, CaseStep.RETURN)


def mark_of(case: Case) -> Mark:
    """Return our mark for the node of this case."""
    return Mark(check=case.check, action=case.rung.value, id=case.id)


def entered(case: Case, fact: CaseFact, step: CaseStep, scene: CaseScene) -> Case:
    """Return the case after it moved by `fact` to `step`, with its times and counts."""
    now = scene.draft.now
    moved = replace(case, step=step, entered=now)
    change = _ON_FACT.get(fact)
    moved = change(moved, scene) if change else moved
    if step is CaseStep.MEND:
        note_remedy(moved, scene.draft)
    if case.step is CaseStep.LAUNCH and fact in _CARRIED_OUT:
        _note_repair(case, scene.draft)
    if step is CaseStep.LAUNCH and case.step is CaseStep.RELEASE:
        moved = replace(moved, old_instance=moved.old_instance or old_instance(moved, scene.draft))
    return replace(moved, closed=now) if step is CaseStep.CLOSED else moved


def _note_repair(case: Case, draft: Draft) -> None:
    """Note a reboot or launch that took place; once a case also in the node's history, unless it is for users."""
    if not case.is_for_users and not was_repaired(case, draft):
        draft.history[case.node] = (*draft.history.get(case.node, ()), draft.now)
    note_remedy(case, draft)


def _worse(case: Case, scene: CaseScene) -> Case:
    """Return the case after the fault got worse; its rung only goes up."""
    # the agent of a dead node cannot carry out a light repair
    finding = None if is_lost(scene) else own_fatal(scene)
    if finding is None:
        rung = Advice.REPLACE if is_light(case) else case.rung
        lost = replace(case, trigger=Trigger.LOST, rung=rung, target="", marked=None, may_be_users="")
        return with_possible_rung(lost, scene.draft) if is_light(case) else lost
    rung, target = first_rung(finding, case.node, scene.draft)
    worse = replace(case, trigger=Trigger.FATAL, marked=None)
    if higher(rung, case.rung) is not case.rung:
        worse = replace(worse, rung=rung, target=target)
    return bounded_for_users(worse, scene.draft)


def _next_rung(case: Case, scene: CaseScene) -> Case:
    """Return the case with the next higher rung that its machine can have."""
    higher_one = replace(case, rung=next_rung(case.rung), target="")
    return with_possible_rung(higher_one, scene.draft) if higher_one.rung is Advice.REBOOT else higher_one


def _quarantined(case: Case, scene: CaseScene) -> Case:
    text = f"{why_quarantined(case, scene.draft)}: a person must look"
    return replace(case, why=Why(rule="case.quarantine", text=text, evidence=(str(case.why),)))


def _next_try(case: Case, scene: CaseScene) -> Case:
    fresh = replace(case, launches=case.launches + 1, tries=0, refusals=0, next_try=0.0, new_instance=None)
    return replace(fresh, rung=Advice.REPLACE, stand_in=None)


def _launched(case: Case, scene: CaseScene) -> Case:
    instance = scene.instance
    stand_in = instance.node if instance and needs_spare(case, scene.draft) else None
    return replace(case, new_instance=instance.id if instance else case.old_instance, stand_in=stand_in)


def _without_stand_in(case: Case, scene: CaseScene) -> Case:
    return replace(case, stand_in=None)


def _spent(case: Case, scene: CaseScene) -> Case:
    kept = f"{text}: a person must look" if (text := why_kept(case, scene.draft)) else ""
    why = Why(rule="case.quarantine", text=kept, evidence=(str(case.why),)) if kept else case.why
    return replace(case, stand_in=None, why=why)


def _after_incident(case: Case, scene: CaseScene) -> Case:
    """Return the case that an incident ended; a scout's repair that did not help counts against no hardware."""
    if case.step is CaseStep.CLOSED and case.marked is not None:
        note_scouted(f"{CHECK}{case.check}", scene.draft)
        forget_remedy(case, scene.draft)
    return case


_ON_FACT: dict[CaseFact, Callable[[Case, CaseScene], Case]] = {
    CaseFact.INCIDENT: _after_incident,
    CaseFact.WORSE: _worse,
    CaseFact.OUT: lambda case, scene: replace(case, marked=scene.draft.now),
    CaseFact.WORN_OUT: _quarantined,
    CaseFact.USED_UP: _next_rung,
    CaseFact.NO_HELP: _next_rung,
    CaseFact.HEARD_AGAIN: lambda case, scene: replace(case, rung=Advice.NONE, stand_in=None),
    CaseFact.ESCALATE: _next_try,
    CaseFact.NOT_DONE: _next_try,
    CaseFact.DUD: _next_try,
    CaseFact.LAUNCHED: _launched,
    CaseFact.CAME: lambda case, scene: replace(_launched(case, scene), replaced=scene.draft.now),
    CaseFact.MENDED: lambda case, scene: replace(case, replaced=scene.draft.now),
    CaseFact.REBORN: lambda case, scene: replace(case, replaced=scene.draft.now),
    CaseFact.SPENT: _spent,
    CaseFact.LATE: _without_stand_in,
    CaseFact.STOOD_IN: lambda case, scene: replace(case, returned=scene.draft.now),
    CaseFact.BACK: lambda case, scene: replace(case, returned=scene.draft.now),
}


def wish_for(scene: CaseScene) -> None:
    """Ask for the actions that the case needs in its step; on a node that lost our mark, at most for the mark."""
    if scene.case.step in MARKED and is_unmarked(scene):
        if is_forgotten(scene) and scene.case.step is CaseStep.DRAIN:
            _take_out(scene)
        elif is_forgotten(scene):
            _mark_again(scene, "slurmctld restarted and lost Steward's mark")
        return
    if scene.case.step in _ON_THE_WAY and bears_older_mark(scene):
        _mark_again(scene, "slurmctld restarted and shows an older mark of Steward's")
    elif scene.case.step in _ON_THE_WAY and is_unsigned(scene):
        _mark_again(scene, "the node lost Steward's mark when its power changed or it registered")
    elif scene.node.is_ours:
        scene = replace(scene, case=note_mark(scene.case, scene.draft))
    wish = _WISHES.get(scene.case.step)
    if wish:
        wish(scene)


def _take_out(scene: CaseScene) -> None:
    case, draft = scene.case, scene.draft
    if case.command:
        return
    of = DownNode if case.trigger.ends_jobs else DrainNode
    verb = "down" if of is DownNode else "drain"
    draft.wish(
        of(key=Key(f"{verb}:{case.id}"), why=case.why, node=case.node, mark=mark_of(case)), draft.want.repair.retry_s
    )


def _mark_again(scene: CaseScene, text: str) -> None:
    """Write our mark again."""
    # without the mark the machine would take jobs before it is verified, or could not be returned
    case, draft = scene.case, scene.draft
    why = Why(rule="case.sign", text=f"{case.node}: {text}", evidence=(str(case.why),))
    key = Key(f"sign:{case.id}:{case.launches}:{case.step.value}")
    again = DrainNode(key=key, why=why, node=case.node, mark=mark_of(case), was_marked=True)
    if draft.wish(again, draft.want.repair.retry_s):
        draft.tell("case.sign", str(why), node=case.node, case=case.id)


def _ask_or_wait(scene: CaseScene) -> None:
    if needs_approval(ask_for_approval(scene.case, scene.draft), scene.draft):
        return
    if waits_for_jobs(scene.case, scene.node):
        text = f"{scene.case.node}: waits for its jobs to end"
    else:
        text = must_wait(scene.case, scene.draft)
    if text:
        once = f"wait:{scene.case.id}:{text.split(':')[0]}"
        scene.draft.tell("case.waiting", text, once=once, node=scene.case.node, case=scene.case.id)


def _mend(scene: CaseScene) -> None:
    ask_mend(scene.case, scene.draft)


def _replace(scene: CaseScene) -> None:
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
        draft.wish(TerminateInstance(key=key, why=why, instance=instance.id, node=case.node), draft.want.repair.retry_s)
    if not stale and not is_unsigned(scene) and not scene.node.is_powering_down:
        _launch(scene)


def _is_listing_older_than(case: Case, draft: Draft) -> bool:
    """Return whether the list of instances is older than the case."""
    # the old instance may be missing in such a list, and two machines would get one name
    return draft.seen.listed_at is not None and draft.seen.listed_at < case.opened


def _launch(scene: CaseScene) -> None:
    case = scene.case
    why = Why(rule="case.launch", text=f"a new instance for {case.node}", evidence=(str(case.why),))
    _ask_launch(scene.draft.slots.repairable[case.node], why, scene)


def _take_spare(scene: CaseScene) -> None:
    """Ask for a loan of a free spare; the broken machine is left alone."""
    # `keep_spares` takes back the spares of earlier tries
    case, draft = scene.case, scene.draft
    spare = free_spare(case, draft)
    if spare is not None:
        slot = replace(draft.slots.repairable[case.node], node=spare, instead_of=case.node)
        why = Why(rule="case.spare", text=f"{spare} will serve for {case.node}", evidence=(str(case.why),))
        _ask_launch(slot, why, scene)


def _ask_launch(slot: Slot, why: Why, scene: CaseScene) -> None:
    case, draft = scene.case, scene.draft
    if draft.now >= case.next_try:
        action = LaunchInstance(key=try_key(case), why=why, slot=slot, token=case.token, case=case.id)
        draft.wish(action, LAUNCH_AGAIN_S)
    draft.wake(case.next_try)


def _finish_launch(scene: CaseScene) -> None:
    case, draft = scene.case, scene.draft
    is_new = case.rung is Advice.REPLACE and case.stand_in is None and case.node in draft.slots.repairable
    if is_new and may_be_half_made(scene.instance, try_key(case), draft):
        _launch(scene)


def _reboot(scene: CaseScene) -> None:
    case, draft = scene.case, scene.draft
    instance = case.old_instance or (case.old.instance if case.old else InstanceId(""))
    why = Why(rule="case.reboot", text=f"reboot {case.node}", evidence=(str(case.why),))
    if draft.now >= case.next_try:
        action = RebootInstance(key=try_key(case), why=why, instance=instance, node=case.node, token=case.token)
        draft.wish(action, LAUNCH_AGAIN_S)
    draft.wake(case.next_try)


def _verify(scene: CaseScene) -> None:
    case, draft = scene.case, scene.draft
    if not scene.is_reborn:
        return
    if scene.setup is not None and not scene.is_prepared:
        why = Why(rule="case.setup", text=f"lifecycle scripts run on the new instance of {case.node}")
        ask_setup(scene.setup, why, draft)
        return
    node = scene.server.name
    what = f"the rebooted {node}" if case.rung is Advice.REBOOT else f"the new machine of {node}"
    if case.stand_in:
        what = f"{node}, which will serve for {case.node},"
    elif is_light(case):
        what = node
    why = Why(rule="case.verify", text=f"{what} must pass its checks")
    key = Key(f"verify:{case.id}:{case.launches}:{case.rung.value}")
    ask_checks(node, key, why, draft)


def _give_back(scene: CaseScene) -> None:
    """Return the repaired node, or the spare in its place, to service."""
    case, draft = scene.case, scene.draft
    if case.stand_in:
        _send_to_serve(case.stand_in, scene)
        return
    if scene.start in (DeepStart.WAITS, DeepStart.FAILED, DeepStart.UNCLEAR):
        _test(scene)
        return
    if scene.node.reason is not None and scene.launch is DeepStart.HELD and scene.node.reason.at > case.entered:
        return  # Slurm has just drained the node again: the launch test failed
    if scene.node.reason is None:
        return  # the node was returned: wait until slurmd has answered Slurm's ping
    why = Why(rule="case.return", text=f"all checks of {case.node} passed after its repair")
    key = Key(f"return:{case.id}:{case.launches}")
    order = admin_command(scene.node)  # the repair also fulfils a command that came meanwhile
    mark = scene.node.mark or mark_of(case)
    action = ReturnNode(key=key, why=why, node=case.node, mark=mark, command=order.text if order else case.command)
    if mark.id == case.id:
        draft.wish(action, draft.want.repair.retry_s)


def _test(scene: CaseScene) -> None:
    """Ask for the launch test, then the deep check; if one failed, drain the node again before users' jobs reach it."""
    case, draft = scene.case, scene.draft
    if scene.start is DeepStart.WAITS:
        if scene.launch is DeepStart.WAITS:
            ask_launch(case.node, case.launch_token, draft)
        else:
            ask_start(case.node, case.token, draft)
    elif not scene.node.is_drain:
        is_launch = scene.launch in (DeepStart.FAILED, DeepStart.UNCLEAR)
        token, what = (case.launch_token, "launch test") if is_launch else (case.token, "deep check")
        verb = "had no result from" if scene.start is DeepStart.UNCLEAR else "failed"
        text = f"{case.node} {verb} its {what}"
        why = Why(rule="case.unfit", text=text, evidence=(why_failed(token, draft), str(case.why)))
        key = Key(f"unfit:{token}")
        draft.wish(DrainNode(key=key, why=why, node=case.node, mark=mark_of(case)), draft.want.repair.retry_s)


def _send_to_serve(spare: NodeName, scene: CaseScene) -> None:
    case, draft = scene.case, scene.draft
    why = Why(rule="spare.serve", text=f"all checks of {spare} passed; it serves for {case.node}")
    key = Key(f"return:{case.id}:{case.launches}")
    if scene.server.mark == SPARE:
        draft.wish(ReturnNode(key=key, why=why, node=spare, mark=SPARE), draft.want.repair.retry_s)


_WISHES: dict[CaseStep, Callable[[CaseScene], None]] = {
    CaseStep.DRAIN: _take_out,
    CaseStep.RELEASE: _ask_or_wait,
    CaseStep.MEND: _mend,
    CaseStep.LAUNCH: _replace,
    CaseStep.PROVISION: _finish_launch,
    CaseStep.VERIFY: _verify,
    CaseStep.RETURN: _give_back,
}


def ask_mend(case: Case, draft: Draft) -> None:
    """Have the node's agent carry out the rung; repeated until the agent reports the end."""
    view, order = draft.seen.agents.get(case.node), order_of(case)
    if order is NOTHING or view is None or not view.connected or order_outcome(order, view) is not None:
        return
    why = Why(rule=f"case.{case.rung.value}", text=_order_text(case), evidence=(str(case.why),))
    action = MendNode(
        key=Key(f"mend:{order.token}"), why=why, node=case.node, rung=case.rung, target=case.target, token=order.token
    )
    draft.wish(action, draft.want.repair.retry_s)


def _order_text(case: Case) -> str:
    """Return what the order does, in words."""
    did = "restart of" if case.rung is Advice.RESTART_SERVICE else "reset of GPU"
    return f"{did} {case.target} on {case.node}"
