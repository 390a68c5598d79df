"""From lines of the ledger to what a report says: each job's time by phase, its incidents, and sums of many jobs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from steward.model.case import Case
from steward.model.ids import CaseId, JobId
from steward.model.ledger import Ending, Run, Segment, Sums
from steward.policy.job.ledger import Line
from steward.views.timeline import clipped, timeline, unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """An event that hit a job: Unix seconds, None where nobody saw it (`unknown` names those). `first_step` and
    `running` are of the run after it."""

    run: Run
    running: float | None
    first_step: float | None
    replaced: float | None
    returned: float | None
    unknown: tuple[str, ...]

    @property
    def instants(self) -> dict[str, float | None]:
        """In the order in which they are told."""
        run = self.run
        return {
            "fault": run.fault,
            "detected": run.detected,
            "decided": run.decided,
            "marked": run.marked,
            "eligible": run.eligible,
            "running": self.running,
            "first_step": self.first_step,
            "replaced": self.replaced,
            "returned": self.returned,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLedger:
    """One job, its runs in order and what of its time lies in the report's window."""

    job: JobId
    runs: tuple[Run, ...]
    segments: tuple[Segment, ...]
    incidents: tuple[Incident, ...]

    @property
    def last(self) -> Run:
        return self.runs[-1]

    @property
    def resumes(self) -> int:
        return sum(1 for run in self.runs if run.ending in (Ending.RETRIED, Ending.REQUEUED))

    @property
    def sums(self) -> Sums:
        return Sums.of(self.segments)

    @property
    def steps_redone(self) -> int | None:
        """None: of no resume it is known."""
        known = [run.steps_redone for run in self.runs if run.steps_redone is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that a report is about: Unix seconds."""

    since: float = 0.0
    until: float


def job_ledgers(lines: Iterable[Line], window: Window, now: float) -> list[JobLedger]:
    """One for each job with time in the window, by their first runs' begin."""
    given = list(lines)
    cases = {line.id: line for line in given if isinstance(line, Case)}
    by_job: defaultdict[tuple[JobId, float], list[Run]] = defaultdict(list)
    for line in given:
        if isinstance(line, Run):
            by_job[line.job, line.opted_at].append(line)
    found = (_job(sorted(runs, key=_order), cases, window, now) for runs in by_job.values())
    return sorted((one for one in found if one.segments), key=lambda one: (one.runs[0].started, one.job))


def repairs(lines: Iterable[Line], window: Window) -> list[Case]:
    """Repairs of nodes that were going on in the window."""
    cases = (line for line in lines if isinstance(line, Case))
    return [case for case in cases if case.opened < window.until and (case.closed or window.until) >= window.since]


def out_of_service_s(case: Case, window: Window) -> float:
    """Node-seconds in the window from the fault (or the case's begin) until the node served again."""
    begin = case.fault_at if case.fault_at is not None else case.opened
    end = next((at for at in (case.returned, case.closed) if at is not None), window.until)
    return max(min(end, window.until) - max(begin, window.since), 0.0)


def grouped(ledgers: Sequence[JobLedger], name: Callable[[JobLedger], str]) -> Mapping[str, Sums]:
    """Sums by a property of the jobs."""
    parts: defaultdict[str, list[Segment]] = defaultdict(list)
    for one in ledgers:
        parts[name(one)] += one.segments
    return {word: Sums.of(segments) for word, segments in sorted(parts.items())}


def by_month(ledgers: Sequence[JobLedger]) -> Mapping[str, Sums]:
    """`2026-11` (UTC) -> sums; a job that goes on over midnight of the last day counts in both."""
    segments = [segment for one in ledgers for segment in one.segments]
    if not segments:
        return {}
    begin, end = min(one.begin for one in segments), max(one.end for one in segments)
    found, at = {}, begin
    while at < end:
        month = datetime.fromtimestamp(at, UTC).strftime("%Y-%m")
        _, after = month_window(month)
        if part := clipped(segments, at, after):
            found[month] = Sums.of(part)
        at = after
    return found


def month_window(month: str) -> tuple[float, float]:
    """Begin and end of `2026-11` (UTC). Raises ValueError for what is no month."""
    first = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    after = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return first.timestamp(), after.timestamp()


def _order(run: Run) -> tuple[int, int]:
    return run.restart, run.attempt


def _job(runs: list[Run], cases: Mapping[CaseId, Case], window: Window, now: float) -> JobLedger:
    pairs: list[tuple[Run, Run | None]] = [*pairwise(runs), (runs[-1], None)]
    return JobLedger(
        job=runs[0].job,
        runs=tuple(runs),
        segments=clipped(timeline(runs, now), window.since, window.until),
        incidents=tuple(_incident(run, follower, cases) for run, follower in pairs if run.was_hit),
    )


def _incident(run: Run, follower: Run | None, cases: Mapping[CaseId, Case]) -> Incident:
    mine = [cases[id] for id in run.cases if id in cases]
    return Incident(
        run=run,
        running=follower.started if follower else None,
        first_step=follower.first_step if follower else None,
        replaced=max((case.replaced for case in mine if case.replaced is not None), default=None),
        returned=max((case.returned for case in mine if case.returned is not None), default=None),
        unknown=unknown(run, follower),
    )
