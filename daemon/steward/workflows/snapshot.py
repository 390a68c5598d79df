"""Keep the picture, plan and memory of the last cycle, from which all readers are served."""

from dataclasses import dataclass

from steward.model.ids import JobId
from steward.model.ledger import shown_id
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """The seconds that the parts of a cycle took.

    `bell_s` is from the bell's first ring to the end; None without a ring.
    """

    observe_s: float = 0.0
    plan_s: float = 0.0
    commit_s: float = 0.0
    apply_s: float = 0.0
    bell_s: float | None = None

    @property
    def total_s(self) -> float:
        """Return the seconds of the whole cycle."""
        return self.observe_s + self.plan_s + self.commit_s + self.apply_s


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadStandstill:
    """A time without decisions, because every turn fails or one does not end. `since` is its beginning (Unix s)."""

    since: float
    why: str

    def text(self, now: float) -> str:
        """Return one sentence for people."""
        return f"nothing is decided for {max(now - self.since, 0.0):.0f} s: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One finished cycle. `before` is the memory that it began with."""

    at: float
    number: int
    seen: Observed
    before: Memory
    memory: Memory
    plan: Plan
    phases: Phases = Phases()

    def shown_id(self, job: JobId) -> str:
        """Return the job's number as squeue shows it."""
        return shown_id(job, self.seen.jobs, self.memory.ledger)
