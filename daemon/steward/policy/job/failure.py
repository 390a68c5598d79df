"""A failure of a job, with everything that bears on the ruling: gathered here, judged in decide.py."""

import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from steward.model.ask import Ask, AskKind
from steward.model.ids import NodeName
from steward.model.job import SLURMS_HOLDS, Job, JobState
from steward.model.job_report import AT_ONCE_S, GRES_LOST, Lean, LogSign, TaskExit, exit_code
from steward.model.resume import Attempt, Decision, JobMemory
from steward.policy.draft import Draft
from steward.policy.facts.blame import count_users, nodes_failing_other_users
from steward.policy.facts.told_to_save import told_to_save
from steward.policy.job.evidence import Evidence, Reach, evidence
from steward.policy.job.exclude import is_short_without
from steward.policy.job.odd_ranks import evidence_of_odd_ranks
from steward.policy.job.options import Options, options
from steward.policy.job.reach import CAUSE_S, nodes_of, of_run, of_script, of_step

BY_MACHINE = frozenset({JobState.NODE_FAIL, JobState.BOOT_FAIL})
"""States of a job that are evidence by themselves."""
LAUNCH_FAILED = "JobLaunchFailure"
MACHINE_REASONS = frozenset({"NodeDown", LAUNCH_FAILED, "SystemFailure", "BurstBufferOperation"}) | SLURMS_HOLDS
"""Slurm's reasons that are evidence by themselves."""
NO_LAUNCH = 1
"""The wait status that Slurm gives a job that it could not launch."""
KILLS = frozenset({signal.SIGTERM, signal.SIGKILL})
"""The signals that scancel sends."""
OUT_OF_MEMORY = 125
"""Slurm's own signal number for a task that the memory cgroup ended (SIG_OOM, as it fits into a wait status)."""

RETRY_PROOF_S = 30.0
"""A retry that fails sooner is not repeated: the job is requeued."""
MOST_SIGNALS = 64


class FailureSource(Enum):
    """The way in which a failure became known."""

    STEP = "step"
    """An srun inside the allocation failed, and its supervisor waits for an answer."""
    BATCH = "batch"
    """The batch script failed and is held at its exit."""
    ENDED = "ended"
    """Slurm ended the job, and no shim waits."""
    REQUEUED = "requeued"
    """Slurm requeued the job by itself."""
    NO_SCRIPT = "no script"
    """The job runs on without its script."""
    HANG = "hang"
    """The job runs and makes no progress."""


_OF_SCRIPT = (FailureSource.BATCH, FailureSource.ENDED)
"""The ends of whole runs; after a step's end, the script decides what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure of a job, with the facts that the rules use.

    `status` is the raw wait status of the failed step or script; `exits` are its failed tasks, if known. `state` and
    `reason` are Slurm's. `evidence` has no facts for which the job was retried already. `age_s` is the time since the
    start or the last retry; None if the start is unknown or in the future (slurmctld's clock is ahead). `stalls` counts
    the resumes in a row without a newer checkpoint (0 if no checkpoint is known).
    """

    kind: FailureSource
    options: Options
    state: JobState
    reason: str = ""
    status: int = 0
    exits: tuple[TaskExit, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    signs: tuple[LogSign, ...] = ()
    age_s: float | None = None
    resumes: int = 0
    is_counted: bool = False
    """A resume was counted for the same fault already: a retry that failed at once."""
    unproven: int = 0
    stalls: int = 0
    is_batch: bool = True
    had_asked: bool = False
    """The run ended by its script, whose shim had asked before and was told to stop: the script was launched."""
    stays_in_place: bool = False
    """The job's user does not want it requeued."""
    own_wish: bool = False
    """The failed step's own srun asked to be resumed, not only its job."""
    input_gone: bool = False
    """The step's input came through a pipe and cannot be repeated."""
    may_retry: bool = False
    """A retry in place has its input and its host, and the last retry did not fail at once."""
    was_evicted: str = ""
    """Why this run was evicted for another job, so that no node is to blame; empty if it was not evicted."""
    told_to_save: str = ""
    """Why Steward told this run to save its state, which may have ended its script; empty if Steward did not."""
    short: bool = False
    """Without the culprits there are not enough usable idle nodes for a new run."""

    @property
    def is_cut_short(self) -> bool:
        """Return whether the job is COMPLETED though its host was being shut down or its script never began."""
        return self.state is JobState.COMPLETED and any(item.voids_success for item in self.evidence)

    @property
    def culprits(self) -> frozenset[NodeName]:
        """Return the nodes that the evidence blames."""
        return blamed_nodes(self.evidence)

    @property
    def codes(self) -> frozenset[int]:
        """Return the exit codes of the failed step or script and of its tasks."""
        return frozenset(status >> 8 & 0xFF for status in self.statuses if not status & 0x7F) - {0}

    @property
    def statuses(self) -> frozenset[int]:
        """Return the raw wait statuses of the failed step or script and of its tasks."""
        return frozenset({self.status, *(exit.status for exit in self.exits)})

    @property
    def is_machines(self) -> bool:
        """Return whether Slurm itself names the machines as the cause."""
        # 22.05 gives this reason for every script that a signal ended; SIGHUP's status is the one of a failed launch
        if self.reason == LAUNCH_FAILED and (self.had_asked or self.status not in (0, NO_LAUNCH)):
            return False
        return self.state in BY_MACHINE or self.reason in MACHINE_REASONS or self.kind is FailureSource.NO_SCRIPT

    @property
    def was_killed(self) -> bool:
        """Return whether a signal that scancel sends ended every known task; without tasks, the step or script."""
        # the tasks count first: srun ends with the highest status of its tasks, and kills the others after one failed.
        # 128 + signal means a signal only in srun's own status: programs and shells choose such codes themselves.
        if self.exits:
            return all(exit.status & 0x7F in KILLS for exit in self.exits)
        return (ended_by(self.status) if self.kind is FailureSource.STEP else self.status & 0x7F) in KILLS

    @property
    def ran_out_of_memory(self) -> bool:
        """Return whether the job used more memory than it had asked for."""
        return self.state is JobState.OUT_OF_MEMORY or any(ended_by(s) == OUT_OF_MEMORY for s in self.statuses)

    def sign(self, lean: Lean) -> LogSign | None:
        """Return the first line of the log that strongly supports `lean`; None if there is none."""
        strong = [sign for sign in self.signs if sign.lean is lean and sign.strong]
        return min(strong, key=lambda sign: (sign.order, sign.sign, sign.line), default=None)


def blamed_nodes(found: Iterable[Evidence]) -> frozenset[NodeName]:
    """Return the nodes that the evidence blames."""
    return frozenset(item.node for item in found if item.blames)


def ended_by(status: int) -> int:
    """Return the signal in a raw wait status, including one reported as exit code 128 + signal; 0 for none."""
    told = (status >> 8 & 0xFF) - 128
    return status & 0x7F or (told if 0 < told <= MOST_SIGNALS or told == OUT_OF_MEMORY else 0)


def failure_of_ask(
    ask: Ask, job: Job, mem: JobMemory, failed_at: float, draft: Draft, *, known: tuple[Evidence, ...] = ()
) -> Failure:
    """Return the failure that a waiting shim asks about; `known` is further evidence."""
    kind = FailureSource.STEP if ask.kind is AskKind.STEP else FailureSource.BATCH
    exits = _exits(ask, mem, failed_at, draft)
    if kind is FailureSource.STEP:
        failed_at_once = ask.attempt > 1 and _failed_at_once(mem, failed_at, draft)
        reach = of_step(ask, job, mem, failed_at, last_retry(mem) if failed_at_once else None)
        found = _unanswered_for_step(_against(reach, mem, failed_at, draft), ask, mem, failed_at, draft)
    else:
        reach = of_script(job, mem, failed_at, exits, draft)
        found = _unanswered_for_run(_against(reach, mem, failed_at, draft), mem)
        exits = _that_explain_script(exits, ask.status, failed_at)
    if text := _broken_by_slurm(ask, mem):
        found = (*found, Evidence(node=ask.node, text=f"{ask.node}: {text}", at=failed_at, blames=False))
    found = (*known, *found, *evidence_of_odd_ranks(reach, mem, failed_at))
    bad = blamed_nodes(found)
    return _failure(
        kind,
        job,
        mem,
        failed_at,
        found,
        draft,
        status=ask.status,
        exits=exits,
        signs=ask.signs,
        may_retry=kind is FailureSource.STEP and may_retry(ask, job, mem, bad, failed_at, draft),
        ask=ask,
    )


def _broken_by_slurm(ask: Ask, mem: JobMemory) -> str:
    """Return how Slurm broke this launch without a fault of a node; empty if Slurm did not."""
    if ask.script_gone:
        return "Slurm had lost the script there before it began"
    # 22.05 loses the record when several of a job's nodes are lost at once; in a first run, the job may have asked for
    # devices that do not exist
    if mem.resumes and any(sign.sign == GRES_LOST for sign in ask.signs):
        return "Slurm's record of the job's devices was broken when it began anew"
    return ""


def failure_without_ask(
    kind: FailureSource, job: Job, mem: JobMemory, failed_at: float, draft: Draft, *, known: tuple[Evidence, ...] = ()
) -> Failure:
    """Return the failure that Slurm's picture or a hang shows, with no shim waiting; `known` is further evidence."""
    ended_by_script = kind is FailureSource.ENDED and job.state is JobState.FAILED and was_asked(mem)
    reach = of_script(job, mem, failed_at, (), draft) if ended_by_script else of_run(job, mem)
    found = (*known, *_against(reach, mem, failed_at, draft))
    if kind is not FailureSource.HANG:
        found = (*found, *evidence_of_odd_ranks(reach, mem, failed_at))
    if ended_by_script or not _failed_at_once(mem, failed_at, draft):
        found = _unanswered_for_run(found, mem)
    status = job.exit_status if kind is FailureSource.ENDED else 0
    return _failure(kind, job, mem, failed_at, found, draft, status=status, had_asked=ended_by_script)


def _failure(
    kind: FailureSource,
    job: Job,
    mem: JobMemory,
    failed_at: float,
    found: tuple[Evidence, ...],
    draft: Draft,
    *,
    status: int,
    exits: tuple[TaskExit, ...] = (),
    signs: tuple[LogSign, ...] = (),
    may_retry: bool = False,
    had_asked: bool = False,
    ask: Ask | None = None,
) -> Failure:
    """Return the failure with the job's options, budget and memory."""
    own_wish = ask is not None and ask.own and kind is FailureSource.STEP
    mode = ask.mode if ask is not None and own_wish else mem.mode
    chosen, was_evicted = options(mode, draft.want.resume), draft.quota_jobs.was_evicted(job.id, mem.restarts)
    found = () if was_evicted else found
    retried = last_retry(mem)
    since = max((at for at in (mem.started, retried.at if retried else None) if at is not None), default=None)
    return Failure(
        kind=kind,
        options=chosen,
        state=job.state,
        reason=job.reason if kind in (FailureSource.ENDED, FailureSource.REQUEUED) else "",
        status=status,
        exits=exits,
        evidence=found,
        signs=signs,
        age_s=None if since is None or since > failed_at else failed_at - since,
        resumes=mem.resumes,
        is_counted=bool(found) and _is_same_fault(kind, blamed_nodes(found), mem, failed_at, draft),
        unproven=mem.unproven,
        stalls=count_stalls(mem),
        is_batch=job.is_batch,
        had_asked=had_asked,
        stays_in_place=mem.stays_in_place,
        may_retry=may_retry,
        own_wish=own_wish,
        input_gone=ask is not None and not ask.replay,
        was_evicted=was_evicted,
        told_to_save=told_to_save(job, mem, failed_at, draft) if kind in _OF_SCRIPT else "",
        short=is_short_without(blamed_nodes(found), job, mem, draft),
    )


def _against(reach: Reach, mem: JobMemory, failed_at: float, draft: Draft) -> tuple[Evidence, ...]:
    """Return the evidence against the nodes in reach, including failures of other users' jobs there."""
    company = nodes_failing_other_users(mem.uid, failed_at, draft)
    others = (_failed_for_others(node, company[node]) for node in sorted(reach.held & company.keys()))
    return (*evidence(reach, mem, failed_at, draft), *others)


def _failed_for_others(node: NodeName, jobs: Sequence[Job]) -> Evidence:
    """Return the evidence that other users' jobs failed on the node."""
    ids = ", ".join(job.shown_id for job in jobs[:5])
    at = max(job.ended or 0.0 for job in jobs)
    return Evidence(node=node, text=f"{node}: jobs of {count_users(jobs)} other users failed on it, too ({ids})", at=at)


def _unanswered_for_step(
    found: tuple[Evidence, ...], ask: Ask, mem: JobMemory, failed_at: float, draft: Draft
) -> tuple[Evidence, ...]:
    """Return the evidence for which this step was not retried yet."""
    retried = last_retry(mem)
    # the same fault may hit another step that ran at the same time; a retry that failed at once did not use up the
    # evidence
    is_first = ask.attempt <= 1 and bool(nodes_of(ask, mem))
    if retried is None or is_first or _failed_at_once(mem, failed_at, draft):
        return found
    return tuple(item for item in found if item.at > retried.at)


def _unanswered_for_run(found: tuple[Evidence, ...], mem: JobMemory) -> tuple[Evidence, ...]:
    """Return the evidence for which this run was not retried yet."""
    # a step that was retried for older evidence went on
    retried = [a for a in mem.attempts if a.decision is Decision.RETRY and a.restart == mem.restarts]
    left = {one.node for one in mem.taken_out}
    # the fault of a node that left the job is seen only after it left: `item.at` may be later than the retry
    gone = {node for a in retried for node in a.culprits if node in left}
    last = max((a.at for a in retried), default=0.0)
    return tuple(item for item in found if item.node not in gone and (item.at > last or not _answers(retried, item)))


def _answers(retried: Sequence[Attempt], item: Evidence) -> bool:
    """Return whether one of the retries was made for this evidence."""
    return any(item.node in a.culprits or not item.blames for a in retried)


def _failed_at_once(mem: JobMemory, failed_at: float, draft: Draft) -> bool:
    """Return whether the last retry failed within `RETRY_PROOF_S`."""
    retried = last_retry(mem)
    return retried is not None and failed_at <= retried.at + RETRY_PROOF_S


def _is_same_fault(
    kind: FailureSource, culprits: frozenset[NodeName], mem: JobMemory, failed_at: float, draft: Draft
) -> bool:
    """Return whether a resume was charged for this fault already: one fault costs one resume."""
    # it was charged for a retry that failed at once, or for another step that the same fault hit
    counted = [a for a in mem.attempts if a.restart == mem.restarts and a.counted and a.decision is Decision.RETRY]
    if not counted or failed_at > counted[-1].at + RETRY_PROOF_S:
        return False
    return kind is not FailureSource.STEP or culprits <= counted[-1].culprits


def was_asked(mem: JobMemory) -> bool:
    """Return whether the script of the present run asked when it failed, and was told to stop."""
    return any(a.restart == mem.restarts and a.final and a.open and not a.step for a in mem.attempts)


def last_retry(mem: JobMemory) -> Attempt | None:
    """Return the last retry in place of the present run; None if there is none."""
    retries = [a for a in mem.attempts if a.decision is Decision.RETRY and a.restart == mem.restarts]
    return retries[-1] if retries else None


def may_retry(ask: Ask, job: Job, mem: JobMemory, bad: frozenset[NodeName], failed_at: float, draft: Draft) -> bool:
    """Return whether the step can run again in place: it can be repeated, and no bad node is still in service."""
    # how many nodes the step needs is unknown here: srun finds out
    in_vain = ask.attempt > 1 and _failed_at_once(mem, failed_at, draft)
    in_place = job.batch_host not in bad and ask.node not in bad
    still_in = any(n in draft.seen.nodes and draft.seen.nodes[n].is_schedulable for n in bad & job.nodes)
    return ask.replay and not in_vain and in_place and bool(job.nodes - bad) and not (still_in or bad & mem.parts)


def _exits(ask: Ask, mem: JobMemory, failed_at: float, draft: Draft) -> tuple[TaskExit, ...]:
    """Return the failed tasks: those of the step, or of any step that ended shortly before the script."""
    retried = last_retry(mem)
    since = max(failed_at - CAUSE_S, retried.at if retried else 0.0)
    views = (draft.seen.agents[node] for node in mem.nodes | mem.parts if node in draft.seen.agents)
    told = {exit for view in views for exit in view.exits if exit.job == ask.job}
    mine = [e for e in told if e.restart == mem.restarts and (ask.kind is AskKind.BATCH or e.step == ask.step)]
    return tuple(sorted((e for e in mine if e.at >= since), key=lambda e: (e.at, e.step, e.node, e.task)))


def _that_explain_script(exits: tuple[TaskExit, ...], status: int, failed_at: float) -> tuple[TaskExit, ...]:
    """Return the failed tasks that explain the script's end: just before it, or with the script's own exit code."""
    # the script handled the end of every other step, and went on
    own = exit_code(status)
    return tuple(exit for exit in exits if exit.at >= failed_at - AT_ONCE_S or exit_code(exit.status) == own)


def count_stalls(mem: JobMemory) -> int:
    """Return how many resumes in a row brought no newer checkpoint; 0 if no checkpoint is known."""
    newest, count = mem.saved, 0
    for attempt in reversed(mem.attempts):
        if attempt.decision is Decision.STOP:
            continue
        if newest is None or attempt.saved is None or newest.is_newer_than(attempt.saved):
            return count
        newest, count = attempt.saved, count + 1
    return count
