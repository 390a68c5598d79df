"""Open a case for each node that needs one, or say once why not.

A sign of trouble without proof opens no case: a deep check at the node's next idle moment decides.
"""

from dataclasses import replace

from steward.model.case import Case, CaseStep, Trigger, new_case_id
from steward.model.events import Level
from steward.model.health import Advice, Severity
from steward.model.ids import NodeName
from steward.model.memory import Stands
from steward.model.node import Node
from steward.model.why import Why
from steward.policy.case.scene import old_instance
from steward.policy.case.spares import with_possible_rung
from steward.policy.draft import Draft
from steward.policy.facts.by_person import why_not_repairable
from steward.policy.facts.deep_faults import deep_fault, failed_deep
from steward.policy.facts.gone import is_withheld, why_gone
from steward.policy.facts.incidents import in_incident, is_scout
from steward.policy.facts.lost_case import fault_of_lost_case
from steward.policy.facts.serving import belongs_to_slot, is_current
from steward.policy.facts.slurm_faults import (
    breakers_of_launches,
    is_hands_off,
    launch_fault,
    other_size,
    reason_fault,
    with_reason,
)
from steward.policy.facts.users_faults import users_there
from steward.policy.facts.verdict import (
    Fault,
    Standing,
    admin_command,
    incarnation_of,
    monitored_but_unheard,
    standing,
    worst_finding,
)
from steward.policy.guards.breaker import admit, holding, tripped
from steward.policy.guards.ladder import bounded_for_users, first_rung, identity, on_probation
from steward.policy.traits import Trait, in_maintenance


def open_cases(draft: Draft) -> None:
    """Open a case for each node with a fault that we may act on; say once what is withheld and why."""
    failed = failed_deep(draft) | breakers_of_launches(draft)
    settling = Settling(draft)
    for node in _unwell(failed, draft):
        if (_is_well(node, draft) and node.name not in failed) or belongs_to_slot(node, draft):
            continue
        fault = fault_of(node, draft)
        if fault is None or not _needs_case(node, fault, draft):
            continue
        withheld = why_withheld(node, fault, draft)
        if withheld and not _is_unsure(fault) and not is_in_incident(node, fault, draft):
            text = f"{node.name}: would be repaired ({fault.why.text}), but {withheld}"
            once = f"withheld:{node.name}:{fault.trigger.value}:{withheld}"
            draft.tell("case.withheld", text, once=once, level=Level.WARNING, node=node.name)
        elif not withheld and settling.is_over(node.name, fault):
            _open_case(node, fault, draft)
    settling.end()


def _unwell(failed: frozenset[NodeName], draft: Draft) -> list[Node]:
    """Return nodes with any sign of trouble, sorted by name."""
    out = (node.name for node in draft.overview.with_reason(Trait.ORDERED, Trait.SLURMS_WORDS, Trait.MARKED))
    names = failed.union(out, monitored_but_unheard(draft), draft.overview.finding)
    return [draft.seen.nodes[name] for name in sorted(names) if name in draft.seen.nodes]


def _is_well(node: Node, draft: Draft) -> bool:
    """Return whether the node has no reason in Slurm, and its agent is connected and without findings."""
    view = draft.seen.agents.get(node.name)
    return view is not None and view.connected and not view.findings and node.reason is None


def is_in_incident(node: Node, fault: Fault, draft: Draft) -> bool:
    """Return whether the fault belongs to an incident, which is reported once for all its nodes."""
    if fault.trigger is Trigger.LOST:
        return is_withheld(node.name, draft)
    kind = f"check:{fault.check}"
    return in_incident(node.name, kind, draft) and not (fault.is_of_reason and is_scout(node.name, kind, draft))


def is_surely_gone(node: Node, fault: Fault, draft: Draft) -> bool:
    """Return whether the node is lost and surely gone: no breaker holds such a node, or counts it."""
    return fault.trigger is Trigger.LOST and bool(why_gone(node, draft))


SCOUTED = "many nodes have it at once: now and then one is looked into; when one serves again, all are given back"
"""Why nothing is done about one of many nodes that Slurm itself took out for one reason."""


def _common_cause(fault: Fault) -> str:
    """Return why nothing is done about a fault that many nodes have."""
    if fault.trigger is Trigger.LOST:
        return "many nodes fell silent at once, and no other source says that this one is gone"
    if fault.is_of_reason:
        return SCOUTED
    return "many nodes have it at once: one cause in common"


def _is_unsure(fault: Fault) -> bool:
    """Return whether the second witness has not answered yet."""
    return fault.why.rule == "node.silent"


def _needs_case(node: Node, fault: Fault, draft: Draft) -> bool:
    """Return whether the fault needs a new case."""
    if draft.cases.open_of(node.name) is not None:
        return False
    # none for a fault that a person overruled, nor for a silence that was suspected before and that no witness confirms
    return not awaits_witness(node, fault, draft) and not _is_overruled(node, fault, draft)


def awaits_witness(node: Node, fault: Fault, draft: Draft) -> bool:
    """Return whether the node's silence was suspected once, and no other witness confirms it."""
    return _is_unsure(fault) and draft.nodes.of(node.name).suspected == fault.at


def _is_overruled(node: Node, fault: Fault, draft: Draft) -> bool:
    """Return whether a person gave this incarnation of the node back, or took it over, despite this fault.

    A check that has passed since and fails anew is another fault.
    """
    if fault.trigger not in (Trigger.DEGRADED, Trigger.FATAL):
        return False
    # a failure begins when an agent begins, too: only a pass shows that the one that a person knew of was over
    known_from = fault.at if fault.is_event else min(fault.at, fault.passed_at)
    for case in draft.cases.of(node.name):
        by_person = case.step is CaseStep.CLOSED and case.why.rule == "case.by_person"
        same = case.check == mark_word(fault.check) and case.old == incarnation_of(node.name, draft)
        if by_person and same and known_from <= (case.closed or 0.0):
            return True
    return False


def fault_of(node: Node, draft: Draft) -> Fault | None:
    """Return the most urgent reason to repair this node; None if there is none."""
    order = admin_command(node)
    if order is not None:
        why = Why(rule="node.command", text=f"an admin asked for {order.text}", evidence=(str(node.reason),))
        check = "admin"
        return Fault(trigger=Trigger.ADMIN, check=check, rung=order.rung, why=why, at=order.at, command=order.text)
    fault = _own_fault(node, draft)
    if fault is not None:
        return with_reason(fault, node, draft)
    return reason_fault(node, draft) or launch_fault(node, draft) or fault_of_lost_case(node, draft)


def _own_fault(node: Node, draft: Draft) -> Fault | None:
    """Return the fault shown by the silence or the findings of the node's agent; None if there is none."""
    verdict = standing(node, draft)
    if verdict.standing in (Standing.LOST, Standing.SILENT):
        at = verdict.since if verdict.since is not None else draft.now
        return Fault(trigger=Trigger.LOST, check="agent", rung=Advice.REPLACE, why=verdict.why, at=at)
    return _finding_fault(node.name, draft) or deep_fault(node.name, draft)


def _finding_fault(node: NodeName, draft: Draft) -> Fault | None:
    """Return the fault of the worst finding; None if there is none."""
    finding = worst_finding(draft.seen.agents.get(node), draft)
    if finding is None:
        return None
    fatal = finding.severity is Severity.FATAL
    rung, target = first_rung(finding, node, draft)
    evidence = (f"{finding.check}: {finding.text}",)
    why = Why(rule=f"node.{finding.severity.value}", text=f"check {finding.check} failed on {node}", evidence=evidence)
    trigger = Trigger.FATAL if fatal else Trigger.DEGRADED
    return Fault(
        trigger=trigger,
        check=finding.check,
        rung=rung,
        target=target,
        hardware=finding.hardware,
        why=why,
        at=finding.at,
        is_event=finding.event,
        passed_at=finding.passed_at,
    )


def why_withheld(node: Node, fault: Fault, draft: Draft) -> str:
    """Return why nothing is done about a fault; empty if we may act."""
    if not draft.want.repair.act:
        return 'repairs are set to report only (repair.mode = "report")'
    if draft.paused:
        return "actions are paused"
    if fault.trigger is Trigger.ADMIN:
        return why_not_repairable(node.name, fault.rung, draft)
    if _is_overruled(node, fault, draft):
        return "a person gave the node back, or took it over, although it has this fault: that stands"
    if alone := why_left_alone(node.name, draft):
        return alone
    if others := _why_left_to_others(node, draft):
        return others
    if is_in_incident(node, fault, draft):
        return _common_cause(fault)
    if needed := other_size(node.name, (fault.check,), draft) or _why_needed(node.name, fault, draft):
        return needed
    if is_surely_gone(node, fault, draft) or fault.is_of_reason:
        return ""
    held_by = tripped if _is_unsure(fault) else holding
    breaker = held_by(node.name, mark_word(fault.check), draft)
    return breaker.text if breaker else ""


def _why_left_to_others(node: Node, draft: Draft) -> str:
    """Return why the node is left to a person or tool that works on it; empty if it is not."""
    if is_hands_off(node, draft):
        return f"a person or a tool took the node out ({node.reason.text if node.reason else 'no reason given'})"
    if in_maintenance(node):
        return "a reservation of Slurm has it in maintenance (flag MAINT): it is left alone until that ends"
    return ""


def why_left_alone(node: NodeName, draft: Draft) -> str:
    """Return why faults of this node are only reported: its cluster or its group is not repaired automatically.

    Empty if it is repaired.
    """
    if node in draft.slots and draft.cluster is not None and not draft.cluster.recovery:
        return "the cluster's NodeRecovery is None"
    slot = draft.slots.repairable.get(node)
    if slot is not None and slot.group in draft.want.unrepaired:
        return f'the recovery of group {slot.group} is "none"'
    return ""


def _why_needed(node: NodeName, fault: Fault, draft: Draft) -> str:
    """Return why a node that still serves must stay: its group would fall below its minimum; else empty."""
    record = draft.slots.get(node)
    group = draft.groups.get(record.group) if record else None
    # a dead node serves no more
    if fault.trigger is not Trigger.DEGRADED or group is None or not group.goal.minimum:
        return ""
    serving = [
        r for r in draft.slots.members(group.name) if is_current(r, group, draft.seen, draft.cases.nodes_in_repair)
    ]
    if len(serving) > group.goal.minimum or all(record.node != node for record in serving):
        return ""
    return f"group {group.name} would fall below its minimum ({len(serving)} serve, {group.goal.minimum} must)"


def _open_case(node: Node, fault: Fault, draft: Draft) -> None:
    """Open the case, count it in its breakers, and say so."""
    case = new_case(node, fault, draft)
    if _is_unsure(fault):
        draft.nodes.note(node.name, suspected=fault.at)
    elif not is_surely_gone(node, fault, draft):
        admit(case, draft)
    kind = "node.suspect" if _is_unsure(fault) else "node.fault"
    draft.tell(kind, f"{node.name}: {fault.why}", level=Level.WARNING, node=node.name, case=case.id)


def new_case(node: Node, fault: Fault, draft: Draft) -> Case:
    """Open the repair of a node that has no open case, and remember it."""
    check = mark_word(fault.check)
    case = Case(
        id=new_case_id(draft.next_case, draft.now),
        node=node.name,
        trigger=fault.trigger,
        check=check,
        step=CaseStep.SUSPECT,
        entered=draft.now,
        opened=draft.now,
        why=fault.why,
        rung=fault.rung,
        old=incarnation_of(node.name, draft),
        old_slurmd=node.slurmd_started,
        command=fault.command,
        target=fault.target,
        hardware=identity(fault.hardware, node.name, draft),
        fault_at=fault.at,
        detected=draft.now,
        users=users_there(node, check, draft),
    )
    draft.next_case += 1
    known = bounded_for_users(replace(case, old_instance=old_instance(case, draft)), draft)
    return draft.cases.keep(with_possible_rung(on_probation(known, draft), draft))


def mark_word(check: str) -> str:
    """Return a check's id in the characters that our mark can carry."""
    kept = "".join(c if c.isascii() and (c.islower() or c.isdigit() or c in "_.-") else "_" for c in check.lower())
    return kept[:40] or "check"


class Settling:
    """The wait before the fault of a degraded node is acted on, by the head's clock.

    Meanwhile other nodes may show the same fault and make an incident of it; then the first nodes are not drained
    either. One object serves one pass over all nodes: a finding that the pass did not ask about is forgotten at its
    end, and would begin its wait anew.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._stands: set[NodeName] = set()
        self._waited_for = frozenset(
            node for ask in draft.seen.asks if (job := draft.seen.jobs.get(ask.job)) for node in job.nodes
        )

    def is_over(self, node: NodeName, fault: Fault) -> bool:
        """Return whether the fault has stood long enough to be acted on.

        Fatal faults, events, and faults of a node whose job waits for an answer need no time to settle.
        """
        settle_s = self._draft.want.repair.settle_degraded_s
        if settle_s <= 0 or not self._must_settle(node, fault):
            return True
        self._stands.add(node)
        found = self._draft.nodes.of(node).settling
        if found is None or found.check != fault.check:
            found = Stands(check=fault.check, since=self._draft.now)
            self._draft.nodes.note(node, settling=found)
        due = found.since + settle_s
        self._draft.wake(due)
        return self._draft.now >= due or node in self._waited_for

    def _must_settle(self, node: NodeName, fault: Fault) -> bool:
        """Return whether the fault must stand for a while: its check may take it back, or other nodes may follow."""
        view = self._draft.seen.agents.get(node)
        if fault.is_of_reason:
            return True  # Slurm has taken the node out, so there is no hurry: others may follow within seconds
        if view is None or fault.trigger is not Trigger.DEGRADED or fault.is_event or fault.command:
            return False
        return any(one.check == fault.check for one in view.findings)

    def end(self) -> None:
        """Forget the findings that were not asked for."""
        for node in sorted(self._draft.overview.remembered("settling") - self._stands):
            self._draft.nodes.note(node, settling=None)
