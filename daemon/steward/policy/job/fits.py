"""Ask Slurm's own test when a job to be resumed can start: at once when it matters, then ever more rarely."""

from steward.model.action import DownNode, DrainNode
from steward.model.fit import MISSING, Fit, Question
from steward.model.ids import NodeName
from steward.model.job import Job
from steward.model.reservation import keep_name
from steward.model.resume import JobMemory
from steward.policy.draft import Draft
from steward.policy.job.exclude import exclude_list, needs

_SHARE = 0.1
_OFTEN_S, _SELDOM_S = 1.0, 60.0
"""An answer counts for a tenth of the time that the job has waited, within these bounds.

Each question uses up one of Slurm's job numbers.
"""
_LIMITS = ("Assoc", "QOS", "Partition", "Dependency", "BurstBuffer", "Invalid")
_LIMITED = frozenset({"JobArrayTaskLimit", "Licenses", "AccountNotAllowed", "AccountingPolicy", "MaxMemPerLimit"})


def fit_of(job: Job, mem: JobMemory, draft: Draft, through: str = "") -> Fit | None:
    """Return when the job would start if it went first; None if Slurm was not asked yet, or cannot be.

    The nodes of the reservation `through` count as free, or else those kept for the job.
    """
    since = mem.pending_from if mem.pending_from is not None else draft.now
    return recent_answer(question_of(job, mem, draft, through), since, draft)


def question_of(job: Job, mem: JobMemory, draft: Draft, through: str = "") -> Question:
    """Return the question for Slurm, without nodes that the next nudge excludes or this plan takes out of service."""
    without = (exclude_list(job, mem, draft) | leaving_service(draft)) - job.excluded
    return Question(
        job=job.id,
        nodes=0 if job.is_pending else needs(job, mem),
        without=without,
        reservation=through or (keep_name(job.id) if is_kept(mem, draft) else ""),
    )


def leaving_service(draft: Draft) -> frozenset[NodeName]:
    """Return the nodes that this plan takes out of service."""
    known, nodes = draft.found.leaving
    if known != len(draft.actions):
        downed = frozenset(each.node for each in draft.actions_of(DownNode))
        nodes = downed.union(each.node for each in draft.actions_of(DrainNode))
        draft.found.leaving = (len(draft.actions), nodes)
    return nodes


def is_kept(mem: JobMemory, draft: Draft) -> bool:
    """Return whether the job's nodes are reserved until this plan is carried out, even if this plan frees them."""
    return mem.kept is not None and (mem.kept.freed is None or mem.kept.freed >= draft.now)


def recent_answer(question: Question, since: float, draft: Draft) -> Fit | None:
    """Return Slurm's answer if it is recent enough for a job that waits since `since` (Unix s); else None."""
    age = min(_SELDOM_S, max(_OFTEN_S, _SHARE * (draft.now - since)))
    # a repair that ended makes all older answers too old
    returned = max((case.returned for case in draft.cases.values() if case.returned is not None), default=0.0)
    draft.wake(draft.now + age)
    fit = draft.ask(question, since=max(draft.now - age, returned))
    return fit if fit is not None and fit.is_known else None


def why_blocked(job: Job, fit: Fit | None) -> str:
    """Return what the job waits for other than nodes, so that no nodes are kept for it; empty if nothing is known."""
    if fit is not None and fit.missing == "licenses":
        return MISSING["licenses"]
    if job.is_pending and (job.reason in _LIMITED or job.reason.startswith(_LIMITS)):
        return f"Slurm does not let it start on any node now ({job.reason})"
    return ""
