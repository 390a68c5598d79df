"""Give each node its verdict, one word with evidence, begin and next step: the same on every page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, partial

from steward.checks.limits import table_of
from steward.model.case import Case, CaseStep, Trigger
from steward.model.deep import DeepRun, DeepState
from steward.model.health import Advice, Finding, Severity
from steward.model.ids import NodeName
from steward.model.mark import SPARE
from steward.model.node import Node
from steward.model.observed import AgentView
from steward.model.slot import COMING, Purpose, SlotRecord, SlotStep
from steward.model.text import REPORT_ONLY, UNREAD, one_line, time_left, times
from steward.model.why import Why
from steward.policy.case.spares import free_spare, needs_spare, why_no_spare
from steward.policy.case.suspicion import SCOUTED, awaits_witness, fault_of, why_withheld
from steward.policy.draft import Draft
from steward.policy.facts.by_person import (
    REBOOTS,
    commands_for_held_node,
    is_orphan,
    origin_of_mark,
    remedy_for_orphan,
    return_command,
)
from steward.policy.facts.doubts import rebooted_again, suspicion_against
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.facts.slurm_faults import is_hands_off
from steward.policy.facts.verdict import Fault, Standing, blocks_return, may_act_on, mode_of, standing
from steward.policy.guards.approval import why_awaits
from steward.policy.guards.budget import must_wait
from steward.policy.guards.deep_start import SUSPECT_AGAIN_S
from steward.policy.guards.ladder import often_lost, why_quarantined
from steward.policy.slurm_reasons import Response, slurms_own
from steward.policy.traits import PLANNED_ABSENCE

_LONGEST = 500


class Word(Enum):
    """The word of `steward nodes` for a node."""

    FINE = "fine"
    SUSPECT = "suspect"
    """A sign of trouble without proof."""
    DEGRADED = "degraded"
    """A fault for which the node is, or will be, taken out of service."""
    LOST = "lost"
    """The agent is gone, and a second source confirms that."""
    IN_REPAIR = "in repair"
    IN_DEEP_CHECK = "in deep check"
    HELD = "held"
    """A person must act."""
    FOREIGN = "foreign"
    """A person or a tool took the node out of service: it is left alone."""
    REPORT_ONLY = "report-only"
    """A fault that is only reported."""
    UNWATCHED = "unwatched"
    """No agent is expected on the node now, so its state is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """The verdict on one node.

    `since` is Unix seconds; None if there is no such moment. `evidence` and `next` are one line each, safe to print.
    """

    word: Word
    evidence: str = ""
    since: float | None = None
    next: str = ""


_REBOOTS = "Slurm gives it back after its reboot, if it was the reboot that drained it"

_Look = Callable[[NodeName, Node | None, Draft], NodeVerdict | None]


def node_verdict(name: NodeName, draft: Draft) -> NodeVerdict:
    """Return the verdict on a node that Slurm or the API's groups know. Pure; `draft` is a scratch copy."""
    return _verdict(name, rebooted_again(draft), draft)


def node_verdicts(draft: Draft) -> dict[NodeName, NodeVerdict]:
    """Return the verdict on each node that Slurm knows."""
    again = rebooted_again(draft)
    talked_of = _talked_of(draft) | again.keys()
    return {
        name: (name not in talked_of and _at_rest(node, draft)) or _verdict(name, again, draft)
        for name, node in draft.seen.nodes.items()
    }


def _at_rest(node: Node, draft: Draft) -> NodeVerdict | None:
    """Return the verdict on a node of which nothing is remembered or reported; None if it needs a closer look."""
    view = draft.seen.agents.get(node.name)
    if view is not None and _is_at_rest(node, view):
        return _passed(len(view.passed)) if view.reported_at or view.passed else _fine(node.name, draft)
    if view is not None or node.reason is not None or node.is_foreign or PLANNED_ABSENCE & node.flags:
        return None
    said = standing(node, draft)
    return _unwatched(said.why) if said.standing is Standing.UNKNOWN else None


def _unwatched(why: Why) -> NodeVerdict:
    return NodeVerdict(word=Word.UNWATCHED, evidence="; ".join((why.text, *why.evidence)))


def _talked_of(draft: Draft) -> frozenset[NodeName]:
    """Return the nodes of which memory or the API's groups have a record."""
    cases = (case.node for case in draft.cases.values())
    stand_ins = (case.stand_in for case in draft.cases.values() if case.stand_in is not None)
    deeps = (name for run in draft.deeps.values() for name in (*run.nodes, *run.results))
    slots = draft.want.slots.keys() if draft.groups else ()
    return frozenset((*cases, *stand_ins, *deeps, *draft.slots, *slots))


def _is_at_rest(node: Node, view: AgentView) -> bool:
    """Return whether the node is in service and its agent is heard and without findings, as most are."""
    if view.findings or not view.connected or view.late:
        return False
    return node.reason is None and node.is_schedulable and not PLANNED_ABSENCE & node.flags


def _verdict(name: NodeName, again: Mapping[NodeName, str], draft: Draft) -> NodeVerdict:
    node = draft.seen.nodes.get(name)
    looks: tuple[_Look, ...] = (*_PROVED, partial(_of_doubt, again=again), _of_report)
    found = next((said for look in looks if (said := look(name, node, draft)) is not None), None) or _fine(name, draft)
    coming = found.next if draft.slurm_is_fresh else _next_when_read(found)
    evidence, coming = one_line(found.evidence, _LONGEST), one_line(coming, _LONGEST)
    return NodeVerdict(word=found.word, evidence=evidence, since=found.since, next=coming)


def _next_when_read(said: NodeVerdict) -> str:
    """Return the next step while Slurm cannot be read, and Steward does nothing; a person's stays as it is."""
    is_ours = said.next and said.word not in (Word.HELD, Word.FOREIGN) and not said.next.startswith("nothing")
    return f"nothing while {UNREAD}; then: {said.next}" if is_ours else said.next


def _of_case(name: NodeName, _node: Node | None, draft: Draft) -> NodeVerdict | None:
    case = draft.cases.open_of(name)
    if case is None:
        return None
    evidence = _case_evidence(case, draft)
    since = case.fault_at if case.fault_at is not None else case.opened
    if case.step is CaseStep.HELD:
        since = case.entered
    return NodeVerdict(word=_case_word(case), evidence=evidence, since=since, next=next_of_case(case, draft))


def _case_evidence(case: Case, draft: Draft) -> str:
    if case.step is not CaseStep.HELD:
        return "; ".join(case.why.evidence) or case.why.text
    kept = why_kept_out(case, draft)
    return f"it was lost and is heard again; {kept}" if kept else str(case.why)


def why_kept_out(case: Case, draft: Draft) -> str:
    """Return why a lost machine that is heard again is still out of service; empty for any other case."""
    view = draft.seen.agents.get(case.node)
    if case.step is not CaseStep.HELD or case.trigger is not Trigger.LOST or view is None or not view.is_heard:
        return ""
    bad = next((finding for finding in view.findings if blocks_return(finding, draft)), None)
    failing = f"its check {bad.check} fails: {bad.text}" if bad is not None else ""
    return failing or often_lost(case, draft) or why_quarantined(case, draft)


def _case_word(case: Case) -> Word:
    match case.step:
        case CaseStep.HELD:
            return Word.HELD
        case CaseStep.SUSPECT:
            return Word.SUSPECT if case.trigger is Trigger.LOST else Word.DEGRADED
        case CaseStep.DRAIN | CaseStep.RELEASE:
            return {Trigger.LOST: Word.LOST, Trigger.ADMIN: Word.IN_REPAIR}.get(case.trigger, Word.DEGRADED)
        case _:
            return Word.IN_REPAIR


def _of_slot(name: NodeName, node: Node | None, draft: Draft) -> NodeVerdict | None:
    """Return the verdict on a node that is on its way in or out of an API group, or not used by it; None otherwise."""
    record = draft.slots.get(name)
    if node is not None and not belongs_to_slot(node, draft):
        return None
    if record is None:
        text = "Slurm does not know it" if node is None else "its group of the API does not use it"
        return NodeVerdict(word=Word.UNWATCHED, evidence=text)
    if node is not None and record.step is SlotStep.SERVING and record.purpose is Purpose.STAY:
        return None
    evidence = f"its slot in group {record.group} is at step {record.step.value}"
    evidence += f": {record.trouble}" if record.trouble else ""
    if record.step is SlotStep.SERVING and record.purpose is Purpose.STAY:
        # A controller or login node, or a node that was taken out of slurm.conf.
        evidence += ", and Slurm does not know it"
        return NodeVerdict(word=Word.UNWATCHED, evidence=evidence, since=record.entered)
    return NodeVerdict(word=Word.UNWATCHED, evidence=evidence, since=record.entered, next=next_of_slot(record, draft))


def _of_deep(name: NodeName, _node: Node | None, draft: Draft) -> NodeVerdict | None:
    run = deep_run_on(name, draft)
    if run is None:
        return None
    evidence = f"deep check {run.id} ({run.cause.value}) is {run.state.value}"
    return NodeVerdict(word=Word.IN_DEEP_CHECK, evidence=evidence, since=run.entered, next=next_of_deep(run))


def deep_run_on(name: NodeName, draft: Draft) -> DeepRun | None:
    """Return the deep check that occupies the node now; None if there is none."""
    return next((r for r in draft.deeps.values() if r.has_nodes and name in r.nodes and name not in r.results), None)


def _of_foreign(_name: NodeName, node: Node | None, draft: Draft) -> NodeVerdict | None:
    if node is None or not is_hands_off(node, draft) or _is_command(node, draft):
        return None
    reason = node.reason
    evidence = f'"{reason.text}" by {reason.user or "?"}' if reason else "out of service without a reason"
    if REBOOTS & node.flags:
        since = reason.at if reason and reason.at else None
        return NodeVerdict(word=Word.UNWATCHED, evidence=f"Slurm reboots it: {evidence}", since=since, next=_REBOOTS)
    return NodeVerdict(
        word=Word.FOREIGN,
        evidence=evidence,
        since=reason.at if reason and reason.at else None,
        next=_next_of_foreign(node, draft),
    )


def _next_of_foreign(node: Node, draft: Draft) -> str:
    """Return the next step for a node that Steward did not take out of service."""
    row = slurms_own(node, draft.want.slurm_user)
    if row is not None and row.response in (Response.LEAVE, Response.WATCH):
        return f"nothing: {row.response.value}"
    if row is not None:
        return f"nothing: Slurm took it out; a person must look and give it back ({return_command(node.name)})"
    return f"nothing: the person or tool that did it gives it back ({return_command(node.name)})"


def _is_command(node: Node, draft: Draft) -> bool:
    """Return whether the node's reason is an admin's `Action:...`."""
    fault = fault_of(node, draft)
    return fault is not None and bool(fault.command)


AWAITS_WITNESS = "nothing until another source speaks: its agent, its slurmd, Slurm's word or the provider's"


def _of_fault(_name: NodeName, node: Node | None, draft: Draft) -> NodeVerdict | None:
    fault = fault_of(node, draft) if node is not None else None
    if node is None or fault is None:
        return None
    evidence = "; ".join(fault.why.evidence) or fault.why.text
    withheld = why_withheld(node, fault, draft)
    coming = withheld_line(withheld) if withheld else "a case is about to be opened"
    if not withheld and awaits_witness(node, fault, draft):
        coming = AWAITS_WITNESS
    word = _fault_word(fault, node, draft, is_withheld=withheld not in ("", SCOUTED))
    return NodeVerdict(word=word, evidence=evidence, since=fault.at, next=coming)


def _fault_word(fault: Fault, node: Node, draft: Draft, *, is_withheld: bool) -> Word:
    if fault.trigger is Trigger.LOST:
        return Word.LOST if standing(node, draft).standing is Standing.LOST else Word.SUSPECT
    return Word.REPORT_ONLY if is_withheld else Word.DEGRADED


AWAITED = "its agent is awaited: the head has just begun to listen"


def _of_orphan(_name: NodeName, node: Node | None, draft: Draft) -> NodeVerdict | None:
    if node is None or not is_orphan(node, draft):
        return None
    way = remedy_for_orphan(node, draft)
    return NodeVerdict(
        word=Word.HELD,
        evidence=origin_of_mark(node, draft),
        since=node.reason.at if node.reason else None,
        next=f"nothing by itself; for a person: {way}" if way else AWAITED,
    )


def _of_standing(_name: NodeName, node: Node | None, draft: Draft) -> NodeVerdict | None:
    said = standing(node, draft) if node is not None else None
    if node is None or said is None or said.standing is Standing.FINE:
        return None
    if said.standing is Standing.UNKNOWN:
        away = sorted(PLANNED_ABSENCE & node.flags)
        return NodeVerdict(word=Word.UNWATCHED, evidence=f"Slurm has it {away[0]}") if away else _unwatched(said.why)
    evidence = "; ".join((said.why.text, *said.why.evidence))
    coming = "lost when its connection ends or stays silent"
    if said.standing is Standing.AGENT_ONLY:
        coming = "nothing: jobs run on; see whether steward-agent and munged run there"
    return NodeVerdict(word=Word.SUSPECT, evidence=evidence, since=said.since, next=coming)


def _of_doubt(name: NodeName, _node: Node | None, draft: Draft, *, again: Mapping[NodeName, str]) -> NodeVerdict | None:
    why = suspicion_against(name, again, draft)
    if not why:
        return None
    at = [f.at for f in _bad(name, draft) if f.severity is Severity.SUSPECT]
    since = min(at, default=None)
    return NodeVerdict(word=Word.SUSPECT, evidence=why, since=since, next=next_of_suspect(name, draft))


def _of_report(name: NodeName, _node: Node | None, draft: Draft) -> NodeVerdict | None:
    """Return the verdict on a node whose faults are only reported, or are of a shared resource; None otherwise."""
    told = [f for f in _bad(name, draft) if f.severity is not Severity.INFO and not may_act_on(f, draft)]
    if not told:
        return None
    first = min(told, key=lambda f: (-f.severity.rank, f.at, f.check))
    only = f"check {first.check} only reports (mode in {table_of(first.check)})"
    coming = only if mode_of(first.check, draft) != "drain" else "a shared resource fails: no fault of this node"
    return NodeVerdict(
        word=Word.REPORT_ONLY, evidence=f"{first.check}: {first.text}", since=first.at, next=f"nothing: {coming}"
    )


def _fine(name: NodeName, draft: Draft) -> NodeVerdict:
    node, view = draft.seen.nodes.get(name), draft.seen.agents.get(name)
    if node is not None and node.mark == SPARE:
        return NodeVerdict(word=Word.FINE, evidence="a spare", next="serves when a broken static node needs it")
    if node is not None and node.mark is not None and (node.is_drain or node.is_down):
        return NodeVerdict(
            word=Word.IN_REPAIR,
            evidence="Steward drained it (reason steward:...)",
            since=node.reason.at if node.reason else None,
            next=_REBOOTS if REBOOTS & node.flags else "given back again: Slurm's controller forgot that it was",
        )
    if node is not None and node.is_down and node.is_powered:
        return _down(node)
    if view is not None and view.connected and not (view.passed or view.findings or view.reported_at):
        return NodeVerdict(word=Word.UNWATCHED, evidence="its agent has just come: no check has told yet")
    said, bad = _passed(len(view.passed) if view else 0), _bad(name, draft)
    told = f"; reported only: {', '.join(sorted({f.check for f in bad})[:5])}" if bad else ""
    return replace(said, evidence=said.evidence + told) if told else said


@lru_cache(maxsize=256)
def _passed(count: int) -> NodeVerdict:
    """Return the verdict on a sound node: one shared record for all nodes with this count."""
    return NodeVerdict(word=Word.FINE, evidence=f"{count} checks passed")


def _down(node: Node) -> NodeVerdict:
    """Return the verdict on a node that is DOWN in Slurm, without any other fault."""
    why = f', reason "{node.reason.text}"' if node.reason else ""
    return NodeVerdict(
        word=Word.SUSPECT,
        evidence=f"Slurm says {'+'.join([node.base.value, *sorted(node.flags)])}{why}; its checks found no fault",
        since=node.reason.at if node.reason else None,
        next=f"back when slurmd answers, or by a person ({return_command(node.name)})",
    )


def _bad(name: NodeName, draft: Draft) -> list[Finding]:
    view = draft.seen.agents.get(name)
    return [f for f in view.findings if f.is_bad] if view else []


_PROVED: tuple[_Look, ...] = (
    _of_case,
    _of_slot,
    _of_deep,
    _of_foreign,
    _of_fault,
    _of_orphan,
    _of_standing,
)
"""The first look that has a verdict counts. Looks for mere doubts come after these."""


# The next step of the plan for a node, with its condition: a few words each.

_DONE = {
    Advice.NONE: "checked again",
    Advice.RESTART_SERVICE: "its service is restarted",
    Advice.RESET_GPU: "its GPU is reset",
    Advice.REBOOT: "rebooted",
    Advice.REPLACE: "replaced",
}
_AWAITED_OF_SPARE = {
    CaseStep.PROVISION: "is checked when its agent connects",
    CaseStep.VERIFY: "serves when all its checks passed",
    CaseStep.RETURN: "serves when Slurm starts jobs on it",
}
_AWAITED = {
    CaseStep.MEND: "checked when its agent has carried out the light repair",
    CaseStep.PROVISION: "checked when the agent of the new or rebooted machine connects",
    CaseStep.VERIFY: "given back when all its checks passed",
    CaseStep.RETURN: "in service when Slurm starts jobs on it again",
}
_SHOWN_JOBS = 3


def withheld_line(why: str) -> str:
    """Return in a few words why nothing is done."""
    if why == SCOUTED:
        return why
    return f"nothing: {'reported only (repair.mode)' if why.startswith('repairs are set to report') else why}"


def next_of_case(case: Case, draft: Draft) -> str:
    """Return the next step of a repair, such as `replaced when job 12 ends` or `rebooted in its turn: ...`."""
    if case.step is CaseStep.HELD:
        return _of_held(case, draft)
    if draft.paused:
        return "nothing: actions are paused (`steward resume-actions`)"
    if not draft.want.repair.act:
        return f"nothing: {REPORT_ONLY}"
    if case.step is CaseStep.LAUNCH:
        return _of_launch(case, draft)
    if case.stand_in and case.step in _AWAITED_OF_SPARE:
        return f"spare {case.stand_in} {_AWAITED_OF_SPARE[case.step]}"
    return _AWAITED.get(case.step) or _before_repair(case, draft)


def _of_held(case: Case, draft: Draft) -> str:
    if case.is_stood_in:
        return f"a person repairs it, then {return_command(case.node)}; spare {case.stand_in} serves meanwhile"
    return f"a person looks at it, then {commands_for_held_node(case.node, draft)}"


def _before_repair(case: Case, draft: Draft) -> str:
    word = _DONE[case.rung]
    if case.step is CaseStep.SUSPECT and case.why.rule == "node.silent":
        return "taken out of service when a second source confirms it, else left in service"
    if wait := why_awaits(case, draft):
        return wait
    if jobs := _jobs_on(case.node, draft):
        return f"{word} when {jobs}"
    if wait := must_wait(case, draft):
        return f"{word} in its turn: {wait.removeprefix('waits for its turn: ')}"
    return f"{word} as soon as Slurm shows it out of service and free"


def _jobs_on(node: NodeName, draft: Draft) -> str:
    here = (job for job in draft.seen.jobs.values() if node in job.nodes and not job.is_over)
    jobs = [job.shown_id for job in sorted(here, key=lambda job: job.id)]
    if not jobs:
        return ""
    more = f" and {len(jobs) - _SHOWN_JOBS} more" if len(jobs) > _SHOWN_JOBS else ""
    names = ", ".join(jobs[:_SHOWN_JOBS])
    return f"job {names} ends" if len(jobs) == 1 else f"jobs {names}{more} end"


def _of_launch(case: Case, draft: Draft) -> str:
    if needs_spare(case, draft) and free_spare(case, draft) is None:
        return f"waits for a spare: {why_no_spare(case, draft)}"
    if case.tries:
        return f"the provider is asked again {time_left(case.next_try, draft.now)} (refused {times(case.tries)})"
    return f"{_DONE[case.rung]} now; then its agent is awaited"


def next_of_deep(run: DeepRun) -> str:
    """Return the next step of a deep check that occupies its nodes."""
    return "its result decides" if run.state is DeepState.RUNNING else "its job begins; users' waiting jobs come first"


def next_of_suspect(node: NodeName, draft: Draft) -> str:
    """Return the next step for a suspect: a deep check, because a mere suspicion takes no node out of service."""
    rules = draft.want.deep
    if not rules.enabled or not rules.suspects:
        return "nothing: deep checks of suspects are off (deep.suspects)"
    mine = [run for run in draft.deeps.values() if node in run.nodes]
    if any(run.is_open and node not in run.results for run in mine):
        return "deep check when it is idle"
    last = max((run for run in mine if node in run.results), key=lambda run: run.asked, default=None)
    if last is not None and draft.now < last.asked + SUSPECT_AGAIN_S:
        again = time_left(last.asked + SUSPECT_AGAIN_S, draft.now)
        return f"deep check {last.id} said {last.results[node].value}; again {again} if it is still suspect"
    return "deep check when it is idle next"


def next_of_slot(record: SlotRecord, draft: Draft) -> str:
    """Return the next step of a slot that is on its way."""
    if record.step is SlotStep.WAITING:
        return f"a machine is asked for {time_left(record.next_try, draft.now)}, in its turn"
    return "comes into service" if record.step in COMING else "its machine is ended"
