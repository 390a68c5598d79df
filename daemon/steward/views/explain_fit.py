"""Tell what a waiting job lacks, by Slurm's own test."""

from steward.model.fit import MISSING, Fit, FitState
from steward.model.job import Job
from steward.model.node_names import fold
from steward.model.text import ago
from steward.policy.draft import Draft
from steward.policy.job.fits import why_blocked

NOT_ASKED = "Slurm's own test does not tell whether it fits: idle nodes are counted (`steward doctor`)."


def lack_lines(job: Job, draft: Draft) -> list[str]:
    """Return what a waiting job lacks, by Slurm's own test."""
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
