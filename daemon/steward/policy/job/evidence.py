"""The evidence of a hardware fault when a job fails. Without evidence the failure is the job's own."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from steward.model.case import Case, CaseStep, Trigger
from steward.model.health import Scope, Severity
from steward.model.ids import Key, NodeName
from steward.model.job import Job
from steward.model.resume import JobMemory, TakenOut
from steward.policy.draft import Draft
from steward.policy.facts.blame import EVIDENCE_AFTER_S, EVIDENCE_BEFORE_S
from steward.policy.facts.booted import BOOTED, slurmd_begun_since
from steward.policy.facts.stops import AFTER_S, BEFORE_S, reclaimed_from, stops_from
from steward.policy.facts.verdict import Standing, is_awaited, mode_of, standing
from steward.policy.job.exclude import told_again_until

START_SLACK_S = 60.0
"""A fault shortly before a run began may have gone unnoticed until it hit the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A fact about a node; `at` is when the fault became known (Unix s).

    Evidence without `blames` excuses the job but not the node: the job may run there again. Evidence that `lasts`
    counts as long as the job holds the node, however old the fault is.
    """

    node: NodeName
    text: str
    at: float
    blames: bool = True
    lasts: bool = False
    voids_success: bool = False
    """Overrules Slurm's COMPLETED: the host was being shut down, or the script never began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The nodes and the time in which a fault can explain a failure.

    `held` are the nodes in use until the failure, `left` the nodes that left the job earlier; `began` is the start
    (Unix s; None: not known).
    """

    held: frozenset[NodeName]
    left: tuple[TakenOut, ...] = ()
    began: float | None = None

    def within(self, used: Collection[NodeName], began: float | None = None) -> "Reach":
        """Return this reach limited to the nodes in `used`, and to the time since `began`."""
        left = tuple(one for one in self.left if one.node in used)
        times = [at for at in (self.began, began) if at is not None]
        return Reach(held=self.held.intersection(used), left=left, began=max(times, default=None))


def evidence(reach: Reach, mem: JobMemory, failed_at: float, draft: Draft) -> tuple[Evidence, ...]:
    """Return the evidence that explains a failure at `failed_at` within this reach."""
    earliest = _earliest(reach, failed_at, draft)
    found = [item for node in sorted(reach.held) for item in _against(node, reach, mem, failed_at, draft)]
    still = [replace(item, at=max(item.at, earliest)) if item.lasts else item for item in found]
    # of a node that left the job, only the fault at that time counts
    left = [_taken_out(one) for one in reach.left if one.fault]
    return tuple(item for item in [*still, *left] if earliest <= item.at <= failed_at + EVIDENCE_AFTER_S)


def _earliest(reach: Reach, failed_at: float, draft: Draft) -> float:
    """Return the earliest time of evidence that counts for a failure."""
    earliest = failed_at - EVIDENCE_BEFORE_S
    # if slurmctld's clock is ahead, a run seems to begin after its failure
    if reach.began is None or reach.began > failed_at:
        return earliest
    return max(earliest, reach.began - START_SLACK_S)


def _against(node: NodeName, reach: Reach, mem: JobMemory, failed_at: float, draft: Draft) -> list[Evidence]:
    """Return the evidence against one node."""
    in_slurm = _in_slurm(node, failed_at, draft)
    lost = _lost(node, failed_at, draft) or _was_lost(node, reach, draft) or _booted(node, reach, mem, draft)
    cases, findings = _cases(node, reach, draft), _findings(node, draft)
    if _was_shut_down_later(node, failed_at, draft) or _outlived_failure(node, failed_at, draft):
        lost, in_slurm, cases = [], [], [case for case in cases if case.trigger is not Trigger.LOST]
    stop, late = _shut_down(node, reach, failed_at, draft), _killed_late(node, mem, failed_at, draft)
    stop += _reclaimed(node, failed_at, draft)
    return [*stop, *lost, *map(_case_evidence, cases), *findings, *in_slurm, *late]


def _was_shut_down_later(node: NodeName, failed_at: float, draft: Draft) -> bool:
    """Return whether the host began an orderly shutdown after the failure, so that its loss explains nothing."""
    since = stops_from(node, draft)
    return since is not None and failed_at < since


SHUTDOWN_S = 90.0
"""The time that a service has to end when its host shuts down (systemd's DefaultTimeoutStopSec)."""


def _outlived_failure(node: NodeName, failed_at: float, draft: Draft) -> bool:
    """Return whether the node was lost long after the failure, so that its loss explains nothing."""
    view, lost_at = draft.seen.agents.get(node), draft.nodes.of(node).lost_at
    if view is None or (lost_at is not None and abs(lost_at - failed_at) <= SHUTDOWN_S):
        return False
    # a connected agent may be that of the node's next machine or boot
    heard = lost_at if view.connected else view.last_heard
    return heard is not None and heard > failed_at + SHUTDOWN_S


def _shut_down(node: NodeName, reach: Reach, failed_at: float, draft: Draft) -> list[Evidence]:
    """Return the evidence that the host was being shut down when the run ended."""
    since = stops_from(node, draft)
    if since is None or failed_at < since or (reach.began is not None and since + BEFORE_S + AFTER_S < reach.began):
        return []
    text = f"{node}: its host was being shut down, as its agent said"
    return [Evidence(node=node, text=text, at=since, voids_success=True)]


def _reclaimed(node: NodeName, failed_at: float, draft: Draft) -> list[Evidence]:
    """Return the evidence that the provider takes the machine away."""
    since = reclaimed_from(node, draft)
    if since is None or failed_at < since:
        return []
    # a job that hears of the reclaim may end itself with any code
    return [Evidence(node=node, text=f"{node}: its provider takes its machine away", at=failed_at)]


def _lost(node: NodeName, failed_at: float, draft: Draft) -> list[Evidence]:
    """Return the evidence that the node is lost now."""
    known = draft.seen.nodes.get(node)
    verdict = standing(known, draft) if known else None
    if verdict is None or verdict.standing is not Standing.LOST:
        return []
    at = verdict.since if verdict.since is not None else failed_at
    text = f"{node}: {verdict.why.text} ({'; '.join(verdict.why.evidence)})"
    return [Evidence(node=node, text=text, at=at, lasts=True)]


def _was_lost(node: NodeName, reach: Reach, draft: Draft) -> list[Evidence]:
    """Return the evidence that the node was lost during this run and is back; it blames no node."""
    at = draft.nodes.of(node).lost_at
    if at is None or (reach.began is not None and at < reach.began):
        return []
    text = f"{node}: was lost for a while: its agent was gone, and a second source confirmed it"
    return [Evidence(node=node, text=text, at=at, blames=False)]


def _booted(node: NodeName, reach: Reach, mem: JobMemory, draft: Draft) -> list[Evidence]:
    """Return the evidence that the node has booted during this run, unseen; it blames no node."""
    renewed_at = draft.nodes.of(node).renewed_at
    # an agent may come long after a boot, and the run may have begun in it
    at = slurmd_begun_since(mem.started, node, draft)
    if renewed_at is None or at is None or (reach.began is not None and renewed_at < reach.began):
        return []
    return [Evidence(node=node, text=f"{node}: {BOOTED}", at=at, blames=False)]


def _cases(node: NodeName, reach: Reach, draft: Draft) -> list[Case]:
    """Return the node's repairs that can explain the failure."""
    known = sorted(draft.cases.of(node), key=lambda c: (c.opened, c.id))
    return [case for case in known if case.step is not CaseStep.SUSPECT and not _is_history(case, reach)]


def _case_evidence(case: Case) -> Evidence:
    """Return a repair as evidence."""
    at = case.detected if case.detected is not None else case.opened
    return Evidence(node=case.node, text=f"{case.node}: case {case.id}, {case.why.text}", at=at, lasts=case.is_open)


def _is_history(case: Case, reach: Reach) -> bool:
    """Return whether the node was repaired and back in service before the run began."""
    if case.closed is None or reach.began is None:
        return False
    # a run that began after our mark got the node after its return: we may see the return late, and Slurm gives the
    # start in whole seconds
    is_back = case.returned is not None and case.stand_in is None
    return case.closed <= reach.began or (is_back and case.marked is not None and case.marked <= reach.began)


def _findings(node: NodeName, draft: Draft) -> list[Evidence]:
    """Return the fatal findings of checks on the node."""
    view = draft.seen.agents.get(node)
    bad = (
        [f for f in view.findings if f.is_bad and f.scope is Scope.NODE and f.severity is Severity.FATAL]
        if view
        else []
    )
    return [
        Evidence(node=node, text=f"{node}: check {f.check} failed: {f.text}", at=f.at)
        for f in sorted(bad, key=lambda f: (f.at, f.check, f.text))
        if mode_of(f.check, draft) != "off"
    ]


def _in_slurm(node: NodeName, failed_at: float, draft: Draft) -> list[Evidence]:
    """Return the evidence that Slurm shows the node as DOWN.

    That slurmd does not respond is none by itself: any user can fill its port. Beside a silent agent the node is lost.
    """
    known = draft.seen.nodes.get(node)
    if known is not None and known.is_down:
        return [Evidence(node=node, text=f"{node}: Slurm has it DOWN", at=failed_at)]
    return []


def _taken_out(one: TakenOut) -> Evidence:
    """Return the evidence against a node that Slurm took out of a running job."""
    text = f"{one.node}: Slurm took it out of the running job: {one.fault}"
    return Evidence(node=one.node, text=text, at=one.at)


def fault_of(one: TakenOut, draft: Draft) -> str:
    """Return the fault of a node that has just left a job; empty if none is known."""
    known, case = draft.seen.nodes.get(one.node), draft.cases.in_work(one.node)
    # Slurm takes a DOWN node out of its job; a node that left before our DOWN was given up by the job
    if case is not None and known is not None and known.mark is not None:
        asked_at = draft.asked_at(Key(f"down:{case.id}"))
        return f"case {case.id}, {case.why.text}" if asked_at is not None and asked_at < one.at else ""
    if known is None:
        return "Slurm does not know it any more"
    return "Slurm has it DOWN" if known.is_down else ""


def _killed_late(node: NodeName, mem: JobMemory, failed_at: float, draft: Draft) -> list[Evidence]:
    """Return the evidence that Slurm ended this run by mistake, with the kill meant for the previous run."""
    if failed_at >= told_again_until(mem, draft).get(node, 0.0):
        return []
    text = f"{node}: the run before lost it; Slurm may have sent that run's end to the new machine and ended this run"
    return [Evidence(node=node, text=text, at=failed_at)]


def held_by(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return the nodes that the job has now, including those of its heterogeneous parts."""
    mem = draft.jobs.get(job.id)
    return job.nodes | mem.parts if mem is not None else job.nodes


def may_still_turn_up(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Return the job's nodes whose state is not known yet.

    The agent of such a node is late, silent without confirmation by a second witness, or not back since the head's
    start.
    """
    nodes = [draft.seen.nodes[n] for n in sorted(held_by(job, draft)) if n in draft.seen.nodes]
    doubtful = (Standing.LATE, Standing.SILENT)
    return frozenset(n.name for n in nodes if is_awaited(n.name, draft) or standing(n, draft).standing in doubtful)
