"""A failure of a job, with everything that may bear on what is done about it: gathered here, judged in decide.py."""

import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from steward.model.ask import Ask, AskKind
from steward.model.ids import NodeName
from steward.model.job import SLURMS_HOLDS, Job, JobState
from steward.model.job_report import GRES_LOST, Lean, LogSign, TaskExit
from steward.model.resume import Attempt, Decision, JobMemory
from steward.policy.draft import Draft
from steward.policy.job.evidence import Evidence, Reach, evidence
from steward.policy.job.exclude import bad_company, is_short_without, users
from steward.policy.job.options import Options, options
from steward.policy.job.reach import CAUSE_S, nodes_of, of_run, of_script, of_step

BY_MACHINE = frozenset({JobState.NODE_FAIL, JobState.BOOT_FAIL})
"""Ends that are evidence by themselves."""
LAUNCH_FAILED = "JobLaunchFailure"
MACHINE_REASONS = frozenset({"NodeDown", LAUNCH_FAILED, "SystemFailure", "BurstBufferOperation"}) | SLURMS_HOLDS
"""Slurm's reasons that are."""
NO_LAUNCH = 1
"""The wait status that Slurm gives a job that it could not launch."""
KILLS = frozenset({signal.SIGTERM, signal.SIGKILL})
"""The signals that scancel sends."""
OUT_OF_MEMORY = 125
"""Slurm's own signal number for a task that the memory cgroup ended (SIG_OOM, as it fits into a wait status)."""

MOST_SIGNALS = 64


class FailureSource(Enum):
    """How a failure came to be known."""

    STEP = "step"
    """An srun inside the allocation failed, and its supervisor waits."""
    BATCH = "batch"
    """The batch script failed and is held at exit."""
    ENDED = "ended"
    """Slurm ended the job, and nobody could be asked."""
    REQUEUED = "requeued"
    """Slurm put it back into the queue by itself."""
    NO_SCRIPT = "no script"
    """The job runs on without its batch host."""
    HANG = "hang"
    """The job runs and does nothing any more."""


AT_ONCE_S = 2.0
"""A script that ends so soon after a task ended because of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """`status` is the raw wait status of what failed, `exits` of its tasks that ended badly, where they are known.

    `state` and `reason` are Slurm's. `evidence` speaks against nodes of the run and was not used for a retry yet.
    `age_s` is None where its start is not known, or seems to be to come (the clock was set back).
    `stalls` counts the resumes in a row that brought no newer checkpoint (0 where none is known).
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
    """A resume was counted for the same fault already: a retry that brought nothing."""
    unproven: int = 0
    stalls: int = 0
    is_batch: bool = True
    stays_in_place: bool = False
    """The job's user does not want it requeued."""
    own_wish: bool = False
    """Of a step: its own srun asked to be resumed, and not only its job."""
    input_gone: bool = False
    """What the step read through a pipe cannot be given to it again."""
    may_retry: bool = False
    """A retry in place has what it needs: its input, its host, and a try before that was no flop."""
    gave_way: str = ""
    """Why this run had to give way to another job, where it had: then no node is to blame."""
    short: bool = False
    """Without the culprits there are not enough usable idle nodes for a new run."""

    @property
    def is_cut_short(self) -> bool:
        """Whether it ended well because a host of its was being shut down, as a script does that saves and ends; or its
        script never began."""
        return self.state is JobState.COMPLETED and any(item.voids_success for item in self.evidence)

    @property
    def culprits(self) -> frozenset[NodeName]:
        return blamed(self.evidence)

    @property
    def codes(self) -> frozenset[int]:
        """Exit codes of what failed and of its tasks."""
        return frozenset(status >> 8 & 0xFF for status in self.statuses if not status & 0x7F) - {0}

    @property
    def statuses(self) -> frozenset[int]:
        return frozenset({self.status, *(exit.status for exit in self.exits)})

    @property
    def is_machines(self) -> bool:
        """Slurm itself names the machines as the cause."""
        if self.reason == LAUNCH_FAILED and self.status not in (0, NO_LAUNCH):
            return False  # it was launched: 22.05 says this of every script that a signal ended
        return self.state in BY_MACHINE or self.reason in MACHINE_REASONS or self.kind is FailureSource.NO_SCRIPT

    @property
    def was_killed(self) -> bool:
        """Slurm says that a signal as scancel sends it ended every task that is known of, or else the whole.

        srun ends with the highest status of its tasks, and one bad task makes it kill the others: so the tasks count.
        128 + signal is a signal only where srun said it: programs and shells choose such codes themselves.
        """
        if self.exits:
            return all(exit.status & 0x7F in KILLS for exit in self.exits)
        return (ended_by(self.status) if self.kind is FailureSource.STEP else self.status & 0x7F) in KILLS

    @property
    def ran_out_of_memory(self) -> bool:
        return self.state is JobState.OUT_OF_MEMORY or any(ended_by(s) == OUT_OF_MEMORY for s in self.statuses)

    def sign(self, lean: Lean) -> LogSign | None:
        """The first line of the log that speaks for it strongly."""
        strong = [sign for sign in self.signs if sign.lean is lean and sign.strong]
        return min(strong, key=lambda sign: (sign.order, sign.sign, sign.line), default=None)


def blamed(found: Iterable[Evidence]) -> frozenset[NodeName]:
    return frozenset(item.node for item in found if item.blames)


def ended_by(status: int) -> int:
    """The signal in a raw wait status, also one that a shell or srun told as 128 + signal; 0: none."""
    told = (status >> 8 & 0xFF) - 128
    return status & 0x7F or (told if 0 < told <= MOST_SIGNALS or told == OUT_OF_MEMORY else 0)


def asked(
    ask: Ask, job: Job, mem: JobMemory, failed_at: float, draft: Draft, *, known: tuple[Evidence, ...] = ()
) -> Failure:
    """The failure that a waiting shim asks about. `known` is evidence as well."""
    kind = FailureSource.STEP if ask.kind is AskKind.STEP else FailureSource.BATCH
    exits = _exits(ask, mem, failed_at, draft)
    if kind is FailureSource.STEP:
        is_flop = ask.attempt > 1 and _is_flop(mem, failed_at, draft)
        reach = of_step(ask, job, mem, failed_at, last_retry(mem) if is_flop else None)
        found = _not_used_up(_against(reach, mem, failed_at, draft), ask, mem, failed_at, draft)
    else:
        reach = of_script(job, mem, failed_at, exits, draft)
        found = _unanswered(_against(reach, mem, failed_at, draft), mem)
        exits = _passed_on(exits, ask.status, failed_at)
    if text := _broken_by_slurm(ask, mem):
        found = (*found, Evidence(node=ask.node, text=f"{ask.node}: {text}", at=failed_at, blames=False))
    found = (*known, *found)
    bad = blamed(found)
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
    """How Slurm broke this launch, if it did; no node is to blame."""
    if ask.script_gone:
        return "Slurm had lost the script there before it began"
    # 22.05 forgets them when several of a job's nodes are lost at once. A first run may ask for what there is not.
    if mem.resumes and any(sign.sign == GRES_LOST for sign in ask.signs):
        return "Slurm's record of the job's devices was broken when it began anew"
    return ""


def told(
    kind: FailureSource, job: Job, mem: JobMemory, failed_at: float, draft: Draft, *, known: tuple[Evidence, ...] = ()
) -> Failure:
    """The failure that Slurm's picture (or a job that hangs) tells of; nobody waits for an answer. `known` is evidence
    as well."""
    ended_by_script = kind is FailureSource.ENDED and job.state is JobState.FAILED and was_asked(mem)
    reach = of_script(job, mem, failed_at, (), draft) if ended_by_script else of_run(job, mem)
    found = (*known, *_against(reach, mem, failed_at, draft))
    if ended_by_script or not _is_flop(mem, failed_at, draft):
        found = _unanswered(found, mem)
    status = job.exit_status if kind is FailureSource.ENDED else 0
    return _failure(kind, job, mem, failed_at, found, draft, status=status)


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
    ask: Ask | None = None,
) -> Failure:
    own_wish = ask is not None and ask.own and kind is FailureSource.STEP
    mode = ask.mode if ask is not None and own_wish else mem.mode
    chosen, gave_way = options(mode, draft.want.resume), draft.quota_jobs.gave_way(job.id, mem.restarts)
    found = () if gave_way else found
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
        is_counted=bool(found) and _is_same_fault(kind, blamed(found), mem, failed_at, draft),
        unproven=mem.unproven,
        stalls=stalls(mem),
        is_batch=job.is_batch,
        stays_in_place=mem.stays_in_place,
        may_retry=may_retry,
        own_wish=own_wish,
        input_gone=ask is not None and not ask.replay,
        gave_way=gave_way,
        short=is_short_without(blamed(found), job, mem, draft),
    )


def _against(reach: Reach, mem: JobMemory, failed_at: float, draft: Draft) -> tuple[Evidence, ...]:
    company = bad_company(mem.uid, failed_at, draft)
    others = (_beside(node, company[node]) for node in sorted(reach.held & company.keys()))
    return (*evidence(reach, mem, failed_at, draft), *others)


def _beside(node: NodeName, jobs: Sequence[Job]) -> Evidence:
    ids = ", ".join(str(job.id) for job in jobs[:5])
    at = max(job.ended or 0.0 for job in jobs)
    return Evidence(node=node, text=f"{node}: jobs of {users(jobs)} other users failed on it, too ({ids})", at=at)


def _not_used_up(
    found: tuple[Evidence, ...], ask: Ask, mem: JobMemory, failed_at: float, draft: Draft
) -> tuple[Evidence, ...]:
    """Evidence that no retry of this step was given for yet; a retry that failed at once did not do it justice. Another
    step that ran beside it was hit by the same fault, where its nodes are known."""
    retried = last_retry(mem)
    is_first = ask.attempt <= 1 and bool(nodes_of(ask, mem))
    if retried is None or is_first or _is_flop(mem, failed_at, draft):
        return found
    return tuple(item for item in found if item.at > retried.at)


def _unanswered(found: tuple[Evidence, ...], mem: JobMemory) -> tuple[Evidence, ...]:
    """Evidence that no retry of this run was given for: the step that it hit went on. What a node that left has to say
    is seen only when it has left."""
    retried = [a for a in mem.attempts if a.decision is Decision.RETRY and a.restart == mem.restarts]
    left = {one.node for one in mem.taken_out}
    gone = {node for a in retried for node in a.culprits if node in left}
    last = max((a.at for a in retried), default=0.0)
    return tuple(item for item in found if item.node not in gone and (item.at > last or not _answers(retried, item)))


def _answers(retried: Sequence[Attempt], item: Evidence) -> bool:
    return any(item.node in a.culprits or not item.blames for a in retried)


def _is_flop(mem: JobMemory, failed_at: float, draft: Draft) -> bool:
    """Whether this failure follows so soon after a retry that the retry brought nothing."""
    retried = last_retry(mem)
    return retried is not None and failed_at <= retried.at + draft.want.resume.retry_proof_s


def _is_same_fault(
    kind: FailureSource, culprits: frozenset[NodeName], mem: JobMemory, failed_at: float, draft: Draft
) -> bool:
    """Whether a resume was counted for this already: a retry that had no time to prove itself, or one of another step
    that was hit by the same fault. One fault costs one resume."""
    counted = [a for a in mem.attempts if a.restart == mem.restarts and a.counted and a.decision is Decision.RETRY]
    if not counted or failed_at > counted[-1].at + draft.want.resume.retry_proof_s:
        return False
    return kind is not FailureSource.STEP or culprits <= counted[-1].culprits


def was_asked(mem: JobMemory) -> bool:
    """Whether the script of the present run asked when it failed, and was told to stop."""
    return any(a.restart == mem.restarts and a.final and a.open and not a.step for a in mem.attempts)


def last_retry(mem: JobMemory) -> Attempt | None:
    """The last retry in place of the present run."""
    retries = [a for a in mem.attempts if a.decision is Decision.RETRY and a.restart == mem.restarts]
    return retries[-1] if retries else None


def may_retry(ask: Ask, job: Job, mem: JobMemory, bad: frozenset[NodeName], failed_at: float, draft: Draft) -> bool:
    """Enough nodes may be left (the step's own need is unknown: srun finds out), and the last retry was no flop."""
    flop = ask.attempt > 1 and _is_flop(mem, failed_at, draft)
    in_place = job.batch_host not in bad and ask.node not in bad
    still_in = any(n in draft.seen.nodes and draft.seen.nodes[n].is_schedulable for n in bad & job.nodes)
    return ask.replay and not flop and in_place and bool(job.nodes - bad) and not (still_in or bad & mem.parts)


def _exits(ask: Ask, mem: JobMemory, failed_at: float, draft: Draft) -> tuple[TaskExit, ...]:
    """Tasks of what failed: those of the step, or of any step that ended shortly before the script."""
    retried = last_retry(mem)
    since = max(failed_at - CAUSE_S, retried.at if retried else 0.0)
    views = (draft.seen.agents[node] for node in mem.nodes | mem.parts if node in draft.seen.agents)
    told = {exit for view in views for exit in view.exits if exit.job == ask.job}
    mine = [e for e in told if e.restart == mem.restarts and (ask.kind is AskKind.BATCH or e.step == ask.step)]
    return tuple(sorted((e for e in mine if e.at >= since), key=lambda e: (e.at, e.step, e.node, e.task)))


def _passed_on(exits: tuple[TaskExit, ...], status: int, failed_at: float) -> tuple[TaskExit, ...]:
    """Return those that explain how the script ended: it ended at once, or with the same code. Any other step's end was
    handled by the script, which went on."""
    own = _as_code(status)
    return tuple(exit for exit in exits if exit.at >= failed_at - AT_ONCE_S or _as_code(exit.status) == own)


def _as_code(status: int) -> int:
    """Return the exit code of a raw wait status, of a signal as srun and shells tell it."""
    return 128 + number if (number := status & 0x7F) else status >> 8 & 0xFF


def stalls(mem: JobMemory) -> int:
    """Resumes in a row, up to now, after which no newer checkpoint came; 0 where checkpoints are not known."""
    newest, count = mem.saved, 0
    for attempt in reversed(mem.attempts):
        if attempt.decision is Decision.STOP:
            continue
        if newest is None or attempt.saved is None or newest.is_newer_than(attempt.saved):
            return count
        newest, count = attempt.saved, count + 1
    return count
