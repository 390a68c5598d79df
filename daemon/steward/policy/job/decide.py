"""Rule on a job's failure: one pure function and a table of rules. The first rule that fits counts.

Signs in a job's log only support a ruling, because users can print anything: a sign never names a culprit and is never
enough to resume a job. `python -m steward.policy.job.decide` prints the rules as the table in docs/resume.md; a test
compares.
"""

from collections.abc import Callable
from dataclasses import dataclass

from steward.model.ids import NodeName
from steward.model.job import JobState
from steward.model.job_report import Lean, LogSign
from steward.model.resume import Decision
from steward.model.why import Why
from steward.policy.job.failure import Failure, FailureSource, ended_by

MOST_FACTS = 10
_MOST_SIGNS = 2
CANCELLED = "resume.cancelled"
"""The rule of jobs that ended well or were cancelled; no event is written for them."""

FINAL_CODE, DEADLINE, MEMORY = "resume.final_code", "resume.deadline", "resume.out_of_memory"
TIME_LIMIT, FOR_OTHERS = "resume.time_limit", "resume.made_room"
NO_MORE = frozenset({FINAL_CODE, CANCELLED, DEADLINE, MEMORY, TIME_LIMIT, FOR_OTHERS})
"""The rules after which no other run follows, even if a requeue was decided before."""
TIMED_OUT, MADE_ROOM, RECLAIMED = "resume.timeout", "resume.preempted", "resume.reclaimed"
TOLD = "resume.told"
OUT_OF_TURN = "first.out_of_turn"
TURN_OVER = frozenset({TIMED_OUT, MADE_ROOM, RECLAIMED, OUT_OF_TURN, TOLD})
"""The rules of jobs that come back although no fault ended them: other waiting jobs go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """A decision on a failure, with its reasons.

    `final`: this run is not judged again. `open`: the ruling holds while no fault of a node is found; fresh checks may
    overturn it. `unproven`: a resume without evidence. `is_counted`: a resume whose fault was charged before. `lines`
    are lines that the job printed, for its user and admins alone; all users may read `why`, which only names the signs.
    """

    decision: Decision
    why: Why
    culprits: frozenset[NodeName] = frozenset()
    final: bool = False
    open: bool = False
    unproven: bool = False
    is_counted: bool = False
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row of the table: its condition, decision and sentence. `final` and `open` as in Ruling."""

    name: str
    when: Callable[[Failure], bool]
    decision: Decision
    text: str
    final: bool = False
    open: bool = False


def has_cause(f: Failure) -> bool:
    """Return whether the failure has a cause outside the job itself."""
    is_told = bool(f.evidence or f.was_evicted or f.told_to_save)
    return is_told or f.is_machines or f.state in (JobState.TIMEOUT, JobState.PREEMPTED)


def _is_bare(f: Failure) -> bool:
    """Return whether nothing but the job itself explains the failure."""
    return not has_cause(f)


def _blames_no_node(f: Failure) -> bool:
    """Return whether there is evidence, but none that blames a node."""
    # such evidence may be older than the failure: only fresh checks show a node that would hit the next run at once
    return bool(f.evidence) and not f.culprits


def _ended_in(*states: JobState) -> Callable[[Failure], bool]:
    """Return a test for whether Slurm ended the job in one of the states."""
    return lambda f: f.state in states


RETRY, REQUEUE, WAIT, STOP = Decision.RETRY, Decision.REQUEUE, Decision.WAIT, Decision.STOP

RULES: tuple[Rule, ...] = (
    Rule(
        name=FINAL_CODE,
        when=lambda f: bool(f.codes & f.options.final_codes),
        decision=STOP,
        text="it ended with an exit code that means: do not try again",
        final=True,
    ),
    Rule(
        name=CANCELLED,
        when=lambda f: f.state in (JobState.CANCELLED, JobState.COMPLETED) and not f.is_cut_short,
        decision=STOP,
        text="it was cancelled or is complete",
        final=True,
    ),
    Rule(name=RECLAIMED, when=lambda f: bool(f.was_evicted), decision=REQUEUE, text="it was evicted for another job"),
    Rule(
        name=DEADLINE,
        when=_ended_in(JobState.DEADLINE),
        decision=STOP,
        text="its deadline has passed",
        final=True,
    ),
    Rule(
        name=MEMORY,
        when=lambda f: f.ran_out_of_memory,
        decision=STOP,
        text="it used more memory than it had asked for",
        final=True,
    ),
    Rule(
        name=TIME_LIMIT,
        when=lambda f: f.state is JobState.TIMEOUT and not f.options.timeout,
        decision=STOP,
        text="its time limit is over (timeout=1 lets a job go on)",
        final=True,
    ),
    Rule(
        name=FOR_OTHERS,
        when=lambda f: f.state is JobState.PREEMPTED and not f.options.preempted,
        decision=STOP,
        text="Slurm cancelled it to make room (resume.preempted brings such jobs back)",
        final=True,
    ),
    Rule(
        name="resume.no_evidence",
        when=lambda f: _is_bare(f) and not f.options.without_evidence,
        decision=STOP,
        text="no hardware fault found on its nodes; treated as the job's own failure",
        open=True,
    ),
    Rule(
        name="resume.scripts_own",
        when=lambda f: _is_bare(f) and f.kind is FailureSource.STEP and not (f.own_wish and f.may_retry),
        decision=STOP,
        text="a step failed without a fault of its nodes: its script decides what follows",
        open=True,
    ),
    Rule(
        name="resume.killed",
        when=lambda f: _is_bare(f) and f.kind is not FailureSource.HANG and f.was_killed,
        decision=STOP,
        text="it was ended by a signal such as scancel sends",
        open=True,
    ),
    Rule(
        name="resume.user_error",
        when=lambda f: _is_bare(f) and f.options.user_errors_stop and f.sign(Lean.USER) is not None,
        decision=STOP,
        text="its log shows an error of its own, which another try would meet again",
        open=True,
    ),
    Rule(
        name="resume.young",
        when=lambda f: _is_bare(f) and f.age_s is not None and f.age_s < f.options.youngest_s,
        decision=STOP,
        text="it failed too soon after its start to be resumed without evidence",
        open=True,
    ),
    Rule(
        name="resume.any_used",
        when=lambda f: _is_bare(f) and f.unproven >= f.options.without_evidence,
        decision=STOP,
        text="it has had all its resumes without evidence",
        open=True,
    ),
    Rule(
        name="resume.budget",
        when=lambda f: f.resumes - f.is_counted >= f.options.max_resumes,
        decision=STOP,
        text="it has had all its resumes",
        final=True,
    ),
    Rule(
        name="resume.no_progress",
        when=lambda f: f.stalls >= f.options.stalls,
        decision=STOP,
        text="its last resumes brought no new checkpoint",
        final=True,
    ),
    Rule(
        name="resume.retry",
        when=lambda f: f.may_retry and f.kind is FailureSource.STEP,
        decision=RETRY,
        text="the step runs again inside the allocation",
    ),
    Rule(
        name="resume.not_batch",
        when=lambda f: not f.is_batch,
        decision=STOP,
        text="only a batch job can be requeued",
        final=True,
    ),
    Rule(
        name="resume.no_requeue",
        when=lambda f: f.stays_in_place,
        decision=STOP,
        text="it was submitted with --no-requeue (override with requeue=1)",
        final=True,
    ),
    Rule(
        name=TIMED_OUT,
        when=_ended_in(JobState.TIMEOUT),
        decision=REQUEUE,
        text="it goes on after its time limit, as it asked for",
    ),
    Rule(
        name=MADE_ROOM,
        when=_ended_in(JobState.PREEMPTED),
        decision=REQUEUE,
        text="Slurm cancelled it to make room: it waits for another turn",
    ),
    Rule(
        name=TOLD,
        when=lambda f: bool(f.told_to_save) and not f.evidence and not f.is_machines,
        decision=REQUEUE,
        text="it ended after Steward had told it to save its state: it goes on",
    ),
    Rule(
        name="resume.wait",
        when=lambda f: bool(f.culprits) and f.short,
        decision=WAIT,
        text="a node failed, and too few others are free: the job starts again when enough are free",
    ),
    Rule(
        name="resume.no_script",
        when=lambda f: f.kind is FailureSource.NO_SCRIPT,
        decision=REQUEUE,
        text="its script is gone with its batch host, and Slurm goes on without it",
    ),
    Rule(
        name="resume.by_slurm",
        when=lambda f: f.kind is FailureSource.REQUEUED and has_cause(f),
        decision=REQUEUE,
        text="Slurm requeued it after a node's failure",
    ),
    Rule(
        name="resume.late",
        when=lambda f: f.kind is FailureSource.ENDED and has_cause(f),
        decision=REQUEUE,
        text="a node failed about when the job ended: it starts again",
    ),
    Rule(
        name="resume.requeue",
        when=lambda f: bool(f.evidence),
        decision=REQUEUE,
        text="a node failed; the job starts again elsewhere",
    ),
    Rule(
        name="resume.any",
        when=lambda f: True,
        decision=REQUEUE,
        text="it asked to be resumed also without evidence",
        open=True,
    ),
)
"""The rules in the order in which they are tried. The last rule always fits, so that every failure gets a ruling."""


def decide(failure: Failure) -> Ruling:
    """Return the ruling of the first rule that fits the failure."""
    rule = next(rule for rule in RULES if rule.when(failure))
    resumes = rule.decision is not STOP
    bare = _is_bare(failure)
    return Ruling(
        decision=rule.decision,
        why=Why(rule=rule.name, text=rule.text, evidence=_facts(failure)),
        culprits=failure.culprits if resumes else frozenset(),
        final=rule.final or (rule.open and failure.kind is FailureSource.BATCH),
        open=rule.open or (resumes and (bare or _blames_no_node(failure))),
        unproven=resumes and bare,
        is_counted=resumes and failure.is_counted,
        lines=tuple(sign.line for sign in _first_signs(failure)),
    )


def _facts(f: Failure) -> tuple[str, ...]:
    """Return the evidence for the ruling, the strongest first, in an order that does not depend on the input's."""
    against = sorted(f.evidence, key=lambda item: (item.at, item.node, item.text))
    facts = [item.text for item in against]
    if f.is_machines or f.state in (JobState.TIMEOUT, JobState.PREEMPTED):
        facts.insert(0, _slurms_words(f))
    if f.was_evicted:
        facts.insert(0, f.was_evicted)
    if f.told_to_save:
        facts.append(f.told_to_save)
    if status := _status(f):
        facts.append(status)
    if f.input_gone and (has_cause(f) or f.own_wish):
        facts.append("what it read through a pipe is gone: it cannot run again in place")
    facts += [f"its log: {sign.sign}" for sign in _first_signs(f)]
    if not facts or f.resumes:
        facts.append(_resumes_used(f))
    return tuple(dict.fromkeys(facts))[:MOST_FACTS]


def _first_signs(f: Failure) -> list[LogSign]:
    """Return the first few signs in the job's log."""
    return sorted(f.signs, key=lambda sign: (sign.order, sign.sign, sign.line))[:_MOST_SIGNS]


def _slurms_words(f: Failure) -> str:
    """Return Slurm's own words for the end of the job."""
    if f.kind is FailureSource.NO_SCRIPT:
        return "Slurm runs it without its script"
    return f"Slurm: {f.state.value}" + (f" ({f.reason})" if f.reason not in ("", "None") else "")


def _status(f: Failure) -> str:
    """Return the words for the first task that ended badly, or else for the failure itself; empty without a status."""
    # tasks that end after the first one may be its victims
    exits = sorted(f.exits, key=lambda exit: (exit.at, exit.task, exit.node, exit.status))
    status = next((exit.status for exit in exits if exit.status), f.status)
    if not status:
        return ""
    # srun reports a signal as 128 + signal; a script or a task chooses such an exit code itself
    told = _how_ended(ended_by(status) if f.kind is FailureSource.STEP and not exits else status & 0x7F, status)
    own = _how_ended(f.status & 0x7F, f.status)
    return f"{own}, after a task: {told}" if f.kind is FailureSource.BATCH and f.status and own != told else told


def _how_ended(number: int, status: int) -> str:
    """Return the words for a signal, or without one for the exit code of a raw wait status."""
    return f"ended by signal {number}" if number else f"exit code {status >> 8 & 0xFF}"


def _resumes_used(f: Failure) -> str:
    """Return the words for how many resumes the job has used."""
    without = f", {f.unproven} of {f.options.without_evidence} without evidence" if f.options.without_evidence else ""
    stalled = f", the last {f.stalls} without a new checkpoint" if f.stalls else ""
    return f"{f.resumes} of {f.options.max_resumes} resumes used{without}{stalled}"


def table() -> str:
    """Return the rules as a Markdown table, in the order in which they are tried."""
    rows = [
        f"| {number} | `{rule.name}` | {rule.decision.value} | {rule.text} |" for number, rule in enumerate(RULES, 1)
    ]
    return "\n".join(["| | rule | decision | what it says |", "|---|---|---|---|", *rows, ""])


if __name__ == "__main__":
    print(table(), end="")
