"""The facts of a case: one question for each fact of the table, answered from the picture."""

from collections.abc import Callable
from dataclasses import replace

from steward.model.case import CaseStep, Trigger
from steward.model.health import Advice, Finding, Severity
from steward.model.node import NodeBase
from steward.model.repair_policy import SUSPECT_S
from steward.policy.case.marks import note_gone
from steward.policy.case.scene import CaseScene
from steward.policy.case.spares import is_spoilt, needs_spare
from steward.policy.case.suspicion import fault_of, is_in_incident, mark_word, why_left_alone
from steward.policy.case.table import CaseFact
from steward.policy.facts.forgotten import has_forgotten, marked_since
from steward.policy.facts.gone import is_withheld, why_gone
from steward.policy.facts.incidents import AGENTS, CHECK, in_incident, is_going_on
from steward.policy.facts.loans import can_be_replaced
from steward.policy.facts.setup import setup_failure
from steward.policy.facts.slurm_faults import still_has_reason, still_has_slurms_reason
from steward.policy.facts.verdict import (
    NOTHING,
    Standing,
    admin_command,
    blocks_return,
    mode_of,
    order_of,
    order_outcome,
    standing,
    worst_finding,
)
from steward.policy.guards.approval import needs_approval
from steward.policy.guards.breaker import admit
from steward.policy.guards.budget import must_wait
from steward.policy.guards.deep_start import DeepStart
from steward.policy.guards.ladder import is_light, is_reboot_refused, is_used_up, often_lost, why_kept, why_quarantined
from steward.policy.guards.new_machine import has_passed, is_in_service, may_take_jobs, was_checked
from steward.policy.slurm_reasons import speaks_of

IN_SERVICE = (NodeBase.IDLE, NodeBase.ALLOCATED, NodeBase.MIXED)


MARKED = (
    CaseStep.DRAIN,
    CaseStep.RELEASE,
    CaseStep.MEND,
    CaseStep.LAUNCH,
    CaseStep.PROVISION,
    CaseStep.VERIFY,
    CaseStep.HELD,
)
"""The steps in which the node bears our mark; in DRAIN it does so only after Slurm showed the mark."""


def noted(scene: CaseScene) -> CaseScene:
    """Return the scene; if the node lost our mark, with the time noted in its case."""
    if scene.case.step not in MARKED or not is_unmarked(scene):
        return scene
    return replace(scene, case=note_gone(scene.case, scene.draft))


def _cleared(scene: CaseScene) -> bool:
    """Return whether the fault of a case that is not confirmed yet is gone, or has become another one."""
    case = scene.case
    match case.trigger:
        case Trigger.LOST:
            return standing(scene.node, scene.draft).standing not in (Standing.LOST, Standing.SILENT)
        case Trigger.ADMIN:
            return bool(case.command) and not still_has_reason(case, scene.node, scene.draft)
    fault = fault_of(scene.node, scene.draft)
    return fault is None or (fault.trigger, mark_word(fault.check)) != (case.trigger, case.check)


def _incident(scene: CaseScene) -> bool:
    if scene.case.step is not CaseStep.SUSPECT:
        kind = f"{CHECK}{scene.case.check}"
        return scene.case.is_of_reason and is_going_on(kind, scene.draft) and (_no_help(scene) or _unproved(scene))
    match scene.case.trigger:
        case Trigger.LOST:
            return is_withheld(scene.node.name, scene.draft)
        case Trigger.ADMIN:
            return False
    fault = fault_of(scene.node, scene.draft)
    return fault is not None and is_in_incident(scene.node, fault, scene.draft)


def _confirmed(scene: CaseScene) -> bool:
    if scene.case.trigger is Trigger.LOST and not is_lost(scene):
        return False
    if scene.case.trigger is Trigger.ADMIN:
        return True
    if why_left_alone(scene.case.node, scene.draft):
        return False
    is_gone = scene.case.trigger is Trigger.LOST and why_gone(scene.node, scene.draft)
    return bool(is_gone) or admit(scene.case, scene.draft) is None


def _commanded(scene: CaseScene) -> bool:
    """Return whether an admin gave another command, or on a held case the same command again."""
    order = admin_command(scene.node)
    if order is None:
        return False
    return order.text != scene.case.command or (scene.case.step is CaseStep.HELD and order.at > scene.case.entered)


def _taken(scene: CaseScene) -> bool:
    node = scene.node
    is_foreign = node.is_foreign and not _lost_reason(scene)
    return is_foreign and admin_command(node) is None and not still_has_slurms_reason(scene.case, node, scene.draft)


def _freed(scene: CaseScene) -> bool:
    return is_unmarked(scene) and has_forgotten(scene.case, scene.draft) is False


def is_forgotten(scene: CaseScene) -> bool:
    """Return whether slurmctld restarted and lost our mark: no person gave the node back."""
    return is_unmarked(scene) and has_forgotten(scene.case, scene.draft) is True


def is_unmarked(scene: CaseScene) -> bool:
    """Return whether the node is in service without our mark: a person gave it back, or slurmctld lost the mark."""
    # until it is known which of the two, nothing is done to the node
    node = scene.node
    in_service = node.base in IN_SERVICE and not node.is_drain and node.mark is None
    return in_service and marked_since(scene.case) is not None and node.is_powered


def is_unsigned(scene: CaseScene) -> bool:
    """Return whether Slurm has lost our drain because the node's power changed."""
    # powering a node down clears its drain, powering it up clears the reason, and a node that was only DOWN takes jobs
    # as soon as it is up
    node = scene.node
    return node.is_unsigned or _lost_reason(scene) or (not node.is_powered and not node.is_drain)


def bears_older_mark(scene: CaseScene) -> bool:
    """Return whether the node that bore the case's mark bears another one of ours."""
    # a group's update, or the repair before, had it out shortly before: what slurmctld had on disk when it died
    mark = scene.node.mark
    return mark is not None and mark.id != scene.case.id and marked_since(scene.case) is not None


def _lost_reason(scene: CaseScene) -> bool:
    """Return whether the node that bore our mark is still drained, and has no reason any more."""
    # Slurm clears the reason of a node that registers after it was given up at ResumeTimeout (22.05); a person can take
    # a node out only with a reason
    return scene.node.has_lost_reason and marked_since(scene.case) is not None


def _worse(scene: CaseScene) -> bool:
    if scene.case.trigger is not Trigger.DEGRADED or is_unmarked(scene):
        return False
    return _is_surely_lost(scene) if is_lost(scene) else own_fatal(scene) is not None


def _is_surely_lost(scene: CaseScene) -> bool:
    """Return whether the node is lost; while many nodes are silent at once, only if its loss is confirmed."""
    return is_lost(scene) and (not is_going_on(AGENTS, scene.draft) or bool(why_gone(scene.node, scene.draft)))


def own_fatal(scene: CaseScene) -> Finding | None:
    """Return the fatal finding that is a connected node's own fault; None if there is none."""
    # a finding that many nodes have, or whose check has tripped its breaker, must not end jobs
    view, draft = scene.view, scene.draft
    if view is None or not view.connected:
        return None
    own = tuple(f for f in view.findings if not _is_of_many(f, scene))
    finding = worst_finding(replace(view, findings=own), draft) if own else None
    return finding if finding is not None and finding.severity is Severity.FATAL else None


def _is_of_many(finding: Finding, scene: CaseScene) -> bool:
    if in_incident(scene.case.node, f"check:{finding.check}", scene.draft):
        return True
    breaker = scene.draft.breakers.get(f"check:{mark_word(finding.check)}")
    return breaker is not None and breaker.trial != scene.case.id


def is_lost(scene: CaseScene) -> bool:
    return standing(scene.node, scene.draft).standing is Standing.LOST


def _out(scene: CaseScene) -> bool:
    node, case = scene.node, scene.case
    if case.command:
        return still_has_reason(case, node, scene.draft)
    marked = node.mark is not None and node.mark.id == case.id
    return marked and (node.is_down if case.trigger.ends_jobs else node.is_drain)


def _unmanaged(scene: CaseScene) -> bool:
    case, draft = scene.case, scene.draft
    if is_light(case):
        return False
    if case.rung is Advice.REPLACE:
        return not can_be_replaced(case.node, draft)
    return case.node not in draft.slots.repairable


def _heard_again(scene: CaseScene) -> bool:
    """Return whether a lost machine that no repair has touched yet is heard again, so that its checks decide.

    Examples are a rack that lost its power for a while, and a repair that still waits for approval.
    """
    case, view = scene.case, scene.view
    if (slot := scene.draft.slots.repairable.get(case.node)) is not None and slot.fixed:
        return _is_back(scene)
    if case.step is CaseStep.LAUNCH:
        return False
    is_untouched = case.launches == 0 and case.replaced is None and case.stand_in is None
    is_out = is_untouched and case.rung is Advice.REPLACE and case.marked is not None
    may_be_well = case.gone or (case.trigger is Trigger.LOST and needs_approval(case, scene.draft))
    if not (may_be_well and is_out) or case.old is None or view is None or view.incarnation is None:
        return False
    return view.is_heard and view.incarnation.instance == case.old.instance and not why_quarantined(case, scene.draft)


def _is_back(scene: CaseScene) -> bool:
    """Return whether a lost fixed machine is heard again without a bad finding, before a spare took its place."""
    case, view = scene.case, scene.view
    if case.trigger is not Trigger.LOST or case.marked is None or is_light(case) or view is None or not view.is_heard:
        return False
    if case.step is CaseStep.LAUNCH and (case.rung is Advice.REBOOT or scene.instance is not None):
        return False
    is_clean = not any(blocks_return(finding, scene.draft) for finding in view.findings)
    return is_clean and not why_quarantined(case, scene.draft) and not often_lost(case, scene.draft)


def _came(scene: CaseScene) -> bool:
    """Return whether the new machine came after its deadline."""
    # a machine that connected in time and failed later is left to a person
    case = scene.case
    is_waited_for = case.rung is Advice.REPLACE and case.replaced is None and not needs_spare(case, scene.draft)
    return is_waited_for and scene.instance is not None and scene.is_reborn


def _ready(scene: CaseScene) -> bool:
    if is_light(scene.case) or is_unmarked(scene):
        return False
    is_dead = scene.case.trigger.ends_jobs or _is_surely_lost(scene)
    return (is_dead or not scene.node.is_busy) and not must_wait(scene.case, scene.draft)


def _gentle(scene: CaseScene) -> bool:
    """Return whether to begin a light repair: no job is on the node, and it is the case's turn."""
    is_free = is_light(scene.case) and not scene.node.is_busy and not is_unmarked(scene)
    return is_free and not must_wait(scene.case, scene.draft)


def _mended(scene: CaseScene) -> bool:
    order = order_of(scene.case)
    return order is NOTHING or order_outcome(order, scene.view) == ""


def _no_help(scene: CaseScene) -> bool:
    """Return whether the light repair failed: it was not carried out, took too long, or a check or test still fails."""
    if scene.case.step is CaseStep.MEND:
        return scene.is_late or bool(order_outcome(order_of(scene.case), scene.view))
    if not is_light(scene.case):
        return False
    if scene.case.step is not CaseStep.RETURN and scene.is_late:
        return True
    return (is_checked(scene) and _is_broken(scene)) or _died(scene) or _is_unfit(scene)


def _is_unfit(scene: CaseScene) -> bool:
    """Return whether the node's launch test or deep check failed, and the node is out of service."""
    return scene.case.step is CaseStep.RETURN and scene.start is DeepStart.FAILED and scene.node.is_drain


def _unproved(scene: CaseScene) -> bool:
    """Return whether the launch test could not be made (which proves no fault), and the node is out of service."""
    return scene.case.step is CaseStep.RETURN and scene.launch is DeepStart.UNCLEAR and scene.node.is_drain


def _refused(scene: CaseScene) -> bool:
    return scene.case.rung is Advice.REPLACE and scene.case.refusals >= scene.draft.want.repair.max_launches


def _escalate(scene: CaseScene) -> bool:
    return scene.case.rung is Advice.REBOOT and scene.is_late and not why_kept(scene.case, scene.draft)


def _not_done(scene: CaseScene) -> bool:
    return is_reboot_refused(scene.case, scene.draft) and not why_kept(scene.case, scene.draft)


def _launched(scene: CaseScene) -> bool:
    return scene.is_reborn if scene.case.rung is Advice.REBOOT else scene.instance is not None


def _no_good(scene: CaseScene) -> bool:
    """Return whether the present try failed: its instance is gone or broken, or the step took too long."""
    if is_light(scene.case):
        return False
    if scene.case.step is CaseStep.LAUNCH and scene.case.rung is Advice.REBOOT:
        return scene.is_late or is_reboot_refused(scene.case, scene.draft)
    if scene.case.step is CaseStep.LAUNCH:
        launched = scene.draft.overview.instances_with(scene.case.token)
        return any(i.state.is_dead for i in launched) and scene.instance is None
    if scene.setup is not None and setup_failure(scene.setup, scene.view):
        return True
    if scene.case.stand_in is not None and is_spoilt(scene.case.stand_in, scene.draft):
        return True
    if _is_unfit(scene):
        return True
    if _is_gone(scene) or (scene.case.step is not CaseStep.RETURN and scene.is_late):
        return True
    return scene.case.step is not CaseStep.PROVISION and (_is_broken(scene) or _died(scene))


def _is_gone(scene: CaseScene) -> bool:
    known = scene.draft.provider_is_fresh and scene.case.rung is Advice.REPLACE
    return known and scene.instance is None and not scene.is_reborn


def _is_broken(scene: CaseScene) -> bool:
    """Return whether the new incarnation reported an event that keeps it out, which no later look can clear."""
    findings = scene.server_view.findings if scene.server_view and scene.is_reborn else ()
    return any(f.event and blocks_return(f, scene.draft) for f in findings)


def _died(scene: CaseScene) -> bool:
    verdict = standing(scene.server, scene.draft)
    since = verdict.since if verdict.since is not None else scene.draft.now
    return verdict.standing is Standing.LOST and scene.draft.now >= since + SUSPECT_S


def _tries_left(scene: CaseScene) -> bool:
    """Return whether another try is left."""
    # if jobs cannot begin on the new machine either, the machine is not the cause: a person must look at the scripts
    if scene.case.rung is Advice.REPLACE and scene.case.step is CaseStep.RETURN and scene.launch is DeepStart.FAILED:
        return False
    return scene.case.launches + 1 < scene.draft.want.repair.max_launches and not why_kept(scene.case, scene.draft)


def _sound(scene: CaseScene) -> bool:
    view = scene.server_view
    if not scene.is_reborn or not scene.is_prepared or view is None:
        return False
    if any(speaks_of(scene.case, f) and mode_of(f.check, scene.draft) != "off" for f in view.findings if f.is_bad):
        return False
    return has_passed(view, scene.case.entered, scene.draft) and is_registered(scene)


def is_checked(scene: CaseScene) -> bool:
    """Return whether the checks that the present step asked for were answered."""
    return was_checked(scene.server_view, scene.case.entered)


def is_registered(scene: CaseScene) -> bool:
    """Return whether Slurm has registered the new slurmd, which has another start time than the old one."""
    # the slurmd of a spare, and the one after a light repair, need not have been started again
    stayed = scene.case.stand_in is not None or is_light(scene.case)
    is_other = stayed or scene.node.slurmd_started != scene.case.old_slurmd
    return scene.server.responding and not scene.server.is_refused and is_other


def _back(scene: CaseScene) -> bool:
    return is_in_service(scene.server) and may_take_jobs(scene.start)


def _late(scene: CaseScene) -> bool:
    """Return whether the step's deadline has passed."""
    # not if the node was given back before the repair began: its jobs may run on
    return scene.is_late and not (scene.case.step in (CaseStep.DRAIN, CaseStep.RELEASE) and is_unmarked(scene))


QUESTIONS: dict[CaseFact, Callable[[CaseScene], bool]] = {
    CaseFact.CLEARED: _cleared,
    CaseFact.INCIDENT: _incident,
    CaseFact.CONFIRMED: _confirmed,
    CaseFact.COMMANDED: _commanded,
    CaseFact.TAKEN: _taken,
    CaseFact.FREED: _freed,
    CaseFact.WORSE: _worse,
    CaseFact.OUT: _out,
    CaseFact.UNMANAGED: _unmanaged,
    CaseFact.WORN_OUT: lambda scene: bool(why_quarantined(scene.case, scene.draft)),
    CaseFact.USED_UP: lambda scene: is_used_up(scene.case, scene.draft),
    CaseFact.GENTLE: _gentle,
    CaseFact.MENDED: _mended,
    CaseFact.NO_HELP: _no_help,
    CaseFact.READY: _ready,
    CaseFact.REFUSED: _refused,
    CaseFact.NOT_DONE: _not_done,
    CaseFact.ESCALATE: _escalate,
    CaseFact.LAUNCHED: _launched,
    CaseFact.HEARD_AGAIN: _heard_again,
    CaseFact.CAME: _came,
    CaseFact.REBORN: lambda scene: scene.is_reborn,
    CaseFact.DUD: lambda scene: _no_good(scene) and _tries_left(scene),
    CaseFact.SPENT: lambda scene: _no_good(scene) and not _tries_left(scene),
    CaseFact.SOUND: _sound,
    CaseFact.STOOD_IN: lambda scene: scene.case.stand_in is not None and _back(scene),
    CaseFact.UNPROVED: _unproved,
    CaseFact.BACK: lambda scene: scene.case.stand_in is None and _back(scene),
    CaseFact.LATE: _late,
}
