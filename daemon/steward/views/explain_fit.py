"""Tell what a waiting job lacks, by Slurm's own test."""

from steward.model.fit import MISSING, Fit, FitState
from steward.model.job import Job
from steward.model.node_names import fold
from steward.model.text import ago
from steward.policy.draft import Draft
from steward.policy.job.fits import why_blocked
from steward.policy.leaks import CURE

NOT_ASKED = "Slurm's own test does not tell whether it fits: idle nodes are counted (`steward doctor`)."
_BAD_CONSTRAINTS = "BadConstraints"
_NOT_TIDIED_UP = (
    f"Slurm says that no node fits it ({_BAD_CONSTRAINTS}), though it ran before. Slurm before 23.11.11, 24.05.6 and "
    f"24.11.1 says so of an exclusive job whose nodes went DOWN while it cleaned up: {CURE}."
)


def lack_lines(job: Job, draft: Draft) -> list[str]:
    """Return what a waiting job lacks, by Slurm's own test."""
    # a job that is kept off nodes may need those
    if job.is_pending and job.reason == _BAD_CONSTRAINTS and job.restarts and not job.excluded:
        return [_NOT_TIDIED_UP]
    fits = [fit for question, fit in draft.seen.fits.items() if question.job == job.id]
    if not job.is_pending or job.is_held or not fits:
        return [f"It waits: {why}." for why in [why_blocked(job, None)] if why and job.is_pending]
    fit = max(fits, key=lambda each: each.at)
    if not fit.is_known:
        return [NOT_ASKED]
    text = why_blocked(job, fit) or _lack(fit)
    return [f"Slurm's own test, {ago(fit.at, draft.now)}: {text}."]


def _lack(fit: Fit) -> str:
    if fit.starts:
        return f"it would start now, on {fold(fit.nodes)}, if it were first in the queue"
    if fit.missing:
        return MISSING[fit.missing]
    if fit.state is FitState.NEVER:
        return "too few of the nodes in service could take it"
    return f"the nodes that it needs are in use, for {fit.in_s:.0f} s more at most, by the time limits of their jobs"
