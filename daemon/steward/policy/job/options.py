"""The options in force for a job that asked to be resumed: its own, and the site's where it says nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from steward.model.desired import FINAL_CODE
from steward.model.resume_mode import ResumeMode
from steward.model.resume_policy import ResumePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Times are seconds. `without_evidence` of the `max_resumes` may be without evidence against a node."""

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
        """Shortest time from the resume before to this one; the first resume is number 1."""
        return self.backoff_s[min(resume, len(self.backoff_s)) - 1] if self.backoff_s else 0.0


def options(mode: ResumeMode, rules: ResumePolicy) -> Options:
    """`any:N` without `max=` may use N resumes also where the site's own limit is lower."""
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
    """Each option in force and where it comes from, for people."""
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
