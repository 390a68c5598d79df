"""The ladder of repairs: which rung comes first, which one next, and when a person is asked instead."""

from collections.abc import Iterator
from dataclasses import replace

from steward.model.case import Case, Remedy, Trigger
from steward.model.health import Advice, Finding, Severity
from steward.model.ids import InstanceId, NodeName
from steward.model.mend import fits, is_gpu_uuid
from steward.model.repair_policy import LadderPolicy, RepairPolicy
from steward.policy.draft import Draft
from steward.policy.job.at_rest import restless
from steward.policy.node.verdict import incarnation_of

LIGHT = (Advice.NONE, Advice.RESTART_SERVICE, Advice.RESET_GPU)
"""Rungs that leave the machine as it is: the same incarnation must pass its checks. NONE: they alone decide."""
HARDWARE = (Advice.RESET_GPU, Advice.REBOOT, Advice.REPLACE)
"""Rungs that speak against the hardware; a service's restart does not."""
_NEXT = {Advice.REBOOT: Advice.REPLACE, Advice.REPLACE: Advice.REPLACE}
_HOUR_S, _DAY_S = 3600.0, 86400.0
_KEPT_OF_ONE = 64


def is_light(case: Case) -> bool:
    return case.rung in LIGHT


def next_rung(rung: Advice) -> Advice:
    """The next rung when this one did not help, or was tried too often."""
    return _NEXT.get(rung, Advice.REBOOT)


def higher(one: Advice, other: Advice) -> Advice:
    order = list(Advice)
    return max(one, other, key=order.index)


def first_rung(finding: Finding, node: NodeName, draft: Draft) -> tuple[Advice, str]:
    """The rung at which the repair of a finding begins, and the target of a light rung. A light rung without a target
    that fits is skipped."""
    rung, target = finding.advice, finding.hardware
    if rung is Advice.NONE or (_hit_opted_in_job(node, draft) and _does_harm(finding)):
        return Advice.REPLACE, ""
    if rung in LIGHT:
        return (rung, target) if fits(rung, target) else (next_rung(rung), "")
    return rung, ""


def _does_harm(finding: Finding) -> bool:
    """A fault that jobs on the node may not survive."""
    return finding.severity is Severity.FATAL or finding.advice not in LIGHT


def _hit_opted_in_job(node: NodeName, draft: Draft) -> bool:
    """A node that failed under a job with `--auto-resume` is always replaced, never rebooted, as HyperPod does it."""
    running = (id for id in draft.overview.running_on.get(node, ()) if id in draft.jobs)
    found = (draft.jobs[id] for id in {*running, *restless(draft)})
    return any(mem.ended is None and node in mem.nodes for mem in found)


def identity(about: str, node: NodeName, draft: Draft) -> str:
    """The name of the hardware, which outlives the node's name: the GPU's UUID where the finding is `about` one, else
    the board's serial, else the instance id, else the node's name. What another node has as well names neither."""
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
    """Whether another node's agent is heard that says the same: firmware that was cloned, or several nodes on one
    machine."""
    others = (view for name, view in draft.seen.agents.items() if name != but and view.connected)
    return any(board in view.hardware for view in others)


def is_shared(instance: InstanceId, node: NodeName, draft: Draft) -> bool:
    """Whether another node's machine has the same id, as clones of one disk or image have."""
    listed = draft.seen.instances.get(instance)
    if listed is not None and listed.node == node:
        return False
    return any(who.instance == instance for name, who in draft.agents.items() if name != node)


def on_probation(case: Case, draft: Draft) -> Case:
    """The new case, a rung higher where the machine was repaired lately. An admin's word is taken as it is."""
    if case.trigger is Trigger.ADMIN or case.rung is Advice.REPLACE:
        return case
    since = draft.now - draft.want.repair.budgets.probation_s
    again = [r for r in _of_machine(case, draft) if r.at > since and _counts_on_probation(r, case)]
    return replace(case, rung=next_rung(case.rung), target="") if again else case


def _counts_on_probation(remedy: Remedy, case: Case) -> bool:
    """A check that only asked for other checks counts against its own kind."""
    return remedy.rung in HARDWARE or (remedy.rung is case.rung is Advice.NONE and remedy.check == case.check)


def was_repaired(case: Case, draft: Draft) -> bool:
    """Return whether this case has rebooted or replaced a machine."""
    kept = draft.remedies.get(case.hardware or case.node, ())
    return any(one.case == case.id and one.rung in (Advice.REBOOT, Advice.REPLACE) for one in kept)


def note_remedy(case: Case, draft: Draft) -> None:
    """Remember that this rung of this case was carried out; once, however many machines it takes."""
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
    )
    draft.remedies[key] = (*kept, made)[-_KEPT_OF_ONE:]


def forget_remedy(case: Case, draft: Draft) -> None:
    """Forget what this case did to its hardware."""
    key = case.hardware or case.node
    left = tuple(remedy for remedy in draft.remedies.get(key, ()) if remedy.case != case.id)
    if left:
        draft.remedies[key] = left
    elif key in draft.remedies:
        draft.remedies.drop([key])


def _machine(case: Case, draft: Draft) -> InstanceId | None:
    machine = case.old.instance if case.old is not None else case.old_instance
    return None if machine is None or is_shared(machine, case.node, draft) else machine


def _of_machine(case: Case, draft: Draft) -> Iterator[Remedy]:
    """The repairs that other cases did to the same piece of hardware or to the machine that it is in."""
    machine = _machine(case, draft)
    for key, kept in draft.remedies.items():
        for remedy in kept:
            is_same = key == case.hardware or (machine is not None and remedy.instance == machine)
            if is_same and remedy.case != case.id:
                yield remedy


def is_used_up(case: Case, draft: Draft) -> bool:
    """Whether this rung was tried so often lately that the next one is due."""
    most, window = _budget(case.rung, draft.want.repair.budgets)
    if case.trigger is Trigger.ADMIN or most is None:
        return False
    lately = [r for r in _of_machine(case, draft) if r.rung is case.rung and r.at > draft.now - window]
    return len(lately) >= most


def _budget(rung: Advice, rules: LadderPolicy) -> tuple[int | None, float]:
    """How often, within how many seconds."""
    match rung:
        case Advice.RESTART_SERVICE:
            return rules.restarts_per_hour, _HOUR_S
        case Advice.RESET_GPU:
            return rules.resets_per_day, _DAY_S
        case Advice.REBOOT:
            return rules.reboots_per_day, _DAY_S
        case _:
            return None, 0.0


def quarantine(case: Case, draft: Draft) -> str:
    """Why a person must look before more is done to this hardware; empty when nobody must. A person's own command
    overrules it, and a service may be restarted all the same."""
    if case.trigger is Trigger.ADMIN or case.rung not in HARDWARE:
        return ""
    return _often_repaired(case, draft) or _often_replaced(case, draft) or _node_often_repaired(case, draft)


def often_lost(case: Case, draft: Draft) -> str:
    """Why a lost machine that is there again is left to a person; empty while it was not lost too often."""
    rules = draft.want.repair.budgets
    since = draft.now - rules.hardware_window_s
    cases = {r.case for r in _of_machine(case, draft) if r.at > since and r.check == case.check and _just_checked(r)}
    if len(cases) < rules.hardware_repairs:
        return ""
    return f"quarantine: {case.node} was lost {len(cases)} times in {rules.hardware_window_s / _DAY_S:g} days"


def _just_checked(remedy: Remedy) -> bool:
    return remedy.rung is Advice.NONE


def _often_repaired(case: Case, draft: Draft) -> str:
    rules = draft.want.repair.budgets
    since = draft.now - rules.hardware_window_s
    cases = {r.case for r in _of_machine(case, draft) if r.rung in HARDWARE and r.at > since}
    if len(cases) < rules.hardware_repairs:
        return ""
    return f"quarantine: {case.hardware} was repaired {len(cases)} times in {rules.hardware_window_s / _DAY_S:g} days"


def _often_replaced(case: Case, draft: Draft) -> str:
    since, most = draft.now - _DAY_S, draft.want.repair.budgets.replacements_per_day
    kept = (r for many in draft.remedies.values() for r in many if r.node == case.node and r.case != case.id)
    cases = {r.case for r in kept if r.rung is Advice.REPLACE and r.at > since}
    if case.rung is not Advice.REPLACE or len(cases) < most:
        return ""
    return f"quarantine: the machine of {case.node} was replaced {len(cases)} times in a day"


def _node_often_repaired(case: Case, draft: Draft) -> str:
    rules = draft.want.repair
    lately = [at for at in draft.history.get(case.node, ()) if at > draft.now - rules.node_repairs_window_s]
    if len(lately) < rules.node_repairs:
        return ""
    return f"quarantine: {case.node} was repaired {len(lately)} times in {rules.node_repairs_window_s / _DAY_S:g} days"


def cool_until(case: Case, draft: Draft) -> float:
    """When the next repair that a check asks for may begin: a while after the node's last return."""
    if case.trigger not in (Trigger.FATAL, Trigger.DEGRADED):
        return 0.0
    back = [c.returned for c in draft.cases.of(case.node) if c.returned is not None and not c.is_open]
    return max(back) + draft.want.repair.budgets.cooldown_s if back else 0.0


def time_limit(rung: Advice, rules: RepairPolicy) -> float:
    """How long a rung has to help, in seconds."""
    match rung:
        case Advice.RESTART_SERVICE:
            return rules.budgets.restart_timeout_s
        case Advice.RESET_GPU:
            return rules.budgets.reset_timeout_s
        case Advice.REBOOT:
            return min(rules.budgets.reboot_timeout_s, rules.launch_timeout_s)
        case Advice.NONE:
            return rules.verify_timeout_s
        case Advice.REPLACE:
            return rules.launch_timeout_s
