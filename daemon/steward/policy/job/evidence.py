"""The evidence of a hardware fault when a job fails. Without evidence the failure is the job's own."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from steward.model.case import Case, Step, Trigger
from steward.model.health import Scope, Severity
from steward.model.ids import Key, NodeName
from steward.model.job import Job, other_parts
from steward.model.resume import JobMemory, TakenOut
from steward.policy.draft import Draft
from steward.policy.job.exclude import told_again_until
from steward.policy.node.stops import AFTER_S, BEFORE_S, reclaimed_from, stops_from
from steward.policy.node.verdict import Standing, is_awaited, mode_of, standing

START_SLACK_S = 60.0
"""A fault shortly before a run began may have gone unnoticed until it hit the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A fact about a node; `at` is when the fault was known (Unix s). Evidence that does not blame the node speaks for
    the job alone, which may run there again. Evidence that lasts counts as long as the job holds the node, however old
    it is."""

    node: NodeName
    text: str
    at: float
    blames: bool = True
    lasts: bool = False
    voids_success: bool = False
    """Also a job that Slurm calls complete is not: its host was being shut down, or its script never began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What failed, as far as a fault may explain it: the nodes that it had to its end (`held`), those that left the job
    before (`left`), and when it began (Unix s; None: not known)."""

    held: frozenset[NodeName]
    left: tuple[TakenOut, ...] = ()
    began: float | None = None

    def within(self, used: Collection[NodeName], began: float | None = None) -> "Reach":
        """The part of it that used only these nodes, and did not begin before `began`."""
        left = tuple(one for one in self.left if one.node in used)
        times = [at for at in (self.began, began) if at is not None]
        return Reach(held=self.held.intersection(used), left=left, began=max(times, default=None))


def evidence(reach: Reach, mem: JobMemory, failed_at: float, draft: Draft) -> tuple[Evidence, ...]:
    """Everything that explains a failure at `failed_at` of what had this reach. A node that left the job has no later
    say: it counts for what was wrong with it then."""
    earliest = _earliest(reach, failed_at, draft)
    found = [item for node in sorted(reach.held) for item in _against(node, reach, mem, failed_at, draft)]
    still = [replace(item, at=max(item.at, earliest)) if item.lasts else item for item in found]
    left = [_taken_out(one) for one in reach.left if one.fault]
    return tuple(
        item for item in [*still, *left] if earliest <= item.at <= failed_at + draft.want.resume.evidence_after_s
    )


def _earliest(reach: Reach, failed_at: float, draft: Draft) -> float:
    """The earliest time of evidence that counts for a failure. Where the run seems to begin after its failure, the
    clock was set back."""
    earliest = failed_at - draft.want.resume.evidence_before_s
    if reach.began is None or reach.began > failed_at:
        return earliest
    return max(earliest, reach.began - START_SLACK_S)


def _against(node: NodeName, reach: Reach, mem: JobMemory, failed_at: float, draft: Draft) -> list[Evidence]:
    in_slurm = _in_slurm(node, failed_at, draft)
    lost = _lost(node, failed_at, draft) or _was_lost(node, reach, draft)
    cases, findings = _cases(node, reach, draft), _findings(node, draft)
    if _went_later(node, failed_at, draft) or _lived_on(node, failed_at, draft):
        lost, in_slurm, cases = [], [], [case for case in cases if case.trigger is not Trigger.LOST]
    stop, late = _stopped(node, reach, failed_at, draft), _killed_late(node, mem, failed_at, draft)
    stop += _reclaimed(node, failed_at, draft)
    return [*stop, *lost, *map(_in_case, cases), *findings, *in_slurm, *late]


def _went_later(node: NodeName, failed_at: float, draft: Draft) -> bool:
    """Its host was shut down in good order, and only after that: that the node is gone since explains nothing."""
    since = stops_from(node, draft)
    return since is not None and failed_at < since


SHUTDOWN_S = 90.0
"""So long a service has to end when its host is shut down (systemd's DefaultTimeoutStopSec)."""


def _lived_on(node: NodeName, failed_at: float, draft: Draft) -> bool:
    """Whether its agent, which is gone, was heard for longer after that than a shutdown takes: what took the node away
    then did not end what had ended before. What a check finds on it counts all the same."""
    view, lost_at = draft.seen.agents.get(node), draft.nodes.of(node).lost_at
    if view is None or view.connected or (lost_at is not None and abs(lost_at - failed_at) <= SHUTDOWN_S):
        return False
    return view.last_heard > failed_at + SHUTDOWN_S


def _stopped(node: NodeName, reach: Reach, failed_at: float, draft: Draft) -> list[Evidence]:
    """The host was being shut down when the run ended."""
    since = stops_from(node, draft)
    if since is None or failed_at < since or (reach.began is not None and since + BEFORE_S + AFTER_S < reach.began):
        return []
    text = f"{node}: its host was being shut down, as its agent said"
    return [Evidence(node=node, text=text, at=since, voids_success=True)]


def _reclaimed(node: NodeName, failed_at: float, draft: Draft) -> list[Evidence]:
    """Its provider said that it takes the machine away: a job that hears of that may end itself with any code."""
    since = reclaimed_from(node, draft)
    if since is None or failed_at < since:
        return []
    return [Evidence(node=node, text=f"{node}: its provider takes its machine away", at=failed_at)]


def _lost(node: NodeName, failed_at: float, draft: Draft) -> list[Evidence]:
    known = draft.seen.nodes.get(node)
    verdict = standing(known, draft) if known else None
    if verdict is None or verdict.standing is not Standing.LOST:
        return []
    at = verdict.since if verdict.since is not None else failed_at
    text = f"{node}: {verdict.why.text} ({'; '.join(verdict.why.evidence)})"
    return [Evidence(node=node, text=text, at=at, lasts=True)]


def note_lost(node: NodeName, since: float, draft: Draft) -> None:
    """Keep that the node was lost, once each time."""
    if (draft.nodes.of(node).lost_at or 0.0) < since:
        draft.nodes.note(node, lost_at=draft.now)


def _was_lost(node: NodeName, reach: Reach, draft: Draft) -> list[Evidence]:
    """The node was away during this run and is back, as after an incident of many: the run's end may be due to that."""
    at = draft.nodes.of(node).lost_at
    if at is None or (reach.began is not None and at < reach.began):
        return []
    text = f"{node}: was lost for a while: its agent was gone, and a second source confirmed it"
    return [Evidence(node=node, text=text, at=at, blames=False)]


def _cases(node: NodeName, reach: Reach, draft: Draft) -> list[Case]:
    """The node's cases that may bear on this."""
    known = sorted(draft.cases.of(node), key=lambda c: (c.opened, c.id))
    return [case for case in known if case.step is not Step.SUSPECT and not _is_history(case, reach)]


def _in_case(case: Case) -> Evidence:
    at = case.detected if case.detected is not None else case.opened
    return Evidence(node=case.node, text=f"{case.node}: case {case.id}, {case.why.text}", at=at, lasts=case.is_open)


def _is_history(case: Case, reach: Reach) -> bool:
    """The node was repaired and back before this began: what began after the mark got the node when it was
    back, also where we saw that a moment later (and Slurm tells the begin in whole seconds)."""
    if case.closed is None or reach.began is None:
        return False
    is_back = case.returned is not None and case.stand_in is None
    return case.closed <= reach.began or (is_back and case.marked is not None and case.marked <= reach.began)


def _findings(node: NodeName, draft: Draft) -> list[Evidence]:
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
    known = draft.seen.nodes.get(node)
    if known is not None and known.is_down:
        return [Evidence(node=node, text=f"{node}: Slurm has it DOWN", at=failed_at)]
    if known is not None and not known.responding:
        return [Evidence(node=node, text=f"{node}: does not respond to Slurm", at=failed_at)]
    return []


def _taken_out(one: TakenOut) -> Evidence:
    """A node that the run has no more: with `--no-kill` Slurm takes those out that go DOWN, whoever said so."""
    text = f"{one.node}: Slurm took it out of the running job: {one.fault}"
    return Evidence(node=one.node, text=text, at=one.at)


def fault_of(one: TakenOut, draft: Draft) -> str:
    """What was wrong with a node that has just left a job; empty: nothing that is known.

    Slurm takes a node out when it goes DOWN. One that was given up before, and that we take down since, was not.
    """
    known, case = draft.seen.nodes.get(one.node), draft.cases.in_work(one.node)
    if case is not None and known is not None and known.mark is not None:
        asked_at = draft.asked_at(Key(f"down:{case.id}"))
        return f"case {case.id}, {case.why.text}" if asked_at is not None and asked_at < one.at else ""
    if known is None:
        return "Slurm does not know it any more"
    return "Slurm has it DOWN" if known.is_down else ""


def _killed_late(node: NodeName, mem: JobMemory, failed_at: float, draft: Draft) -> list[Evidence]:
    """A run on a node that the run before lost, so soon that Slurm may have ended the wrong one of them."""
    if failed_at >= told_again_until(mem, draft).get(node, 0.0):
        return []
    text = f"{node}: the run before lost it; Slurm may have sent that run's end to the new machine and ended this run"
    return [Evidence(node=node, text=text, at=failed_at)]


def nodes_of_parts(job: Job, draft: Draft) -> frozenset[NodeName]:
    """The nodes of the other parts of a heterogeneous job."""
    return frozenset(node for other in other_parts(job, draft.seen.jobs) for node in other.nodes)


def held_by(job: Job, draft: Draft) -> frozenset[NodeName]:
    """The nodes that it has now, those of its other parts too."""
    mem = draft.jobs.get(job.id)
    return job.nodes | mem.parts if mem is not None else job.nodes


def may_still_turn_up(job: Job, draft: Draft) -> frozenset[NodeName]:
    """Nodes of the job that nobody can speak for yet: late, silent with the second witness still out, or not back since
    the head's start."""
    nodes = [draft.seen.nodes[n] for n in sorted(held_by(job, draft)) if n in draft.seen.nodes]
    doubtful = (Standing.LATE, Standing.SILENT)
    return frozenset(n.name for n in nodes if is_awaited(n.name, draft) or standing(n, draft).standing in doubtful)
