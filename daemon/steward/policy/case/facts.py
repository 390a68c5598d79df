"""The facts that the picture shows of a case: one small question for each fact of the table."""

from collections.abc import Callable
from dataclasses import replace

from steward.model.case import Step, Trigger
from steward.model.health import Advice, Finding, Severity
from steward.model.node import NodeBase
from steward.policy.case.scene import HARD, Scene
from steward.policy.case.spares import can_have_spare, is_spoilt, needs_spare
from steward.policy.case.table import Fact
from steward.policy.deep.start import DeepStart
from steward.policy.groups.setup import failure
from steward.policy.node.breaker import admit
from steward.policy.node.bring_up import has_passed, is_in_service, may_take_jobs, was_checked
from steward.policy.node.budget import awaits_yes, must_wait
from steward.policy.node.correlate import AGENTS, CHECK, covers, in_incident
from steward.policy.node.forgotten import has_forgotten, marked_since, note_gone
from steward.policy.node.gone import gone
from steward.policy.node.ladder import is_light, is_used_up, often_lost, quarantine
from steward.policy.node.reasons import speaks_of
from steward.policy.node.silence import is_withheld
from steward.policy.node.slurm_faults import bears_reason, keeps_reason
from steward.policy.node.suspicion import fault_of, is_in_incident, mark_word, why_left_alone
from steward.policy.node.verdict import (
    NOTHING,
    Standing,
    blocks_return,
    command,
    mode_of,
    order_of,
    outcome,
    standing,
    worst,
)

IN_SERVICE = (NodeBase.IDLE, NodeBase.ALLOCATED, NodeBase.MIXED)


MARKED = (Step.DRAIN, Step.RELEASE, Step.MEND, Step.LAUNCH, Step.PROVISION, Step.VERIFY, Step.HELD)
"""Steps in which the node bears our mark; in the first of them once it was seen there."""


def noted(scene: Scene) -> Scene:
    """The case with since when its node is without our mark."""
    if scene.case.step not in MARKED or not is_unmarked(scene):
        return scene
    return replace(scene, case=note_gone(scene.case, scene.draft))


def _cleared(scene: Scene) -> bool:
    """Whether a suspicion that could not be acted on (a breaker, a pause) is gone, or another fault by now."""
    case = scene.case
    match case.trigger:
        case Trigger.LOST:
            return standing(scene.node, scene.draft).standing not in (Standing.LOST, Standing.SILENT)
        case Trigger.ADMIN:
            return bool(case.command) and not bears_reason(case, scene.node, scene.draft)
    fault = fault_of(scene.node, scene.draft)
    return fault is None or (fault.trigger, mark_word(fault.check)) != (case.trigger, case.check)


def _incident(scene: Scene) -> bool:
    if scene.case.step is not Step.SUSPECT:
        kind = f"{CHECK}{scene.case.check}"
        return scene.case.is_of_reason and covers(kind, scene.draft) and (_no_help(scene) or _unproved(scene))
    match scene.case.trigger:
        case Trigger.LOST:
            return is_withheld(scene.node.name, scene.draft)
        case Trigger.ADMIN:
            return False
    fault = fault_of(scene.node, scene.draft)
    return fault is not None and is_in_incident(scene.node, fault, scene.draft)


def _confirmed(scene: Scene) -> bool:
    if scene.case.trigger is Trigger.LOST and not is_lost(scene):
        return False
    if scene.case.trigger is Trigger.ADMIN:
        return True
    if why_left_alone(scene.case.node, scene.draft):
        return False
    is_gone = scene.case.trigger is Trigger.LOST and gone(scene.node, scene.draft)
    return bool(is_gone) or admit(scene.case, scene.draft) is None


def _commanded(scene: Scene) -> bool:
    """Another command than the one this case follows; on a held case also the same one, given again."""
    order = command(scene.node)
    if order is None:
        return False
    return order.text != scene.case.command or (scene.case.step is Step.HELD and order.at > scene.case.entered)


def _taken(scene: Scene) -> bool:
    node = scene.node
    return node.is_foreign and command(node) is None and not keeps_reason(scene.case, node, scene.draft)


def _freed(scene: Scene) -> bool:
    return is_unmarked(scene) and has_forgotten(scene.case, scene.draft) is False


def is_forgotten(scene: Scene) -> bool:
    """Slurm's controller restarted without our mark: nobody gave the node back."""
    return is_unmarked(scene) and has_forgotten(scene.case, scene.draft) is True


def is_unmarked(scene: Scene) -> bool:
    """It is in service without our mark: a person gave it back, or Slurm's controller forgot. Until that is known
    nothing is done to it."""
    node = scene.node
    in_service = node.base in IN_SERVICE and not node.is_drain and node.mark is None
    return in_service and marked_since(scene.case) is not None and node.is_powered


def is_unsigned(scene: Scene) -> bool:
    """Slurm forgot that we took the node out: powering a node down clears its drain, powering it up the reason, and
    a node that was only DOWN takes jobs as soon as it is up."""
    node = scene.node
    return node.is_unsigned or (not node.is_powered and not node.is_drain)


def _worse(scene: Scene) -> bool:
    if scene.case.trigger is not Trigger.DEGRADED or is_unmarked(scene):
        return False
    return _is_surely_lost(scene) if is_lost(scene) else own_fatal(scene) is not None


def _is_surely_lost(scene: Scene) -> bool:
    """While many are silent at once: somebody says that it is gone."""
    return is_lost(scene) and (not covers(AGENTS, scene.draft) or bool(gone(scene.node, scene.draft)))


def own_fatal(scene: Scene) -> Finding | None:
    """The fatal finding of a living node that is its own: one that many nodes have at once, or whose check took out too
    many already, ends no jobs."""
    view, draft = scene.view, scene.draft
    if view is None or not view.connected:
        return None
    own = tuple(f for f in view.findings if not _is_of_many(f, scene))
    finding = worst(replace(view, findings=own), draft) if own else None
    return finding if finding is not None and finding.severity is Severity.FATAL else None


def _is_of_many(finding: Finding, scene: Scene) -> bool:
    if in_incident(scene.case.node, f"check:{finding.check}", scene.draft):
        return True
    breaker = scene.draft.breakers.get(f"check:{mark_word(finding.check)}")
    return breaker is not None and breaker.trial != scene.case.id


def is_lost(scene: Scene) -> bool:
    return standing(scene.node, scene.draft).standing is Standing.LOST


def _out(scene: Scene) -> bool:
    node, case = scene.node, scene.case
    if case.command:
        return bears_reason(case, node, scene.draft)
    marked = node.mark is not None and node.mark.id == case.id
    return marked and (node.is_down if case.trigger in HARD else node.is_drain)


def _unmanaged(scene: Scene) -> bool:
    case, draft = scene.case, scene.draft
    if is_light(case):
        return False
    return case.node not in draft.slots.repairable or (needs_spare(case, draft) and not can_have_spare(case, draft))


def _heard_again(scene: Scene) -> bool:
    """A machine that was gone with others, as when a rack lost its power, or that waits for a person's yes, and that
    nothing was done to yet."""
    case, view = scene.case, scene.view
    if (slot := scene.draft.slots.repairable.get(case.node)) is not None and slot.fixed:
        return _is_back(scene)
    if case.step is Step.LAUNCH:
        return False
    is_untouched = case.launches == 0 and case.replaced is None and case.stand_in is None
    is_out = is_untouched and case.rung is Advice.REPLACE and case.marked is not None
    may_be_well = case.gone or (case.trigger is Trigger.LOST and awaits_yes(case, scene.draft))
    if not (may_be_well and is_out) or case.old is None or view is None or view.incarnation is None:
        return False
    return view.is_heard and view.incarnation.instance == case.old.instance and not quarantine(case, scene.draft)


def _is_back(scene: Scene) -> bool:
    """Whether the only machine that ever bears this name was lost, and is heard again without a finding that keeps it
    out. A spare that was not taken yet is not waited for."""
    case, view = scene.case, scene.view
    if case.trigger is not Trigger.LOST or case.marked is None or is_light(case) or view is None or not view.is_heard:
        return False
    if case.step is Step.LAUNCH and (case.rung is Advice.REBOOT or scene.instance is not None):
        return False
    is_clean = not any(blocks_return(finding, scene.draft) for finding in view.findings)
    return is_clean and not quarantine(case, scene.draft) and not often_lost(case, scene.draft)


def _came(scene: Scene) -> bool:
    """Whether the new machine came after its deadline. One that was heard in time and is no good is left to a
    person."""
    case = scene.case
    is_waited_for = case.rung is Advice.REPLACE and case.replaced is None and not needs_spare(case, scene.draft)
    return is_waited_for and scene.instance is not None and scene.is_reborn


def _ready(scene: Scene) -> bool:
    if is_light(scene.case) or is_unmarked(scene):
        return False
    is_dead = scene.case.trigger in HARD or _is_surely_lost(scene)
    return (is_dead or not scene.node.is_busy) and not must_wait(scene.case, scene.draft)


def _gentle(scene: Scene) -> bool:
    """A light repair is for a living node that nothing runs on, also when its jobs were ended for it."""
    is_free = is_light(scene.case) and not scene.node.is_busy and not is_unmarked(scene)
    return is_free and not must_wait(scene.case, scene.draft)


def _mended(scene: Scene) -> bool:
    order = order_of(scene.case)
    return order is NOTHING or outcome(order, scene.view) == ""


def _no_help(scene: Scene) -> bool:
    """The agent could not carry it out, or its checks still fail, or it took too long."""
    if scene.case.step is Step.MEND:
        return scene.is_late or bool(outcome(order_of(scene.case), scene.view))
    if not is_light(scene.case):
        return False
    if scene.case.step is not Step.RETURN and scene.is_late:
        return True
    return (is_checked(scene) and _is_broken(scene)) or _died(scene) or _is_unfit(scene)


def _is_unfit(scene: Scene) -> bool:
    """Its launch test or its deep check failed, and it is out of service."""
    return scene.case.step is Step.RETURN and scene.start is DeepStart.FAILED and scene.node.is_drain


def _unproved(scene: Scene) -> bool:
    """Its launch test could not be made, and it is out of service: that says nothing against the machine."""
    return scene.case.step is Step.RETURN and scene.launch is DeepStart.UNCLEAR and scene.node.is_drain


def _refused(scene: Scene) -> bool:
    return scene.case.rung is Advice.REPLACE and scene.case.refusals >= scene.draft.want.repair.max_launches


def _escalate(scene: Scene) -> bool:
    return scene.case.rung is Advice.REBOOT and scene.is_late


def _not_done(scene: Scene) -> bool:
    is_refused = scene.case.refusals >= scene.draft.want.repair.max_launches
    return scene.case.rung is Advice.REBOOT and is_refused


def _launched(scene: Scene) -> bool:
    return scene.is_reborn if scene.case.rung is Advice.REBOOT else scene.instance is not None


def _no_good(scene: Scene) -> bool:
    """The present try failed: its instance is gone or broken, or the step took too long."""
    if is_light(scene.case):
        return False
    if scene.case.step is Step.LAUNCH:
        launched = scene.draft.overview.instances_with(scene.case.token)
        return any(i.state.is_dead for i in launched) and scene.instance is None
    if scene.setup is not None and failure(scene.setup, scene.view):
        return True
    if scene.case.stand_in is not None and is_spoilt(scene.case.stand_in, scene.draft):
        return True
    if _is_unfit(scene):
        return True
    if _is_gone(scene) or (scene.case.step is not Step.RETURN and scene.is_late):
        return True
    return scene.case.step is not Step.PROVISION and (_is_broken(scene) or _died(scene))


def _is_gone(scene: Scene) -> bool:
    known = scene.draft.provider_is_fresh and scene.case.rung is Advice.REPLACE
    return known and scene.instance is None and not scene.is_reborn


def _is_broken(scene: Scene) -> bool:
    """An event on the new incarnation that no later sample can clear (a state may still become good)."""
    findings = scene.server_view.findings if scene.server_view and scene.is_reborn else ()
    return any(f.event and blocks_return(f, scene.draft) for f in findings)


def _died(scene: Scene) -> bool:
    verdict = standing(scene.server, scene.draft)
    patience = scene.draft.want.repair.suspect_deadline_s
    since = verdict.since if verdict.since is not None else scene.draft.now
    return verdict.standing is Standing.LOST and scene.draft.now >= since + patience


def _tries_left(scene: Scene) -> bool:
    """A new machine on which jobs cannot begin either is not the cause: a person must look at the site's scripts."""
    if scene.case.rung is Advice.REPLACE and scene.case.step is Step.RETURN and scene.launch is DeepStart.FAILED:
        return False
    return scene.case.launches + 1 < scene.draft.want.repair.max_launches


def _sound(scene: Scene) -> bool:
    view = scene.server_view
    if not scene.is_reborn or not scene.is_prepared or view is None:
        return False
    if any(speaks_of(scene.case, f) and mode_of(f.check, scene.draft) != "off" for f in view.findings if f.is_bad):
        return False
    return has_passed(view, scene.case.entered, scene.draft) and is_registered(scene)


def is_checked(scene: Scene) -> bool:
    """Whether the checks that the present step asked for were answered."""
    return was_checked(scene.server_view, scene.case.entered)


def is_registered(scene: Scene) -> bool:
    """Whether Slurm has heard of a new slurmd: another start time than the old one's. A spare's was there all along,
    and so was that of a machine that a light repair left as it was."""
    stayed = scene.case.stand_in is not None or is_light(scene.case)
    is_other = stayed or scene.node.slurmd_started != scene.case.old_slurmd
    return scene.server.responding and is_other


def _back(scene: Scene) -> bool:
    return is_in_service(scene.server) and may_take_jobs(scene.start)


def _late(scene: Scene) -> bool:
    """Jobs on a node that was given back run with a person's leave."""
    return scene.is_late and not (scene.case.step in (Step.DRAIN, Step.RELEASE) and is_unmarked(scene))


QUESTIONS: dict[Fact, Callable[[Scene], bool]] = {
    Fact.CLEARED: _cleared,
    Fact.INCIDENT: _incident,
    Fact.CONFIRMED: _confirmed,
    Fact.COMMANDED: _commanded,
    Fact.TAKEN: _taken,
    Fact.FREED: _freed,
    Fact.WORSE: _worse,
    Fact.OUT: _out,
    Fact.UNMANAGED: _unmanaged,
    Fact.WORN_OUT: lambda scene: bool(quarantine(scene.case, scene.draft)),
    Fact.USED_UP: lambda scene: is_used_up(scene.case, scene.draft),
    Fact.GENTLE: _gentle,
    Fact.MENDED: _mended,
    Fact.NO_HELP: _no_help,
    Fact.READY: _ready,
    Fact.REFUSED: _refused,
    Fact.NOT_DONE: _not_done,
    Fact.ESCALATE: _escalate,
    Fact.LAUNCHED: _launched,
    Fact.HEARD_AGAIN: _heard_again,
    Fact.CAME: _came,
    Fact.REBORN: lambda scene: scene.is_reborn,
    Fact.DUD: lambda scene: _no_good(scene) and _tries_left(scene),
    Fact.SPENT: lambda scene: _no_good(scene) and not _tries_left(scene),
    Fact.SOUND: _sound,
    Fact.STOOD_IN: lambda scene: scene.case.stand_in is not None and _back(scene),
    Fact.UNPROVED: _unproved,
    Fact.BACK: lambda scene: scene.case.stand_in is None and _back(scene),
    Fact.LATE: _late,
}
