"""Answer the waiting shims: retry, requeue or stop, by evidence and within the job's budget."""

from dataclasses import replace

from steward.model.action import AnswerAsk, CheckNow
from steward.model.ask import Answer, Ask, AskKind
from steward.model.case import CaseStep
from steward.model.events import Level
from steward.model.ids import Key, NodeName
from steward.model.job import Job, JobState
from steward.model.job_report import Lean
from steward.model.memory import AskMemory
from steward.model.resume import Attempt, Decision, JobMemory
from steward.model.resume_policy import CHECK_BUDGET_S
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.job.decide import Ruling, decide
from steward.policy.job.evidence import held_by, may_still_turn_up
from steward.policy.job.failure import Failure, FailureSource, failure_of_ask
from steward.policy.job.launch import script_never_began
from steward.policy.job.reach import nodes_of
from steward.policy.job.remember import may_ask
from steward.policy.job.rulings import keep_ruling, requeue_by, standing_promise, wish_requeue

ANSWER_AGAIN_S = 2.0
RECHECK_S = 10.0
"""A failure whose log points to the hardware waits this much longer, for a second check."""
SHORTEST_CHECK_S = 0.5
CHECK_SHARE = 0.1
"""The time for fresh results of checks, as a share of the time since the run's start or its last failure."""
LEAVE_S = 3.0
"""For how long after a node is DOWN Slurm may still show the node in a job."""


def answer_asks(draft: Draft) -> None:
    """Decide on the request of each waiting shim; keep a request that cannot be decided yet until its next deadline."""
    for ask in sorted(draft.seen.asks, key=lambda a: a.id):
        _handle(ask, draft)


def _handle(ask: Ask, draft: Draft) -> None:
    failed_at = draft.asks.setdefault(ask.id, AskMemory(at=draft.now)).at
    too_late = draft.now >= failed_at + draft.want.resume.ask_deadline_s
    draft.wake(failed_at + draft.want.resume.ask_deadline_s)
    job, mem = draft.seen.jobs.get(ask.job), draft.jobs.get(ask.job)
    if job is not None and ask.uid not in (0, job.user_id):
        _refuse_foreign(ask, f"uid {ask.uid} asked for a job of uid {job.user_id}", draft)
        return
    if not draft.slurm_is_fresh:
        if too_late:
            _stop_undecided(ask, job, Why(rule="ask.deadline", text="Slurm could not be read in time"), draft)
        return
    if job is None or mem is None:
        _stop_unknown(ask, job, failed_at, draft)
        return
    prior = mem.attempt_for(ask.id)
    if not may_ask(ask, job, draft):
        _refuse_foreign(ask, f"{ask.node} asked for a job that it does not have", draft)
    elif not ask.mode.on or not draft.want.resume.enabled:
        _stop(ask, Why(rule="ask.off", text="auto-resume is off for it"), draft)
    elif not job.is_active and not job.is_pending:
        _stop_ending(ask, job, draft)
    elif job.is_pending or job.restarts > ask.restart:
        _send_answer(ask, Answer.REQUEUE, Why(rule="ask.requeued", text="the job was requeued"), draft)
    elif prior is not None:
        _repeat(ask, job, prior, draft)
    else:
        _decide(ask, job, mem, failed_at, too_late, draft)


def _stop_unknown(ask: Ask, job: Job | None, failed_at: float, draft: Draft) -> None:
    """Tell the shim to stop: the job is unknown or not to be resumed. Give Slurm a second to show a new job."""
    if job is None and draft.now < failed_at + 1.0:
        draft.wake(failed_at + 1.0)
        return
    _send_answer(ask, Answer.STOP, Why(rule="ask.no_job", text=_why_unknown(job)), draft)


def _why_unknown(job: Job | None) -> str:
    """Return why no decision is made for the job."""
    if job is None:
        return "Slurm does not know the job"
    if job.is_part:
        return f"the script of job {job.het_job_id} asks for its parts"
    return "the job did not ask to be resumed"


def _stop_undecided(ask: Ask, job: Job | None, why: Why, draft: Draft) -> None:
    """Tell the shim to stop because no decision is possible."""
    # without a job in the picture, the caller may be another user: do not remember the request
    if job is None:
        _send_answer(ask, Answer.STOP, why, draft)
    else:
        _stop(ask, why, draft)


def _refuse_foreign(ask: Ask, text: str, draft: Draft) -> None:
    """Refuse a request for a job that is not the caller's, and warn once a day for each user on each node."""
    # the caller chooses the jobs to name: a warning for each job could flood the log
    draft.tell(
        "ask.foreign", text, once=f"foreign:{ask.node}:{ask.uid}", level=Level.WARNING, node=ask.node, job=ask.job
    )
    _send_answer(ask, Answer.STOP, Why(rule="ask.foreign", text=text), draft)


def _stop_ending(ask: Ask, job: Job, draft: Draft) -> None:
    """Tell the shim to stop because Slurm is ending this run; the ruling follows when the run has ended."""
    cleans_up = job.state is JobState.UNKNOWN and job.is_completing  # 22.05 does not show the final state yet
    text = "Slurm is ending it" if cleans_up else f"the job is {job.state.value}"
    _send_answer(ask, Answer.STOP, Why(rule="ask.ended", text=text), draft)


def _decide(ask: Ask, job: Job, mem: JobMemory, failed_at: float, too_late: bool, draft: Draft) -> None:
    """Rule on the failure and answer the shim, or wait for fresh checks or for a bad node to leave service."""
    failure = failure_of_ask(ask, job, mem, failed_at, draft, known=script_never_began(ask, job, mem, failed_at, draft))
    ruling = decide(failure)
    if promised := standing_promise(mem, ruling, failed_at, draft):
        wish_requeue(job, promised.why, draft)
    elif too_late:
        _stop(ask, Why(rule="ask.deadline", text="no decision was possible in time"), draft)
    elif not _waits(ask, job, failure, ruling, failed_at, draft):
        _carry_out(ask, job, ruling, draft)


def _waits(ask: Ask, job: Job, failure: Failure, ruling: Ruling, failed_at: float, draft: Draft) -> bool:
    """Return whether the ruling must wait: for fresh checks, the job's output, or a bad node to leave service."""
    if ruling.open:
        budget_s = _check_s(failure, ruling, draft.jobs[job.id], failed_at, draft)
        waits = _waits_for_checks(ask, job, failure, failed_at, budget_s, draft)
        if waits or _waits_for_output(ask, failed_at + budget_s, draft):
            return True
    return _may_resume(failure) and _waits_for_drain(job, failure.culprits, draft)


def _carry_out(ask: Ask, job: Job, ruling: Ruling, draft: Draft) -> None:
    """Remember the ruling and answer the shim, or ask for the requeue."""
    if ruling.decision is Decision.STOP:
        _remember(ask, ruling, draft)
        _send_answer(ask, Answer.STOP, ruling.why, draft)
    elif ruling.decision is Decision.RETRY:
        _remember(ask, ruling, draft)
        _send_answer(ask, Answer.RETRY, ruling.why, draft, ruling.culprits)
    else:
        requeue_by(job, ask.id, ruling, draft, node=ask.node)


def _may_resume(failure: Failure) -> bool:
    """Return whether the job is resumed once its bad nodes are out of service."""
    # no step can be retried while a bad node is in service: rule as if the nodes were out already
    return decide(replace(failure, may_retry=failure.kind is FailureSource.STEP)).decision is not Decision.STOP


def _waits_for_drain(job: Job, bad: frozenset[NodeName], draft: Draft) -> bool:
    """Return whether a bad node is still being drained, or is dead and still shown by Slurm in the job."""
    for node in sorted(bad & held_by(job, draft)):
        case, known = draft.cases.in_work(node), draft.seen.nodes.get(node)
        if case is not None and case.step is CaseStep.DRAIN and draft.may_touch_nodes:
            return True
        since = case.marked if case is not None and case.marked is not None else None
        if known is not None and known.is_down and since is not None and draft.now < since + LEAVE_S:
            draft.wake(since + LEAVE_S)
            return True
    return False


def _repeat(ask: Ask, job: Job, prior: Attempt, draft: Draft) -> None:
    """Repeat a decision that was made in an earlier turn and has not taken effect yet."""
    if prior.is_requeue:
        wish_requeue(job, prior.why, draft)
    elif prior.decision is Decision.RETRY:
        _send_answer(ask, Answer.RETRY, prior.why, draft, prior.culprits)
    else:
        _send_answer(ask, Answer.STOP, prior.why, draft)


def _waits_for_output(ask: Ask, until: float, draft: Draft) -> bool:
    """Return whether the end of the job's output is still being read, and may be waited for."""
    if not ask.is_reading or draft.now >= until:
        return False
    draft.wake(until)
    return True


def _waits_for_checks(ask: Ask, job: Job, failure: Failure, failed_at: float, budget_s: float, draft: Draft) -> bool:
    """Return whether to wait for fresh checks of the job's nodes, or for a silent node to be found lost."""
    # agents need time to reconnect to a head that has just started, and no check ran while Slurm could not be read
    began = draft.seen.agents_since + draft.want.repair.agents_grace_s
    first = max(failed_at, began, _first_judged_at(ask, draft)) + draft.want.resume.detect_s
    if _awaits_results(Key(f"check:{ask.id}"), job, first, budget_s, draft):
        return True
    # if the job's log points to a hardware fault, its nodes are checked a second time a little later
    if failure.sign(Lean.INFRA) is None:
        return False
    if draft.now < first:
        draft.wake(first)
        return True
    again = Key(f"check:{ask.id}:again")
    return _awaits_results(again, job, first + RECHECK_S, CHECK_BUDGET_S, draft)


def _first_judged_at(ask: Ask, draft: Draft) -> float:
    """Return the time (Unix s) at which this request could be judged for the first time; remember this time."""
    known = draft.asks[ask.id]
    if known.judged is not None:
        return known.judged
    draft.asks[ask.id] = replace(known, judged=draft.now)
    return draft.now


def _check_s(failure: Failure, ruling: Ruling, mem: JobMemory, failed_at: float, draft: Draft) -> float:
    """Return how many seconds the fresh checks may take."""
    most_s = CHECK_BUDGET_S
    ruled = (attempt.at for attempt in mem.attempts if attempt.restart == mem.restarts)
    since = max((at for at in (mem.started, *ruled) if at is not None), default=None)
    if failure.kind is not FailureSource.STEP or ruling.decision is not Decision.STOP or since is None:
        return most_s
    # a script may have many failing steps: the wait for each is at most a share of the time worked. A fault that a
    # quick check misses is found when the script itself fails.
    return min(most_s, max(SHORTEST_CHECK_S, CHECK_SHARE * (failed_at - since)))


def _awaits_results(key: Key, job: Job, until: float, budget_s: float, draft: Draft) -> bool:
    """Ask the job's nodes once for fresh results; return whether to wait for the results."""
    connected = frozenset(n for n in held_by(job, draft) if (v := draft.seen.agents.get(n)) is not None and v.connected)
    why = Why(rule="resume.check", text=f"job {job.shown_id} failed; is one of its nodes the cause?")
    if connected:
        draft.wish(CheckNow(key=key, why=why, nodes=connected, budget_s=budget_s))
    asked_at = draft.asked_at(key)
    unheard = {n for n in connected if asked_at is not None and draft.seen.agents[n].checked_at < asked_at}
    if draft.now >= until or not (unheard or may_still_turn_up(job, draft)):
        return False
    draft.wake(until)
    return True


def _stop(ask: Ask, why: Why, draft: Draft) -> None:
    """Tell the shim to stop without a ruling on the failure, so that the run can still be judged when it has ended."""
    mem = draft.jobs.get(ask.job)
    # a promised requeue must stay the last ruling: otherwise it would look like Slurm's own requeue when it comes, and
    # be charged as a second resume
    if mem is None or mem.promised is None:
        _remember(ask, Ruling(decision=Decision.STOP, why=why), draft)
    _send_answer(ask, Answer.STOP, why, draft)


def _send_answer(ask: Ask, answer: Answer, why: Why, draft: Draft, exclude: frozenset[NodeName] = frozenset()) -> None:
    """Ask for the answer to be sent to the shim."""
    key = Key(f"answer:{ask.id}")
    action = AnswerAsk(key=key, why=why, ask=ask.id, job=ask.job, node=ask.node, answer=answer, exclude=exclude)
    draft.wish(action, ANSWER_AGAIN_S)


def _remember(ask: Ask, ruling: Ruling, draft: Draft) -> None:
    """Remember the ruling for the job, with the failed step and its nodes."""
    mem, failed_at = draft.jobs.get(ask.job), draft.asks[ask.id].at
    step = ask.step if ask.kind is AskKind.STEP else ""
    nodes = nodes_of(ask, mem) if mem is not None and step else frozenset[NodeName]()
    keep_ruling(ask.job, ask.id, ruling, draft, node=ask.node, failed_at=failed_at, step=step, nodes=nodes)
