"""The options in force for a job, its own or the site's, and the facts that a resumed job finds in its environment."""

from collections.abc import Iterator
from dataclasses import dataclass

from steward.model.desired import FINAL_CODE
from steward.model.ids import JobId, NodeName
from steward.model.job_report import ResumeFacts
from steward.model.memory import Memory
from steward.model.node_names import fold
from steward.model.resume import Attempt, Decision, JobMemory
from steward.model.resume_mode import ResumeMode
from steward.model.resume_policy import ResumePolicy
from steward.model.why import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options in force for one job; times are seconds.

    Of the `max_resumes` resumes, `without_evidence` may be made without evidence against a node.
    """

    max_resumes: int
    without_evidence: int
    stalls: int
    youngest_s: float
    backoff_s: tuple[float, ...]
    final_codes: frozenset[int]
    timeout: bool
    preempted: bool
    user_errors_stop: bool

    def wait_s(self, resume: int) -> float:
        """Return the back-off (seconds since the previous resume) of resume number `resume`; the first is number 1."""
        return self.backoff_s[min(resume, len(self.backoff_s)) - 1] if self.backoff_s else 0.0


def options(mode: ResumeMode, rules: ResumePolicy) -> Options:
    """Return the options in force for the job."""
    # `any:N` without `max=` may use N resumes even if the site's own limit is lower
    at_most = max(rules.max_resumes, mode.without_evidence)
    return Options(
        max_resumes=at_most if mode.max_resumes is None else mode.max_resumes,
        without_evidence=mode.without_evidence,
        stalls=rules.stalls if mode.stalls is None else mode.stalls,
        youngest_s=rules.youngest_s if mode.age_s is None else mode.age_s,
        backoff_s=() if mode.backoff is False else rules.backoff_s,
        final_codes=mode.codes | {*rules.final_codes, FINAL_CODE},
        timeout=rules.timeout if mode.timeout is None else mode.timeout,
        preempted=rules.preempted,
        user_errors_stop=rules.user_errors_stop,
    )


def option_words(mode: ResumeMode, rules: ResumePolicy) -> Iterator[str]:
    """Yield each option in force and its origin, for people."""
    found = options(mode, rules)
    waits = ":".join(f"{wait:g}" for wait in found.backoff_s) or "0"
    yield _word("max", found.max_resumes, mode.max_resumes is not None)
    yield _word("stalls", found.stalls, mode.stalls is not None)
    yield _word("age", f"{found.youngest_s:g}", mode.age_s is not None)
    yield _word("backoff", waits, mode.backoff is False)
    yield _word("codes", ":".join(str(code) for code in sorted(found.final_codes)), bool(mode.codes))
    yield _word("timeout", int(found.timeout), mode.timeout is not None)


def _word(key: str, value: object, own: bool) -> str:
    return f"{key}={value} ({'its own' if own else 'site'})"


def resume_facts(job: JobId, memory: Memory, rules: ResumePolicy) -> ResumeFacts | None:
    """Return the facts for a resumed job; None if the job did not opt in, or nothing is known of it yet."""
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
    """Return whether the run that starts now follows from our requeue; a person may have requeued the job since."""
    return last.is_requeue and mem.restarts - last.restart in (0, 1)


def _resumed(mem: JobMemory, last: Attempt, rules: ResumePolicy) -> str:
    """Return the number, cause and checkpoint of the resume: `1 of 5, after n2 failed; last checkpoint: step 50`."""
    why = f", after {fold(last.culprits)} failed" if last.culprits else f": {last.why.text}"
    text = f"{mem.resumes} of {options(mem.mode, rules).max_resumes}{why}"
    if mem.saved is None:
        return f"{text}; no checkpoint is known"
    return f"{text}; last checkpoint: {mem.saved.path if mem.saved.step is None else f'step {mem.saved.step}'}"


def _left_out(last: Attempt | None) -> frozenset[NodeName]:
    """Return the culprits that a retried step leaves out; those of a requeue are in the exclude list already."""
    return last.culprits if last is not None and last.decision is Decision.RETRY else frozenset()


def _reason(why: Why) -> str:
    """Return the first piece of evidence, or else the words of the decision."""
    return why.evidence[0] if why.evidence else why.text
