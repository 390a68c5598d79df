"""Hold the data that the API answers from, set up by the head's wiring."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from steward.api.metrics import Metrics
from steward.checks.catalogue import ListedCheck, catalogue
from steward.checks.known import mode_of
from steward.checks.limits import Limits
from steward.model.desired import Desired
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.leadership import Heads
from steward.model.observed import AgentDetail, Freshness
from steward.ports import Clock, PortError, Retryable, StorePort
from steward.workflows.commands import Commands
from steward.workflows.cycle import Planner
from steward.workflows.doctor import DoctorLine
from steward.workflows.notify import NotifyDesk
from steward.workflows.snapshot import HeadStandstill, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckBook:
    """The checks as configured at the head. `interval_s` is the period of checks that have none of their own."""

    limits: Limits = field(default_factory=Limits)
    interval_s: float = 15.0
    listed: tuple[ListedCheck, ...] = ()

    @staticmethod
    def of(limits: Limits, interval_s: float) -> "CheckBook":
        return CheckBook(limits=limits, interval_s=interval_s, listed=catalogue(limits, interval_s))

    def mode_of(self, check: str) -> str:
        """Return the check's mode: off, report or drain."""
        return mode_of(self.limits)(check)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The data and services behind the API. Thread-safe. `started` is Unix seconds."""

    cluster: str
    version: str
    started: float
    clock: Clock
    latest: Callable[[], Snapshot | None]
    standstill: Callable[[], HeadStandstill | None]
    details: Callable[[], Mapping[NodeName, AgentDetail]]
    want: Desired
    plan: Planner
    store: StorePort
    commands: Commands
    metrics: Metrics
    doctor: Callable[[], list[DoctorLine]]
    notify: NotifyDesk | None = None
    read_job: Callable[[JobId], Mapping[JobId, Job]] = lambda id: {}
    """Reads the job as Slurm shows it now; empty if Slurm does not know it.

    Raises PortError if Slurm does not answer.
    """
    checks: CheckBook = field(default_factory=lambda: CheckBook.of(Limits(), 15.0))
    heads: Callable[[], Heads | None] = lambda: None
    """Returns the heads of the cluster; None for a head alone."""
    hand_over: Callable[[str], None] = lambda why: None
    """Ends this head's lead, with the reason; another head takes it."""

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the last cycle.

        Raises Retryable, with the reason, before the first cycle has ended.
        """
        found = self.latest()
        if found is None:
            raise Retryable(
                self.standstill_text() or "the head has not finished its first look at the cluster; see its log"
            )
        return found

    def with_job(self, id: JobId, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the job as Slurm shows it now; unchanged if Slurm cannot show it."""
        if snapshot.seen.slurm is not Freshness.FRESH:
            return snapshot
        try:
            # The next cycle may see the job only seconds later.
            found = self.read_job(id)
        except PortError:
            return snapshot
        return (
            replace(snapshot, seen=replace(snapshot.seen, jobs={**snapshot.seen.jobs, **found})) if found else snapshot
        )

    def figures(self) -> bytes:
        """Return the figures for Prometheus."""
        standstill, now = self.standstill(), self.clock.now()
        standstill_s = 0.0 if standstill is None else max(now - standstill.since, 0.001)
        return self.metrics.text(standstill_s, self.heads())

    def standstill_text(self) -> str:
        """Return why nothing is decided now, as a sentence; empty while the head decides."""
        found = self.standstill()
        return found.text(self.clock.now()) if found is not None else ""
