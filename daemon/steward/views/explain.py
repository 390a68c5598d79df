"""Lines for people about a node or a job: the facts, the decisions with their reasons, and the next step."""

from collections.abc import Iterable, Iterator

from steward.model.ask import AskKind
from steward.model.case import Case, CaseStep
from steward.model.desired import Desired
from steward.model.ids import JobId, NodeName
from steward.model.job import Job, JobState, other_parts
from steward.model.mark import SPARE
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.node_names import fold
from steward.model.observed import Freshness, Observed
from steward.model.resume import Attempt, Decision, JobMemory, Saved
from steward.model.text import UNREAD, ago, clean, span, time_left, times
from steward.policy.case.scene import limit_s
from steward.policy.case.spares import free_spare, needs_spare, why_no_spare
from steward.policy.case.suspicion import SCOUTED, fault_of, is_in_incident, why_withheld
from steward.policy.draft import Draft
from steward.policy.facts.blame import EVIDENCE_AFTER_S, culprits
from steward.policy.facts.by_person import is_orphan, origin_of_mark, remedy_for_orphan, return_command
from steward.policy.facts.gone import open_silence
from steward.policy.facts.incidents import AGENTS
from steward.policy.facts.loans import loans
from steward.policy.facts.serving import belongs_to_slot
from steward.policy.facts.slurm_faults import acting_row, reason_fault, response_text
from steward.policy.facts.verdict import Standing, admin_command, standing
from steward.policy.guards.budget import must_wait
from steward.policy.guards.run_end import end_of
from steward.policy.job.failure import count_stalls
from steward.policy.job.hang import hang_line, rule_lines, slow_lines, still_line
from steward.policy.job.leaving import slow_nodes
from steward.policy.job.nudge import (
    BEGINS_LATER,
    UNBEGUN,
    begins_later,
    hold_text,
    is_left_to_slurm,
    is_left_unbegun,
    not_before,
)
from steward.policy.job.options import option_words, options
from steward.policy.job.progress import progress_of
from steward.policy.leaks import CURE, leak_text
from steward.policy.slurm_reasons import ReasonRow, slurms_own
from steward.policy.traits import PLANNED_ABSENCE, is_away_on_purpose
from steward.views.awaited import of_case
from steward.views.explain_fit import lack_lines
from steward.views.explain_group import closed_partitions, elastic_lines, slot_lines
from steward.views.explain_health import (
    deep_lines,
    feature_lines,
    finding_lines,
    guard_lines,
    hardware_lines,
    verdict_lines,
)
from steward.views.explain_quota import quota_lines
from steward.views.node_verdict import AWAITED, why_kept_out

_LEFT = "The node left its group of the API and has no machine: a group that takes it makes one."
_UNUSED = "Its group of the API does not use it: nothing is done about it until one takes it."


def explain_node(name: NodeName, seen: Observed, want: Desired, memory: Memory, now: float) -> tuple[str, ...]:
    """Return all lines about a node, most important first. Pure; decides nothing."""
    return node_lines(name, memory, Draft(seen, want, memory, now))


def node_lines(name: NodeName, memory: Memory, draft: Draft) -> tuple[str, ...]:
    """Return the lines of `explain_node` from an existing draft, which is only read."""
    node = draft.seen.nodes.get(name)
    lines = [*_stale(draft), *verdict_lines(name, draft), *_known_of_node(name, node, draft), *slot_lines(name, draft)]
    case = draft.cases.open_of(name)
    if case is not None or not _is_unused(node, draft):
        lines += _agent(name, node, draft)
        lines += [*finding_lines(name, draft), *(_case(case, draft) if case else _no_case(node, draft))]
        lines += guard_lines(name, draft)
    lines += [_past_case(c, draft.now) for c in _closed(name, memory)[:3]]
    return clean([*lines, *hardware_lines(name, memory, draft), *deep_lines(name, draft), *feature_lines(node)])


_OF_A_RUN = "A replica job is not resumed by itself: when it is over, its run goes on and may ask for another."


def explain_job(
    id: JobId, seen: Observed, want: Desired, memory: Memory, now: float, *, private: bool = False
) -> tuple[str, ...]:
    """Return all lines about a job: Slurm's state, the job's options, and each decision with its evidence.

    `private` adds what the job printed, which only its user and admins may read.
    """
    return job_lines(id, memory, Draft(seen, want, memory, now), private=private)


def job_lines(id: JobId, memory: Memory, draft: Draft, *, private: bool = False) -> tuple[str, ...]:
    """Return the lines of `explain_job` from an existing draft, which is only read."""
    job, mem = draft.seen.jobs.get(id), memory.jobs.get(id)
    lines = [
        *_stale(draft),
        _known_of_job(id, job, memory, draft),
        *closed_partitions(job, draft),
        *quota_lines(job, draft),
    ]
    lines += elastic_lines(id, draft)
    if job is not None and job.is_active and (still := still_line(job, draft)):
        lines.append(still)
    lines += [*rule_lines(job, draft), *slow_lines(job, draft)] if job is not None and job.is_active else []
    if mem is None:
        replica = draft.elastic.run_of(id) is not None
        return clean([*lines, _OF_A_RUN if replica else _not_asked(id, job, draft)])
    return clean([*lines, *resume_lines(mem, draft, private=private), *_next_of_job(job, mem, draft)])


def job_warning(want: Desired) -> str:
    """Return the first line that a job prints if this site does less for it than the job asks; empty if it does not."""
    if not want.resume.enabled:
        return "resuming is off on this cluster (resume.enabled = false): this job is not brought back"
    if not want.repair.act:
        return (
            'Steward only reports on this cluster (repair.mode = "report"): faulty nodes stay in service, and after a '
            "node's death this job is resumed only when Slurm itself has set the node DOWN"
        )
    return ""


_ENDED_UNSEEN = (
    "The job ended while no head was there: whether it had asked to be resumed (--auto-resume=1) is not known, and "
    "nothing brings it back."
)


def _not_asked(id: JobId, job: Job | None, draft: Draft) -> str:
    """Return why a job that is not known to have opted in is not resumed."""
    # Say only what is known: a job's option is reported by its nodes' agents, and read in Slurm's record while it runs.
    if not draft.want.resume.enabled:
        return "Resuming is off on this cluster (resume.enabled = false): no job is brought back, whatever it asks for."
    if job is not None and job.is_pending and not job.restarts:
        return "The job has not run yet: whether it asks to be resumed (--auto-resume=1) is looked at when it starts."
    if why := draft.seen.unread.get(id):
        return f"Whether the job asked to be resumed (--auto-resume=1) is not known: no agent reported it, and {why}."
    if job is not None and job.ended is not None and job.ended < draft.seen.agents_since:
        return _ENDED_UNSEEN
    seen = "The job did not ask" if job is not None and job.is_active else "Nothing shows that it asked"
    untouched = f"{seen} to be resumed (by a valid --auto-resume=), so no fault brings it back."
    if job is None or not job.restarts or draft.quota_jobs.was_evicted(id, job.restarts - 1):
        return untouched
    return f"{untouched} Slurm put it back into the queue, as it does when a node of it is taken out or ended."


def _stale(draft: Draft) -> list[str]:
    """Return the line that says that the picture is old; empty if it is not."""
    if draft.seen.slurm is Freshness.FRESH:
        return []
    return [f"{UNREAD} now: this is the last good picture, and nothing is done on it."]


def _known_of_node(name: NodeName, node: Node | None, draft: Draft) -> list[str]:
    if node is None:
        return [f"{name}: Slurm does not know this node."]
    state = "+".join([node.base.value, *sorted(node.flags)])
    reason = f", {node.reason}" if node.reason else ""
    lines = [f"{name}: Slurm says {state}{reason}."]
    if gres := draft.overview.leaks.get(name):
        lines.append(f"{leak_text(name, gres)}; {CURE}.")
    if name in draft.want.spares:
        lines.append(_spare(name, node, draft))
    if _is_unused(node, draft):
        return [*lines, _UNUSED if node.mark is None else _LEFT]
    lines += _why_out(node, draft)
    if name not in draft.slots.repairable and name not in draft.slots:
        lines.append("No provider can replace it: Steward only takes it out of service and then needs a person.")
    return lines


def _why_out(node: Node, draft: Draft) -> list[str]:
    """Return why the node is out of service, and what is done about that."""
    case = draft.cases.open_of(node.name)
    if node.mark is not None and not (node.mark == SPARE and node.name in draft.want.spares):
        return _drained_by_us(node, case, draft)
    row = acting_row(node, draft)
    if row is None and node.is_foreign:
        row = slurms_own(node, draft.want.slurm_user)
    if row is not None:
        done = _done_about(row, node, case, draft)
        by = f"Taken out of service by Slurm itself (kind of reason: {row.kind.value})"
        return [f"{by}: {done}." if done else f"{by}."]
    if (order := admin_command(node)) is not None:
        return [f"Taken out of service by an admin, who asked for {order.text}."]
    if node.is_foreign and case is None:
        return ["Taken out of service by a person or a tool: Steward leaves it alone."]
    return []


def _drained_by_us(node: Node, case: Case | None, draft: Draft) -> list[str]:
    if not (node.is_drain or node.is_down):
        return []
    if is_orphan(node, draft):
        way = remedy_for_orphan(node, draft)
        todo = f"For a person: {way}" if way else f"{AWAITED[:1].upper()}{AWAITED[1:]}"
        origin = origin_of_mark(node, draft)
        return [f"{origin[:1].upper()}{origin[1:]}; nothing gives it back by itself. {todo}."]
    drained = f"Steward drained it (reason {node.mark})."
    if case is None or case.step is CaseStep.HELD:
        return [drained]
    if needs_spare(case, draft):
        return [f"{drained} A spare is to serve in its place; the node itself is left to a person."]
    return [f"{drained} It returns to service after a successful repair."]


def _done_about(row: ReasonRow, node: Node, case: Case | None, draft: Draft) -> str:
    """Return what is done about Slurm's reason; empty if other lines tell that."""
    if case is not None:
        return row.response.value if case.is_of_reason and not case.waits_for_person else ""
    fault = reason_fault(node, draft)
    return "" if fault is not None and why_withheld(node, fault, draft) else response_text(row, node, draft)


def _is_unused(node: Node | None, draft: Draft) -> bool:
    """Return whether an API group has the node but no slot for it: it has no machine on purpose."""
    return node is not None and node.name not in draft.slots and belongs_to_slot(node, draft)


def _spare(name: NodeName, node: Node, draft: Draft) -> str:
    loan = loans(draft).get(name)
    if loan is not None and node.mark == SPARE:
        return f"A spare that is about to serve for {loan.instead_of}."
    if loan is not None:
        return f"A spare that serves for {loan.instead_of}; it goes back to the spares when {loan.instead_of} serves."
    if node.mark == SPARE:
        return "A spare: we keep it out of service until it must serve for a broken node of a static group."
    return "A spare; it is kept out of service as soon as it can be."


def _agent(name: NodeName, node: Node | None, draft: Draft) -> list[str]:
    view = draft.seen.agents.get(name)
    lines = [f"Agent: {_sentence(standing(node, draft).why.text, standing(node, draft).why.evidence)}"] if node else []
    if view is not None and view.incarnation is not None:
        lines.append(f"Machine: instance {view.incarnation.instance}, boot {view.incarnation.boot}.")
    return lines


def _case(case: Case, draft: Draft) -> list[str]:
    lines = [
        f"Case {case.id}, opened {ago(case.opened, draft.now)}: {case.why}",
        f"At step {case.step.value}, entered {ago(case.entered, draft.now)}.",
    ]
    if case.step is CaseStep.RELEASE and (wait := must_wait(case, draft)):
        lines.append(f"{case.node} {wait}.")
    if kept := why_kept_out(case, draft):
        lines.append(f"{case.node} was lost and is heard again, but does not serve: {kept}.")
    if case.approved is not None:
        lines.append(f"{case.approved_by} approved the repair {ago(case.approved, draft.now)}.")
    if case.is_stood_in:
        mend = f"repair {case.node}, then {return_command(case.node)}"
        lines.append(f"Spare {case.stand_in} serves in its place. For a person: {mend}; the spare then goes back.")
    elif case.stand_in:
        lines.append(f"Spare {case.stand_in} is to serve in its place.")
    if is_short := case.step is CaseStep.LAUNCH and needs_spare(case, draft) and free_spare(case, draft) is None:
        lines.append(f"The repair waits for a spare; {why_no_spare(case, draft)}.")
    if case.tries and not is_short:
        again = f"; next try {time_left(case.next_try, draft.now)}" if draft.slurm_is_fresh else ""
        lines.append(f"The provider refused {times(case.tries)}{again}.")
    node = draft.seen.nodes.get(case.node)
    limit = limit_s(case, node, draft) if node is not None else None
    return [*lines, of_case(case, limit, draft)]


def _no_case(node: Node | None, draft: Draft) -> list[str]:
    fault = fault_of(node, draft) if node else None
    if node is not None and fault is None and is_orphan(node, draft):
        return []  # `_drained_by_us` tells it
    if node is None or fault is None:
        return ["No faults found; no repair open."]
    withheld = why_withheld(node, fault, draft)
    lines = [f"Fault found: {fault.why}"]
    incident = draft.incidents.get(AGENTS)
    if incident is not None and incident.over is None and node.name in incident.nodes:
        lines.append(f"Part of an incident of the cluster: {incident.text}.")
    if withheld == SCOUTED:
        return [*lines, f"{SCOUTED[:1].upper()}{SCOUTED[1:]}."]
    if not withheld:
        coming = "about to be opened" if draft.slurm_is_fresh else "opened when Slurm can be read again"
        return [*lines, f"A case is {coming}."]
    return [*lines, *(list(_stranded((node.name,), draft)) or [f"Nothing is done about it: {withheld}."])]


def _closed(name: NodeName, memory: Memory) -> list[Case]:
    past = [case for case in memory.cases.values() if case.node == name and not case.is_open]
    return sorted(past, key=lambda c: (c.closed or 0.0, c.id), reverse=True)


def _past_case(case: Case, now: float) -> str:
    how = f"spare {case.stand_in} served" if case.stand_in else "back"
    took = f", {how} after {case.returned - case.opened:.0f} s" if case.returned is not None else ""
    return f"Earlier: case {case.id}, closed {ago(case.closed or case.entered, now)}{took}: {case.why}"


def _known_of_job(id: JobId, job: Job | None, memory: Memory, draft: Draft) -> str:
    if job is None:
        runs = memory.ledger.get(id, ())
        last = f' "{runs[-1].name}", last on {fold(runs[-1].nodes)}' if runs else ""
        return f"Job {_shown_id(id, draft)}{last}: Slurm does not know it any more."
    nodes = job.nodes.union(*(part.nodes for part in other_parts(job, draft.seen.jobs)))
    where = f" on {fold(nodes)}" if nodes else ""
    reason = f" ({job.reason})" if job.reason and job.is_pending else ""
    hides_state = job.state is JobState.UNKNOWN and job.is_completing  # as Slurm 22.05's scontrol does
    state = "COMPLETING" if hides_state else job.state.value
    return f'Job {_shown_id(id, draft)} "{job.name}": {state}{reason}{where}, {_restarts(job.restarts)}.'


def _shown_id(id: JobId, draft: Draft) -> str:
    """Return the job's number as squeue shows it; for a task of an array with the task's own: `7_2 (job 9)`."""
    shown = draft.shown_id(id)
    return shown if shown == str(id) or shown.endswith("]") else f"{shown} (job {id})"


def _restarts(count: int) -> str:
    return f"restarted {times(count)}" if count else "never restarted"


def _next_of_job(job: Job | None, mem: JobMemory, draft: Draft) -> list[str]:
    lines = []
    bad = culprits(mem, draft) & (job.excluded if job is not None and job.is_pending else frozenset())
    if bad:
        lines.append(f"The job is kept off {fold(bad)} (ExcNodeList) until it is repaired.")
    if mem.ended is not None:
        return [*lines, f"The job is over: {mem.end_text}."]
    lines += _undecided(job, mem, draft)
    lines += [*place_lines(mem, draft.now), *silence_lines(job, draft), *_left_alone(job, draft)]
    lines += _stranded(job.nodes if job is not None and job.is_active else (), draft)
    lines += _lame_steps(job, mem, draft)
    if job is not None and mem.pending_from is not None:
        lines.append(
            f"The job has waited to run again for {span(draft.now - mem.pending_from)}; {hurry(job, mem, draft)}."
        )
        lines += lack_lines(job, draft)
    if job is not None and (slow := slow_nodes(job, draft)):
        lines.append(f"{slow[:1].upper()}{slow[1:]}.")
    return [*lines, *_waiting(mem, draft)]


def _undecided(job: Job | None, mem: JobMemory, draft: Draft) -> Iterator[str]:
    """Yield how long a run that ended without a ruling may still be found to have had a fault."""
    over = end_of(mem).over
    if job is not None and job.is_over and over is not None and mem.promised is None:
        left, so_far = span(over + EVIDENCE_AFTER_S - draft.now), "and no fault explains that so far"
        found = f"one found within {left} brings it back" if draft.slurm_is_fresh else "none can be looked for now"
        yield f"Its run ended {job.state.value}, {so_far}: {found}."


def _waiting(mem: JobMemory, draft: Draft) -> Iterator[str]:
    """Yield each failure that waits for a ruling, if root or the job's own user reported it."""
    ruled = {attempt.decided_for for attempt in mem.attempts}
    for ask in draft.seen.asks:
        if ask.job == mem.id and ask.uid in (0, mem.uid) and ask.id not in ruled:
            what = f"Step {ask.step}" if ask.kind is AskKind.STEP else "The script"
            yield f"{what} failed, as {ask.node} says, and waits for a decision."


def _sentence(text: str, evidence: tuple[str, ...]) -> str:
    return text + (f" ({'; '.join(evidence)})." if evidence else ".")


def place_lines(mem: JobMemory, now: float) -> list[str]:
    """Return the lines about nodes kept for the job, and its place in the queue."""
    lines = []
    kept, raised = mem.kept, mem.raised
    if kept is not None:
        nodes = fold(kept.nodes)
        if kept.freed is None:
            lasts, end = span(now - kept.since), time_left(kept.until, now)
            lines.append(f"{nodes}: kept for it, for {lasts} now; freed {end} at the latest.")
        else:
            lines.append(f"{nodes}: kept for it until {ago(kept.freed, now)}; {kept.why}.")
    if mem.lent is not None:
        lines.append(f"Hot spares released for it {ago(mem.lent.at, now)}: {fold(mem.lent.nodes)}.")
    if raised is not None and not raised.restored:
        lines.append(f"First in the queue for {span(now - raised.at)} (nice {raised.before} -> {raised.nice}).")
    return lines


# A job's options and its resumes.

_DID = {
    Decision.RETRY: "retried inside its allocation",
    Decision.REQUEUE: "requeued",
    Decision.WAIT: "requeued, to wait until enough nodes are free",
    Decision.STOP: "not resumed",
}

_IN_PLACE = (
    "Steps run again in place, the job is not requeued: --no-requeue or requeue=0 was given (requeue=1 was not)."
)


def resume_lines(mem: JobMemory, draft: Draft, *, private: bool) -> list[str]:
    """Return the job's options, the resumes left, and each ruling with its evidence.

    `private` adds what the job printed.
    """
    lines = [_asked(mem, draft), f"In force: {', '.join(option_words(mem.mode, draft.want.resume))}."]
    if mem.stays_in_place:
        lines.append(_IN_PLACE)
    lines.extend(_step(mem, draft))
    lines.extend(_left_behind(mem, draft, private=private))
    if mem.saved is not None:
        lines.append(_progress(mem, mem.saved, draft))
    if mem.hang is not None:
        lines.append(hang_line(mem.hang, mem, draft.now))
    return lines + [line for attempt in mem.attempts for line in _attempt(attempt, draft.now, private=private)]


def _asked(mem: JobMemory, draft: Draft) -> str:
    chosen = options(mem.mode, draft.want.resume)
    how = f"--auto-resume={mem.mode.text}"
    who = f"The site's default resumes it ({how})" if mem.by_default else f"The job asked to be resumed ({how})"
    free = f", {mem.unproven} of {chosen.without_evidence} without evidence" if chosen.without_evidence else ""
    return f"{who}; {mem.resumes} of {chosen.max_resumes} resumes are used{free}."


def _step(mem: JobMemory, draft: Draft) -> Iterator[str]:
    """Yield the newest step that a node of this run reported."""
    told = progress_of(mem.id, mem.nodes, draft, restart=mem.restarts)
    newest = max((p for p in told if p.step is not None), key=lambda p: p.stepped or 0.0, default=None)
    if newest is not None and newest.stepped is not None:
        yield f"Last reported step: {newest.step} ({ago(newest.stepped, draft.now)}, on {newest.node})."


def _left_behind(mem: JobMemory, draft: Draft, *, private: bool) -> Iterator[str]:
    """Yield what earlier attempts left behind: it may hold a port, a lock or memory that this attempt needs."""
    words = (word for word in draft.seen.opted_in if (word.job, word.restart) == (mem.id, mem.restarts) and word.left)
    for word in words if private else ():
        if word.uid == mem.uid:
            yield f"Earlier attempts had left processes running when this one began: {word.left}."


def _progress(mem: JobMemory, saved: Saved, draft: Draft) -> str:
    at = f" of step {saved.step}" if saved.step is not None else ""
    since = f", saved {ago(saved.at, draft.now)}" if saved.at is not None else ""
    limit = options(mem.mode, draft.want.resume).stalls
    stalled = f" Resumes in a row without a new one: {count_stalls(mem)} of {limit}." if mem.resumes else ""
    return f"Its newest checkpoint: {saved.path or 'one'}{at}{since}.{stalled}"


def _attempt(attempt: Attempt, now: float, *, private: bool) -> Iterator[str]:
    is_left = attempt.decision is Decision.STOP and attempt.requeued is not None
    did = "left to Slurm, which had put it back into the queue" if is_left else _DID[attempt.decision]
    of = f" ({attempt.what} failed)" if attempt.what else ""
    yield f"{ago(attempt.at, now)}: {did}{of}: {attempt.why.text} [{attempt.why.rule}]."
    for fact in attempt.why.evidence:
        yield f"  because {fact}"
    for text in attempt.lines if private else ():
        yield f"  it printed: {text}"
    if attempt.lines and not private:
        yield "  what it printed is shown to its user and to admins: run `steward explain` as one of them"
    if attempt.running is not None:
        yield f"  it ran again {attempt.running - attempt.at:.1f} s later"


_GOES_ON_S = 10.0
"""If a task ended badly this long ago and no end of its step was reported, the step seems to go on."""


def _lame_steps(job: Job | None, mem: JobMemory, draft: Draft) -> Iterator[str]:
    """Yield the first bad task in a step of this run that seems to go on: srun ends such a step only if asked to."""
    if job is None or not job.is_active or any(ask.job == mem.id for ask in draft.seen.asks):
        return
    answered = max((a.at for a in mem.attempts if a.restart == mem.restarts), default=float("-inf"))
    views = (draft.seen.agents[node] for node in job.nodes if node in draft.seen.agents)
    told = (exit for view in views for exit in view.exits if exit.job == mem.id and exit.restart == mem.restarts)
    lame = [exit for exit in told if answered < exit.at < draft.now - _GOES_ON_S]
    if first := min(lame, key=lambda exit: (exit.at, exit.task), default=None):
        signal, code = first.status & 0x7F, first.status >> 8 & 0xFF
        how = f"by signal {signal}" if signal else f"with exit code {code}"
        text = f"Task {first.task} of step {first.step} on {first.node} ended {how} {ago(first.at, draft.now)}"
        yield f"{text}, and no end of its step was told: `srun --kill-on-bad-exit` ends a step at its first bad task."


def silence_lines(job: Job | None, draft: Draft) -> list[str]:
    """Return why those nodes of the job that fell silent with many others are not judged yet."""
    incident = open_silence(draft)
    silent = sorted(incident.fate_unknown & job.nodes) if incident is not None and job is not None else []
    return [f"{fold(silent)} fell silent together with others: {incident.text}."] if silent and incident else []


def _left_alone(job: Job | None, draft: Draft) -> Iterator[str]:
    """Yield a line for each silent node of the running job that Slurm shows as away on purpose."""
    for name in sorted(job.nodes) if job is not None and job.is_active else ():
        node, view = draft.seen.nodes.get(name), draft.seen.agents.get(name)
        if node is not None and is_away_on_purpose(node) and view is not None and not view.is_heard:
            word = ", ".join(sorted(PLANNED_ABSENCE & node.flags))
            yield f"{name} is silent, and Slurm has it {word}: nothing is done for the job until Slurm finds it DOWN."


def _stranded(nodes: Iterable[NodeName], draft: Draft) -> Iterator[str]:
    """Yield a line for each lost node that is not taken out although jobs run on it, with what brings them back."""
    for name in sorted(nodes):
        node, is_used = draft.seen.nodes.get(name), name in draft.overview.running_on
        if node is None or not is_used or node.is_down or standing(node, draft).standing is not Standing.LOST:
            continue
        fault = fault_of(node, draft)
        if draft.cases.open_of(name) is not None or fault is None or is_in_incident(node, fault, draft):
            continue
        if withheld := why_withheld(node, fault, draft):
            jobs = "A job that runs on it comes back when Slurm sets it DOWN (after SlurmdTimeout)"
            now = f"`scontrol update nodename={name} state=down reason=lost` does that now"
            yield f"{name} is lost, and nothing is done about it: {withheld}. {jobs}; {now}."


def hurry(job: Job, mem: JobMemory, draft: Draft) -> str:
    """Return what makes the job run soon, or why it must wait."""
    if job.is_held:
        return f"it {hold_text(job, draft)}: it stays where it is until it is released"
    if begins_later(job, draft):
        return f"it {BEGINS_LATER}: it is left alone until then"
    if is_left_unbegun(mem):
        return f"it {UNBEGUN}: it is left to Slurm's own delay"
    if is_left_to_slurm(mem):
        return "it is left to Slurm"
    if not draft.slurm_is_fresh:
        return f"it is not hurried on while {UNREAD}"
    at = not_before(mem, draft)
    if at > draft.now:
        return f"after so many resumes it is hurried on only {time_left(at, draft.now)}"
    return f"nudged {times(mem.nudges)}" if mem.nudges else "not nudged yet"
