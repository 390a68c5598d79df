"""A training job: its work, its checkpoints, and where its time goes."""

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum


class Use(Enum):
    """The use of a job's time; all but WORK is lost."""

    WORK = "work"
    SAVE = "save"
    """The pauses of checkpoints."""
    REDO = "redo"
    """Work after the last checkpoint before a fault, which is done again."""
    START = "start"
    """From the start of a run to its first step."""
    DETECT = "detect"
    """From a fault until the run is over."""
    QUEUE = "queue"
    """Between two runs."""


HELD = (Use.WORK, Use.SAVE, Use.REDO, Use.START, Use.DETECT)
"""In these the job has its nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How a job trains: `interval_s` of work between two checkpoints, of which each pauses it for `save_s`.

    A checkpoint counts `durable_s` after its pause. A run makes its first step after `start_s`.
    """

    nodes: int
    interval_s: float
    save_s: float
    durable_s: float
    start_s: float


NO_FAULT = "none"


@dataclass(slots=True, kw_only=True)
class Training:
    """One training job through all its runs. Times are those of the simulated clock."""

    habits: Habits
    began: float
    spent: dict[tuple[Use, str], float] = field(default_factory=lambda: defaultdict(float))
    """Seconds by use and by the kind of fault that caused them (`NO_FAULT`: none did)."""
    runs: int = 0
    saves: int = 0
    """Checkpoints that count, of all runs."""
    saved_at: float | None = None
    """When the newest of them counted."""
    cause: str = NO_FAULT
    """The kind of fault that ended the last run, or ends this one."""
    _started: float | None = None
    _hit: float | None = None
    _since: float = 0.0

    def __post_init__(self) -> None:
        self._since = self.began

    @property
    def is_hit(self) -> bool:
        """Return whether a fault has stopped the present run."""
        return self._hit is not None

    def start(self, now: float) -> None:
        """Begin a run."""
        self.spent[Use.QUEUE, self.cause] += now - self._since
        self._started, self._hit = now, None
        self.runs += 1

    def hit(self, kind: str, now: float) -> None:
        """Let a fault stop the run; only the first one of a run counts."""
        if self._started is None or self._hit is not None:
            return
        before, self.cause, self._hit = self.cause, kind, now
        self._count(now, before, is_lost=True)

    def end(self, now: float) -> None:
        """End the run; a run that no fault stopped loses what it had not saved."""
        if self._started is None:
            return
        if self._hit is None:
            self.hit("other", now)
        self.spent[Use.DETECT, self.cause] += now - (self._hit if self._hit is not None else now)
        self._started, self._hit, self._since = None, None, now

    def close(self, now: float) -> None:
        """End the simulated time: work that is not saved yet is not lost."""
        if self._started is None:
            self.spent[Use.QUEUE, self.cause] += now - self._since
        elif self._hit is None:
            self._count(now, self.cause, is_lost=False)
        else:
            self.spent[Use.DETECT, self.cause] += now - self._hit

    def _count(self, now: float, before: str, *, is_lost: bool) -> None:
        """Count the time of the run up to now; its start is the cost of the fault `before` it."""
        began, habits = self._started if self._started is not None else now, self.habits
        start = min(now - began, habits.start_s)
        trained = now - began - start
        cycle = habits.interval_s + habits.save_s
        whole = int(trained // cycle)
        work = whole * habits.interval_s + min(trained - whole * cycle, habits.interval_s)
        durable = max(0, int((trained - habits.durable_s) // cycle))
        kept = durable * habits.interval_s if is_lost else work
        if durable:
            self.saves += durable
            self.saved_at = began + start + durable * cycle + habits.durable_s
        self.spent[Use.START, before] += start
        self.spent[Use.WORK, NO_FAULT] += kept
        self.spent[Use.REDO, self.cause] += work - kept
        self.spent[Use.SAVE, NO_FAULT] += trained - work
