"""Actions on jobs and elastic runs, and answers to those who wait for one about a job."""

from dataclasses import dataclass

from steward.model.ask import Answer
from steward.model.ids import AskId, JobId, NodeName
from steward.model.why import BaseAction


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeueJob(BaseAction):
    """Requeue: `exclude` is the job's whole exclude list after this (the user's own and the culprits). `restart` is the
    restart count of the run that it is about: it ends no later one. `told_at`: a run that ended well is put back, too,
    unless it ended before it was told to make room (Unix s); None: such a run is over."""

    job: JobId
    restart: int = 0
    exclude: frozenset[NodeName] = frozenset()
    told_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeJob(BaseAction):
    """Make a requeued job eligible in `delay_s`; `release` lifts Slurm's own hold; the rest as in RequeueJob."""

    job: JobId
    restart: int = 0
    exclude: frozenset[NodeName] = frozenset()
    release: bool = False
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowRequeue(BaseAction):
    """Switch `Requeue=1` on for an opted-in job that was submitted with `--no-requeue`."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentJob(BaseAction):
    """Write the job's admin comment: the short form of what was done for it, for those who use sacct."""

    job: JobId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendLimit(BaseAction):
    """Have a running job's time limit be `limit_s` seconds, never shorter than it is and never beyond what its
    partition allows. Absolute, so that doing it twice gives nothing twice; Slurm counts whole minutes."""

    job: JobId
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayTasks(BaseAction):
    """Let the waiting tasks of an array begin no sooner than in `delay_s`, so that `job`, one of its tasks, has its
    place back before them; 0: they may begin now."""

    job: JobId
    array: JobId
    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNice(BaseAction):
    """Set a job's nice value: below 0 it goes before others, by as much as the number says."""

    job: JobId
    nice: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectStacks(BaseAction):
    """Have the agents of `nodes` keep what a job's tasks are doing: state of each process, and its own stacks where
    the job named a signal for that. What they find is kept under `name`."""

    job: JobId
    nodes: frozenset[NodeName]
    name: str
    signal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo(BaseAction):
    """Have the agents of `nodes` end the slurmstepds of a job's lost run that have no task left.

    `restart` is that run's restart count, `before` (Unix s) when it was over: what began later is of a new run.
    """

    job: JobId
    nodes: frozenset[NodeName]
    restart: int
    before: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAsk(BaseAction):
    """Tell a waiting shim what to do. `exclude` goes with RETRY."""

    ask: AskId
    job: JobId
    node: NodeName
    answer: Answer
    exclude: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalJob(BaseAction):
    """Send a signal to all steps and the batch script of a job (its checkpoint signal)."""

    job: JobId
    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeRun(BaseAction):
    """Have a run's coordinator, which the agent of `node` speaks for, go to `generation` with exactly these members.
    All ranks save first, for `grace_s` seconds at most; 0: at once. `patient`: nobody is stopped before the save."""

    run: JobId
    node: NodeName
    generation: int
    members: frozenset[NodeName]
    grace_s: int
    patient: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitReplica(BaseAction):
    """Have the agent of `node` submit a replica job of the run as the run's user, once per token. `minutes` 0: as long
    as the base's script says; `qos` empty: as it says, too."""

    run: JobId
    node: NodeName
    token: str
    nodes: int
    grace_s: int
    minutes: int = 0
    qos: str = ""
    exclude: frozenset[NodeName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReplica(BaseAction):
    """End a replica job of the run `run`. Stale when it is over, Permanent for a job that is none of the run."""

    run: JobId
    job: JobId
