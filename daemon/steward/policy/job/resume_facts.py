"""The facts that a resumed job finds in its environment, made from what is remembered of it."""

from steward.model.ids import JobId, NodeName
from steward.model.job_report import ResumeFacts
from steward.model.memory import Memory
from steward.model.node_names import fold
from steward.model.resume import Attempt, Decision, JobMemory
from steward.model.resume_policy import ResumePolicy
from steward.model.why import Why
from steward.policy.job.options import options


def resume_facts(job: JobId, memory: Memory, rules: ResumePolicy) -> ResumeFacts | None:
    """The facts for a resumed job; None where the job did not opt in, or nothing is known of it yet."""
    mem = memory.jobs.get(job)
    if mem is None:
        return None
    resumed = [attempt for attempt in mem.attempts if attempt.decision is not Decision.STOP]
    last = resumed[-1] if resumed else None
    return ResumeFacts(
        uid=mem.uid,
        resumes=mem.resumes,
        culprits=tuple(sorted(last.culprits)) if last else (),
        excluded=tuple(sorted(mem.excluded | mem.excised | _left_out(last))),
        reason=_reason(last.why) if last else "",
        checkpoint=mem.saved.path if mem.saved else "",
        checkpoint_step=mem.saved.step if mem.saved else None,
        resumed=_resumed(mem, last, rules) if last and _is_by_us(last, mem) else "",
    )


def _is_by_us(last: Attempt, mem: JobMemory) -> bool:
    """Whether the run that starts now is that requeue's: a person may have put the job back since."""
    return last.is_requeue and mem.restarts - last.restart in (0, 1)


def _resumed(mem: JobMemory, last: Attempt, rules: ResumePolicy) -> str:
    """`1 of 5, after n2 failed; last checkpoint: step 50`."""
    after = f"{fold(last.culprits)} failed" if last.culprits else last.why.text
    text = f"{mem.resumes} of {options(mem.mode, rules).max_resumes}, after {after}"
    if mem.saved is None:
        return f"{text}; no checkpoint is known"
    return f"{text}; last checkpoint: {mem.saved.path if mem.saved.step is None else f'step {mem.saved.step}'}"


def _left_out(last: Attempt | None) -> frozenset[NodeName]:
    """A step that runs again does so without the culprits; a requeue's are in the exclude list already."""
    return last.culprits if last is not None and last.decision is Decision.RETRY else frozenset()


def _reason(why: Why) -> str:
    """The evidence says more than what was done about it."""
    return why.evidence[0] if why.evidence else why.text
