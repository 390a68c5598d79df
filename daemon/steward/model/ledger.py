"""The ledger: each run of a job that opted in, how it ended, and what that cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from steward.model.ids import CaseId, JobId, NodeName
from steward.model.resume import Decision
from steward.model.why import Why


class Ending(Enum):
    RETRIED = "retried"
    """The step ran again in the same allocation."""
    REQUEUED = "requeued"
    OVER = "over"
    """No run follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A change of size of an elastic run: its processes were stopped at `stopped` and made a step again at `stepped`
    (Unix s). What they did after `kept` is made again: `steps` steps, None: not known."""

    kept: float
    stopped: float
    stepped: float
    steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One go of a job: `restart` is Slurm's count, `attempt` counts the goes within one allocation.

    Times are Unix seconds on the head's clock; None is an instant that nobody saw. `opted_at` tells two jobs apart that
    had the same number. `nodes` are all that it ever had, lost ones included.
    """

    job: JobId
    opted_at: float
    restart: int
    uid: int
    started: float
    attempt: int = 0
    name: str = ""
    partition: str = ""
    account: str = ""
    nodes: frozenset[NodeName] = frozenset()
    ended: float | None = None
    ending: Ending | None = None
    """None: it goes on, or it is not known yet what follows."""
    end_text: str = ""
    """Slurm's word for how it ended, where it did."""
    decision: Decision | None = None
    why: Why | None = None
    culprits: frozenset[NodeName] = frozenset()
    counted: bool = False
    """A resume was counted for its end: for none that a person asked for, and for one fault only one."""
    cases: tuple[CaseId, ...] = ()
    """Repairs of the culprits."""
    cause: str = ""
    """The check that found the first of them; empty: none did."""
    fault: float | None = None
    detected: float | None = None
    marked: float | None = None
    decided: float | None = None
    eligible: float | None = None
    """From when Slurm could start the next run."""
    first_step: float | None = None
    first: int | None = None
    """The number of the first step that it told of."""
    again_from: int | None = None
    """The lowest first step of the runs after it: this one's steps from there on were made again."""
    step: int | None = None
    stepped: float | None = None
    checkpoint_step: int | None = None
    checkpointed: float | None = None
    told: float = 0.0
    """When how far it is was last noted."""
    pauses: tuple[Pause, ...] = ()

    @property
    def key(self) -> str:
        """Unique for all time."""
        return f"{self.job}.{int(self.opted_at)}.{self.restart}.{self.attempt}"

    @property
    def was_hit(self) -> bool:
        """Something ended it before its time, and somebody decided what comes next."""
        return self.ending in (Ending.RETRIED, Ending.REQUEUED) or bool(self.culprits)

    @property
    def steps_redone(self) -> int | None:
        """The steps of this run that later runs make again; None where that is not known, or it has no successor."""
        kept = self._kept_step
        if self.step is None or kept is None:
            return None
        return max(self.step - max(kept, (self.first or 1) - 1), 0)

    @property
    def kept_until(self) -> float | None:
        """When it had made the last step that was not made again (Unix seconds; between two steps whose times are
        known, as if all took equally long); None: not known."""
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
        """Where a later run went on from is told by its first step, and else taken to be the checkpoint. Who does not
        tell of every step tells of a first one that is too high: the checkpoint bounds it."""
        if self.ending not in (Ending.RETRIED, Ending.REQUEUED):
            return None
        began = None if self.again_from is None else max(self.again_from - 1, 0)
        return min((at for at in (began, self.checkpoint_step) if at is not None), default=None)


class Phase(Enum):
    """The use of a job's time. All but WORK is lost."""

    START = "start"
    """From the run's begin to its first step."""
    WORK = "work"
    REDO = "redo"
    """Work after the last checkpoint before a fault: the next run does it again."""
    DETECT = "detect"
    """From the fault until somebody knew."""
    DECIDE = "decide"
    """From there to the decision."""
    RELEASE = "release"
    """From the decision until Slurm could start it again."""
    QUEUE = "queue"
    """From there to the next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of a job's time (Unix seconds). `held`: its nodes were allocated to it then."""

    phase: Phase
    begin: float
    end: float
    nodes: int
    held: bool
    run: str
    """The key of the run that it belongs to (after its end: until the next one begins)."""
    tells_steps: bool = True
    """False: the run reported no steps, so that its start and what is made again are counted as work."""

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    @property
    def node_seconds(self) -> float:
        return self.seconds * self.nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Where the time of one or many jobs went: seconds and node-seconds by phase.

    `ettr` is the part of the time from the first run's begin to the last one's end that was work (of node-seconds, so
    that big jobs count more), `goodput` the part of the node-seconds that were allocated. None: there was no time.
    """

    seconds: dict[Phase, float]
    node_seconds: dict[Phase, float]
    held_node_seconds: float = 0.0
    stepless_node_s: float = 0.0
    """Work of runs that reported no steps: `ettr` and `goodput` are upper bounds where it is not 0."""

    @staticmethod
    def of(segments: Iterable[Segment]) -> "Sums":
        seconds, nodes, held, stepless = dict.fromkeys(Phase, 0.0), dict.fromkeys(Phase, 0.0), 0.0, 0.0
        for one in segments:
            seconds[one.phase] += one.seconds
            nodes[one.phase] += one.node_seconds
            held += one.node_seconds if one.held else 0.0
            stepless += 0.0 if one.tells_steps or one.phase is not Phase.WORK else one.node_seconds
        return Sums(seconds=seconds, node_seconds=nodes, held_node_seconds=held, stepless_node_s=stepless)

    @property
    def all_s(self) -> float:
        return sum(self.seconds.values())

    @property
    def all_node_s(self) -> float:
        return sum(self.node_seconds.values())

    @property
    def lost_node_s(self) -> float:
        return self.all_node_s - self.node_seconds[Phase.WORK]

    @property
    def ettr(self) -> float | None:
        return self.node_seconds[Phase.WORK] / self.all_node_s if self.all_node_s else None

    @property
    def goodput(self) -> float | None:
        return self.node_seconds[Phase.WORK] / self.held_node_seconds if self.held_node_seconds else None
