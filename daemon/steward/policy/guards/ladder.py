"""The ladder of repairs: which rung comes first, which next, and when a person must decide instead."""

from collections.abc import Iterator
from dataclasses import replace

from steward.model.case import Case, Remedy, Trigger
from steward.model.events import Level
from steward.model.health import Advice, Finding, Severity
from steward.model.ids import InstanceId, NodeName
from steward.model.mend import is_gpu_uuid, is_possible_mend
from steward.model.repair_policy import LadderPolicy, RepairPolicy
from steward.model.text import times
from steward.policy.draft import Draft
from steward.policy.facts.at_rest import jobs_needing_attention
from steward.policy.facts.users_faults import NOT_OF_HARDWARE, what_users_filled, why_may_be_users
from steward.policy.facts.verdict import incarnation_of

LIGHT = (Advice.NONE, Advice.RESTART_SERVICE, Advice.RESET_GPU)
"""Rungs that leave the machine as it is, with the same incarnation. NONE: the checks alone decide."""
HARDWARE = (Advice.RESET_GPU, Advice.REBOOT, Advice.REPLACE)
"""Rungs that count against the hardware; a service's restart does not."""
_NEXT = {Advice.REBOOT: Advice.REPLACE, Advice.REPLACE: Advice.REPLACE}
_HOUR_S, _DAY_S = 3600.0, 86400.0
HARDWARE_WINDOW_S = 7 * 86_400.0
"""Repairs of one piece of hardware within this time count together."""
RESTART_TIMEOUT_S = 120.0
"""How long a restarted service has to pass its checks."""
_KEPT_OF_ONE = 64
"""How many remedies of one piece of hardware are remembered."""


def is_light(case: Case) -> bool:
    """Return whether the case's rung leaves the machine as it is."""
    return case.rung in LIGHT


def next_rung(rung: Advice) -> Advice:
    """Return the rung that follows a rung that did not help, or was tried too often."""
    return _NEXT.get(rung, Advice.REBOOT)


def higher(one: Advice, other: Advice) -> Advice:
    """Return the higher of two rungs."""
    order = list(Advice)
    return max(one, other, key=order.index)


def first_rung(finding: Finding, node: NodeName, draft: Draft) -> tuple[Advice, str]:
    """Return the rung at which the repair of a finding begins, and the target of a light rung.

    A light rung without a fitting target is skipped.
    """
    rung, target = finding.advice, finding.hardware
    if rung is Advice.NONE or (_has_opted_in_job(node, draft) and _does_harm(finding)):
        return Advice.REPLACE, ""
    if rung in LIGHT:
        return (rung, target) if is_possible_mend(rung, target) else (next_rung(rung), "")
    return rung, ""


def _does_harm(finding: Finding) -> bool:
    """Return whether jobs on the node may not survive the fault."""
    return finding.severity is Severity.FATAL or finding.advice not in LIGHT


def _has_opted_in_job(node: NodeName, draft: Draft) -> bool:
    """Return whether a job with `--auto-resume` has the node."""
    running = (id for id in draft.overview.running_on.get(node, ()) if id in draft.jobs)
    found = (draft.jobs[id] for id in {*running, *jobs_needing_attention(draft)})
    # such a node is always replaced, never rebooted, as HyperPod does it
    return any(mem.ended is None and node in mem.nodes for mem in found)


def identity(about: str, node: NodeName, draft: Draft) -> str:
    """Return the name under which the repairs of a piece of hardware are counted; it stays if the node is renamed.

    It is the GPU's UUID if the finding is `about` a GPU, else the board's serial, else the instance id, else the node's
    name. An id that another node has as well is not used.
    """
    if is_gpu_uuid(about):
        return about
    view = draft.seen.agents.get(node)
    boards = [one for one in (view.hardware if view else ()) if not one.startswith(("GPU-", "MIG-"))]
    own = next((board for board in boards if not _has_board(board, node, draft)), None)
    if own is not None:
        return own
    who = incarnation_of(node, draft)
    return who.instance if who and not is_shared(who.instance, node, draft) else node


def _has_board(board: str, but: NodeName, draft: Draft) -> bool:
    """Return whether another node's agent reports the same board: cloned firmware, or several nodes on one machine."""
    others = (view for name, view in draft.seen.agents.items() if name != but and view.connected)
    return any(board in view.hardware for view in others)


def is_shared(instance: InstanceId, node: NodeName, draft: Draft) -> bool:
    """Return whether another node's machine has the same id, as clones of one disk or image have."""
    listed = draft.seen.instances.get(instance)
    if listed is not None and listed.node == node:
        return False
    return any(who.instance == instance for name, who in draft.agents.items() if name != node)


def bounded_for_users(case: Case, draft: Draft) -> Case:
    """Return the case with why one user's jobs alone may have brought its fault about, and then at most with a reboot.

    The checks then say whether the machine is sound; it is replaced if they fail after the reboot. Say so once.
    """
    case = replace(case, may_be_users=why_may_be_users(case, draft))
    if not case.may_be_users or case.rung is not Advice.REPLACE:
        return case
    text = f"{case.node}: {case.may_be_users}: its machine is rebooted and checked, not replaced"
    once = f"one_user:{case.id}"
    draft.tell("case.one_user", text, once=once, level=Level.WARNING, node=case.node, case=case.id)
    return replace(case, rung=Advice.REBOOT, target="")


def on_probation(case: Case, draft: Draft) -> Case:
    """Return the new case, a rung higher if its machine was repaired lately; an admin's command keeps its rung."""
    if case.trigger is Trigger.ADMIN or case.rung is Advice.REPLACE:
        return case
    since = draft.now - draft.want.repair.budgets.probation_s
    again = [r for r in _of_machine(case, draft) if r.at > since and _counts_on_probation(r, case, draft)]
    return replace(case, rung=next_rung(case.rung), target="") if again else case


def _counts_on_probation(remedy: Remedy, case: Case, draft: Draft) -> bool:
    """Return whether the earlier repair raises the rung of this case."""
    if case.may_be_users:
        return False  # a user can cause the fault again at once; the checks say each time whether the node is sound
    # a repair that only checked the node counts against the same check alone
    return _is_of_hardware(remedy) or (remedy.rung is case.rung is Advice.NONE and remedy.check == case.check)


def _is_of_hardware(remedy: Remedy) -> bool:
    """Return whether the repair counts against the hardware."""
    return remedy.rung in HARDWARE and not remedy.for_users


def was_repaired(case: Case, draft: Draft) -> bool:
    """Return whether this case has rebooted or replaced a machine."""
    kept = draft.remedies.get(case.hardware or case.node, ())
    return any(one.case == case.id and one.rung in (Advice.REBOOT, Advice.REPLACE) for one in kept)


def note_remedy(case: Case, draft: Draft) -> None:
    """Remember once that this rung of this case was carried out, however many machines it took."""
    kept = draft.remedies.get(key := case.hardware or case.node, ())
    if any(r.case == case.id and r.rung is case.rung for r in kept):
        return
    made = Remedy(
        at=draft.now,
        rung=case.rung,
        node=case.node,
        instance=_machine(case, draft),
        case=case.id,
        check=case.check,
        for_users=case.is_for_users,
    )
    draft.remedies[key] = (*kept, made)[-_KEPT_OF_ONE:]


def forget_remedy(case: Case, draft: Draft) -> None:
    """Forget the repairs of this case."""
    key = case.hardware or case.node
    left = tuple(remedy for remedy in draft.remedies.get(key, ()) if remedy.case != case.id)
    if left:
        draft.remedies[key] = left
    elif key in draft.remedies:
        draft.remedies.drop([key])


def _machine(case: Case, draft: Draft) -> InstanceId | None:
    """Return the machine of the case; None if it is unknown, or its id is shared."""
    machine = case.old.instance if case.old is not None else case.old_instance
    return None if machine is None or is_shared(machine, case.node, draft) else machine


def _of_machine(case: Case, draft: Draft) -> Iterator[Remedy]:
    """Yield the repairs by other cases of the same piece of hardware, or of the machine that has it."""
    machine = _machine(case, draft)
    for key, kept in draft.remedies.items():
        for remedy in kept:
            is_same = key == case.hardware or (machine is not None and remedy.instance == machine)
            if is_same and remedy.case != case.id:
                yield remedy


def is_used_up(case: Case, draft: Draft) -> bool:
    """Return whether this rung was tried so often lately that the next one is due."""
    most, window = _budget(case.rung, draft.want.repair.budgets)
    if case.trigger is Trigger.ADMIN or most is None:
        return False
    since, mine = draft.now - window, case.is_for_users
    lately = [r for r in _of_machine(case, draft) if r.rung is case.rung and r.at > since and (mine or not r.for_users)]
    return len(lately) >= most


def _budget(rung: Advice, rules: LadderPolicy) -> tuple[int | None, float]:
    """Return how often a rung may be tried, and within how many seconds; None for no limit."""
    match rung:
        case Advice.RESTART_SERVICE:
            return rules.restarts_per_hour, _HOUR_S
        case Advice.RESET_GPU:
            return rules.resets_per_day, _DAY_S
        case Advice.REBOOT:
            return rules.reboots_per_day, _DAY_S
        case _:
            return None, 0.0


def why_quarantined(case: Case, draft: Draft) -> str:
    """Return why a person must look before more is done to this hardware; empty if that is not needed.

    It holds back neither an admin's command nor the restart of a service.
    """
    if case.trigger is Trigger.ADMIN or case.rung not in HARDWARE:
        return ""
    often = _often_repaired(case, draft) or _often_replaced(case, draft) or _node_often_repaired(case, draft)
    return _caused_by_job(case, draft) or often


def often_lost(case: Case, draft: Draft) -> str:
    """Return why a lost machine that is back is left to a person; empty while it was not lost too often."""
    rules = draft.want.repair.budgets
    since = draft.now - HARDWARE_WINDOW_S
    cases = {
        r.case for r in _of_machine(case, draft) if r.at > since and r.check == case.check and _was_only_checked(r)
    }
    if len(cases) < rules.hardware_repairs:
        return ""
    return f"quarantine: {case.node} was lost {times(len(cases))} in {HARDWARE_WINDOW_S / _DAY_S:g} days"


def _was_only_checked(remedy: Remedy) -> bool:
    """Return whether the repair was only a check."""
    return remedy.rung is Advice.NONE


def _caused_by_job(case: Case, draft: Draft, *, is_refused: bool = False) -> str:
    """Return why the machine is not replaced: a user's jobs can cause the fault; empty for any other case.

    `is_refused`: the provider did not reboot it.
    """
    if case.rung is not Advice.REPLACE:
        return ""
    filled = what_users_filled(case, draft)
    why = f"users filled a disk ({filled})" if filled else case.may_be_users
    slot = draft.slots.repairable.get(case.node)
    can_reboot = slot is not None and slot.reboots and not is_refused
    # a fault that hardware has, too, is not left as it is where no reboot can show whose it is
    is_kept = filled or (why and (case.check in NOT_OF_HARDWARE or can_reboot))
    return f"{why}, and no machine is replaced for what a job can do" if is_kept else ""


def why_kept(case: Case, draft: Draft) -> str:
    """Return why the machine is not replaced after its reboot: that was refused, or a disk is full; else empty."""
    # a reboot that took place ends all of a user's reach but for what he stored
    is_refused = is_reboot_refused(case, draft)
    if case.rung is not Advice.REBOOT or not (is_refused or what_users_filled(case, draft)):
        return ""
    return _caused_by_job(replace(case, rung=Advice.REPLACE), draft, is_refused=is_refused)


def is_reboot_refused(case: Case, draft: Draft) -> bool:
    """Return whether the provider refused the reboot too often."""
    return case.rung is Advice.REBOOT and case.refusals >= draft.want.repair.max_launches


def _often_repaired(case: Case, draft: Draft) -> str:
    """Return how often the hardware was repaired, if that was too often; else empty."""
    rules = draft.want.repair.budgets
    since = draft.now - HARDWARE_WINDOW_S
    cases = {r.case for r in _of_machine(case, draft) if r.at > since and _is_of_hardware(r)}
    if len(cases) < rules.hardware_repairs:
        return ""
    return f"quarantine: {case.hardware} was repaired {times(len(cases))} in {HARDWARE_WINDOW_S / _DAY_S:g} days"


def _often_replaced(case: Case, draft: Draft) -> str:
    """Return how often the node's machine was replaced in a day, if that was too often; else empty."""
    since, most = draft.now - _DAY_S, draft.want.repair.budgets.replacements_per_day
    kept = (r for many in draft.remedies.values() for r in many if r.node == case.node and r.case != case.id)
    cases = {r.case for r in kept if r.rung is Advice.REPLACE and r.at > since}
    if case.rung is not Advice.REPLACE or len(cases) < most:
        return ""
    return f"quarantine: the machine of {case.node} was replaced {times(len(cases))} in a day"


def _node_often_repaired(case: Case, draft: Draft) -> str:
    """Return how often the node was repaired, if that was too often; else empty."""
    rules = draft.want.repair
    lately = [at for at in draft.history.get(case.node, ()) if at > draft.now - rules.node_repairs_window_s]
    if len(lately) < rules.node_repairs:
        return ""
    return f"quarantine: {case.node} was repaired {times(len(lately))} in {rules.node_repairs_window_s / _DAY_S:g} days"


def cool_until(case: Case, draft: Draft) -> float:
    """Return when the next repair for a failed check may begin: `cooldown_s` after the node's last return."""
    if case.trigger not in (Trigger.FATAL, Trigger.DEGRADED):
        return 0.0
    back = [c.returned for c in draft.cases.of(case.node) if c.returned is not None and not c.is_open]
    return max(back) + draft.want.repair.budgets.cooldown_s if back else 0.0


def time_limit(rung: Advice, rules: RepairPolicy) -> float:
    """Return how many seconds a rung may take to help."""
    match rung:
        case Advice.RESTART_SERVICE:
            return RESTART_TIMEOUT_S
        case Advice.RESET_GPU:
            return rules.budgets.reset_timeout_s
        case Advice.REBOOT:
            return min(rules.budgets.reboot_timeout_s, rules.launch_timeout_s)
        case Advice.NONE:
            return rules.verify_timeout_s
        case Advice.REPLACE:
            return rules.launch_timeout_s
