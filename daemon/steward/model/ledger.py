"""The ledger: each run of an opted-in job, its end, and the cost of that end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from steward.model.ids import CaseId, JobId, NodeName, UnixTime
from steward.model.job import Job
from steward.model.resume import Decision
from steward.model.why import Why


class Ending(Enum):
    """The way in which a run ended."""

    RETRIED = "retried"
    """The step ran again in the same allocation."""
    REQUEUED = "requeued"
    OVER = "over"
    """No run follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A change of size of an elastic run: from the stop of its processes to their next step (Unix s).

    The work after `kept` is done again: `steps` steps, None: not known.
    """

    kept: UnixTime
    stopped: UnixTime
    stepped: UnixTime
    steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a job: `restart` is Slurm's count, `attempt` counts the runs within one allocation.

    Times are Unix seconds on the head's clock; None: not observed. `opted_at` distinguishes two jobs with the same
    number. `nodes` are all nodes that the run ever had, lost nodes included.
    """

    job: JobId
    opted_at: UnixTime
    restart: int
    uid: int
    started: UnixTime
    task_id: str = ""
    """The job's number as squeue shows it, for a task of an array: `7_2`; empty for any other job."""
    attempt: int = 0
    name: str = ""
    partition: str = ""
    account: str = ""
    nodes: frozenset[NodeName] = frozenset()
    ended: UnixTime | None = None
    ending: Ending | None = None
    """How it ended; None: the run goes on, or it is not known yet what follows."""
    end_text: str = ""
    """Slurm's word for its end; empty before the end."""
    decision: Decision | None = None
    why: Why | None = None
    culprits: frozenset[NodeName] = frozenset()
    counted: bool = False
    """Whether a resume was counted for its end: never if a person asked for the end, and once for each fault."""
    cases: tuple[CaseId, ...] = ()
    """The repairs of the culprits."""
    cause: str = ""
    """The check that found the first culprit; empty: no check did."""
    fault: UnixTime | None = None
    detected: UnixTime | None = None
    marked: UnixTime | None = None
    decided: UnixTime | None = None
    eligible: UnixTime | None = None
    """The time from which Slurm could start the next run."""
    first_step: UnixTime | None = None
    first: int | None = None
    """The number of the first step that it reported."""
    again_from: int | None = None
    """The lowest first step of later runs: they made this run's steps again from there on."""
    step: int | None = None
    stepped: UnixTime | None = None
    checkpoint_step: int | None = None
    checkpointed: UnixTime | None = None
    progress_at: UnixTime = 0.0
    """When its progress was last noted."""
    pauses: tuple[Pause, ...] = ()

    @property
    def key(self) -> str:
        """Return the run's key, which is unique for all time."""
        return f"{self.job}.{int(self.opted_at)}.{self.restart}.{self.attempt}"

    @property
    def shown_id(self) -> str:
        """Return the job's number as squeue shows it."""
        return self.task_id or str(self.job)

    @property
    def was_hit(self) -> bool:
        """Return whether a fault ended the run: it was retried or requeued, or culprits were found."""
        return self.ending in (Ending.RETRIED, Ending.REQUEUED) or bool(self.culprits)

    @property
    def steps_redone(self) -> int | None:
        """Return the number of its steps that later runs make again; None if not known, or without a later run."""
        kept = self._kept_step
        if self.step is None or kept is None:
            return None
        return max(self.step - max(kept, (self.first or 1) - 1), 0)

    @property
    def kept_until(self) -> float | None:
        """Return when the run had made the last step that was not made again (Unix s); None if not known."""
        # assumes that all steps between two known times took equally long
        kept = self._kept_step
        if self.step is None or kept is None:
            return None
        if kept == self.checkpoint_step:
            return self.checkpointed
        begin, end = self.first_step if self.first_step is not None else self.started, self.stepped
        first = self.first or 1
        if kept < first or end is None:
            return begin
        return begin + (end - begin) * min((kept - first + 1) / (self.step - first + 1), 1.0)

    @property
    def _kept_step(self) -> int | None:
        """Return the last step that was not repeated: the one before a later run's first, at most the checkpoint's.

        None: not known, or without a later run.
        """
        # the first step that a job reports is too high if it does not report every step: the checkpoint bounds it
        if self.ending not in (Ending.RETRIED, Ending.REQUEUED):
            return None
        began = None if self.again_from is None else max(self.again_from - 1, 0)
        return min((at for at in (began, self.checkpoint_step) if at is not None), default=None)


def shown_id(id: JobId, jobs: Mapping[JobId, Job], ledger: Mapping[JobId, tuple[Run, ...]]) -> str:
    """Return the job's number as squeue shows it, for a job that Slurm has forgotten by its runs."""
    if (job := jobs.get(id)) is not None:
        return job.shown_id
    runs = ledger.get(id)
    return runs[-1].shown_id if runs else str(id)


class Phase(Enum):
    """The use of a job's time; all but WORK is lost."""

    START = "start"
    """From the start of the run to its first step."""
    WORK = "work"
    REDO = "redo"
    """Work after the last checkpoint before a fault, which the next run does again."""
    DETECT = "detect"
    """From the fault to its detection."""
    DECIDE = "decide"
    """From the detection to the decision."""
    RELEASE = "release"
    """From the decision until Slurm could start the job again."""
    QUEUE = "queue"
    """From then to the start of the next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of a job's time (Unix seconds). `held`: its nodes were allocated to the job."""

    phase: Phase
    begin: float
    end: float
    nodes: int
    held: bool
    run: str
    """The key of its run (after the run's end, until the next run starts)."""
    tells_steps: bool = True
    """Whether the run reported steps; otherwise its start and repeated work count as work."""

    @property
    def seconds(self) -> float:
        """Return the length of the stretch."""
        return self.end - self.begin

    @property
    def node_seconds(self) -> float:
        """Return the length of the stretch times its nodes."""
        return self.seconds * self.nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The time of one or many jobs: seconds and node-seconds by phase."""

    seconds: dict[Phase, float]
    node_seconds: dict[Phase, float]
    held_node_seconds: float = 0.0
    stepless_node_s: float = 0.0
    """The work of runs that reported no steps; if it is not 0, `ettr` and `goodput` are upper bounds."""

    @staticmethod
    def of(segments: Iterable[Segment]) -> "Sums":
        """Return the sums over the segments."""
        seconds, nodes, held, stepless = dict.fromkeys(Phase, 0.0), dict.fromkeys(Phase, 0.0), 0.0, 0.0
        for one in segments:
            seconds[one.phase] += one.seconds
            nodes[one.phase] += one.node_seconds
            held += one.node_seconds if one.held else 0.0
            stepless += 0.0 if one.tells_steps or one.phase is not Phase.WORK else one.node_seconds
        return Sums(seconds=seconds, node_seconds=nodes, held_node_seconds=held, stepless_node_s=stepless)

    @property
    def all_s(self) -> float:
        """Return the seconds of all phases."""
        return sum(self.seconds.values())

    @property
    def all_node_s(self) -> float:
        """Return the node-seconds of all phases."""
        return sum(self.node_seconds.values())

    @property
    def lost_node_s(self) -> float:
        """Return the node-seconds of all phases but work."""
        return self.all_node_s - self.node_seconds[Phase.WORK]

    @property
    def ettr(self) -> float | None:
        """Return work as a part of all node-seconds from the first run's start to the last run's end.

        Node-seconds make big jobs count more. None: there was no time.
        """
        return self.node_seconds[Phase.WORK] / self.all_node_s if self.all_node_s else None

    @property
    def goodput(self) -> float | None:
        """Return work as a part of the allocated node-seconds; None: there were none."""
        return self.node_seconds[Phase.WORK] / self.held_node_seconds if self.held_node_seconds else None
