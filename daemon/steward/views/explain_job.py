"""Lines about a job's resumes, for `steward explain JOB`."""

from collections.abc import Iterator

from steward.model.job import Job
from steward.model.node_names import fold
from steward.model.resume import Attempt, Decision, JobMemory, Saved
from steward.model.words import ago, times, until
from steward.policy.draft import Draft
from steward.policy.job.failure import stalls
from steward.policy.job.hang import hang_line
from steward.policy.job.nudge import BEGINS_LATER, begins_later, is_left_to_slurm, not_before, who_holds
from steward.policy.job.options import option_words, options
from steward.policy.job.progress import told_of
from steward.policy.node.gone import open_silence

_DID = {
    Decision.RETRY: "retried inside its allocation",
    Decision.REQUEUE: "requeued",
    Decision.WAIT: "requeued, to wait for the replacement of its bad node",
    Decision.STOP: "not resumed",
}

_IN_PLACE = (
    "Steps run again in place, the job is not requeued: --no-requeue or requeue=0 was given (requeue=1 was not)."
)


def resume_lines(mem: JobMemory, draft: Draft, *, private: bool) -> list[str]:
    """The job's wish and the resumes that it has left, and each ruling with its evidence; `private`: and with what the
    job printed."""
    lines = [_asked(mem, draft), f"In force: {', '.join(option_words(mem.mode, draft.want.resume))}."]
    if mem.stays_in_place:
        lines.append(_IN_PLACE)
    lines.extend(_step(mem, draft))
    if mem.saved is not None:
        lines.append(_progress(mem, mem.saved, draft))
    if mem.hang is not None:
        lines.append(hang_line(mem.hang, draft.now))
    return lines + [line for attempt in mem.attempts for line in _attempt(attempt, draft.now, private=private)]


def _asked(mem: JobMemory, draft: Draft) -> str:
    chosen = options(mem.mode, draft.want.resume)
    how = f"--auto-resume={mem.mode.text}"
    who = f"The site's default resumes it ({how})" if mem.by_default else f"The job asked to be resumed ({how})"
    free = f", {mem.unproven} of {chosen.without_evidence} without evidence" if chosen.without_evidence else ""
    return f"{who}; {mem.resumes} of {chosen.max_resumes} resumes are used{free}."


def _step(mem: JobMemory, draft: Draft) -> Iterator[str]:
    """How far this run is, where one of its nodes tells."""
    told = told_of(mem.id, mem.nodes, draft, restart=mem.restarts)
    newest = max((p for p in told if p.step is not None), key=lambda p: p.stepped or 0.0, default=None)
    if newest is not None and newest.stepped is not None:
        yield f"Last reported step: {newest.step} ({ago(newest.stepped, draft.now)}, on {newest.node})."


def _progress(mem: JobMemory, saved: Saved, draft: Draft) -> str:
    at = f" of step {saved.step}" if saved.step is not None else ""
    since = f", saved {ago(saved.at, draft.now)}" if saved.at is not None else ""
    limit = options(mem.mode, draft.want.resume).stalls
    stalled = f" Resumes in a row without a new one: {stalls(mem)} of {limit}." if mem.resumes else ""
    return f"Its newest checkpoint: {saved.path or 'one'}{at}{since}.{stalled}"


def _attempt(attempt: Attempt, now: float, *, private: bool) -> Iterator[str]:
    yield f"{ago(attempt.at, now)}: {_DID[attempt.decision]}: {attempt.why.text} [{attempt.why.rule}]."
    for fact in attempt.why.evidence:
        yield f"  because {fact}"
    for text in attempt.lines if private else ():
        yield f"  it printed: {text}"
    if attempt.lines and not private:
        yield "  what it printed is shown to its user and to admins: run `steward explain` as one of them"
    if attempt.running is not None:
        yield f"  it ran again {attempt.running - attempt.at:.1f} s later"


def silence_lines(job: Job | None, draft: Draft) -> list[str]:
    """The reason to wait where nodes of the job fell silent with many others."""
    incident = open_silence(draft)
    silent = sorted(incident.waits & job.nodes) if incident is not None and job is not None else []
    return [f"{fold(silent)} fell silent together with others: {incident.text}."] if silent and incident else []


def hurry(job: Job, mem: JobMemory, draft: Draft) -> str:
    """The steps that make the job run soon."""
    if job.is_held:
        return f"it {who_holds(job, draft)}: it stays where it is until it is released"
    if begins_later(job, draft):
        return f"it {BEGINS_LATER}: it is left alone until then"
    if is_left_to_slurm(mem):
        return "it is left to Slurm"
    at = not_before(mem, draft)
    if at > draft.now:
        return f"after so many resumes it is hurried on only {until(at, draft.now)}"
    return f"nudged {times(mem.nudges)}" if mem.nudges else "not nudged yet"
