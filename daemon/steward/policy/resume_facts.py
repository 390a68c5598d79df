"""What a resumed job finds in its environment, from what is remembered of it."""

from steward.model.ids import JobId
from steward.model.job_report import ResumeFacts
from steward.model.memory import Memory
from steward.model.resume import Decision


def resume_facts(job: JobId, memory: Memory) -> ResumeFacts | None:
    """None: the job did not opt in, or nothing is known of it yet."""
    mem = memory.jobs.get(job)
    if mem is None:
        return None
    resumed = [attempt for attempt in mem.attempts if attempt.decision is not Decision.STOP]
    last = resumed[-1] if resumed else None
    return ResumeFacts(
        resumes=mem.resumes,
        culprits=tuple(sorted(last.culprits)) if last else (),
        excluded=tuple(sorted(mem.excluded)),
        reason=last.why.text if last else "",
        checkpoint=mem.saved.path if mem.saved else "",
        checkpoint_step=mem.saved.step if mem.saved else None,
    )
