"""Turn the ledger's lines into a report: each job's time by phase, its incidents, and sums over many jobs.

Each moment from the start of a job's first run to the end of its last is in exactly one phase. If the instant that ends
a phase was not seen, its time belongs to the next phase, and `unknown` names the instant.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

from steward.model.case import Case
from steward.model.ids import CaseId, JobId
from steward.model.ledger import Ending, Pause, Phase, Run, Segment, Sums
from steward.policy.job.ledger import Line


def timeline(runs: Sequence[Run], now: float) -> tuple[Segment, ...]:
    """Return the timeline of one job from its runs in order; if the last one still runs, it ends at `now`."""
    found: list[Segment] = []
    at = min((run.started for run in runs), default=now)
    for run, follower in [*pairwise(runs), *((run, None) for run in runs[-1:])]:
        end = max(at, _end(run, follower, now))
        found += _segments(run, at, end)
        at = end
    return tuple(found)


def clip_segments(segments: Iterable[Segment], since: float, until: float) -> tuple[Segment, ...]:
    """Return the parts of the segments between two moments."""
    cut = (replace(one, begin=max(one.begin, since), end=min(one.end, until)) for one in segments)
    return tuple(one for one in cut if one.begin < one.end)


def unknown(run: Run, follower: Run | None) -> tuple[str, ...]:
    """Return the names of instants that were not seen, from a run's fault to the first step of the next run."""
    if not run.was_hit:
        return ()
    seen = {"fault": run.fault, "detected": run.detected, "marked": run.marked, "decided": run.decided}
    if run.ending is Ending.REQUEUED:
        seen["eligible"] = run.eligible
    if follower is not None:
        seen["first_step"] = follower.first_step
    return tuple(name for name, at in seen.items() if at is None)


def _end(run: Run, follower: Run | None, now: float) -> float:
    if follower is not None:
        return follower.started
    return run.ended if run.ending is Ending.OVER and run.ended is not None else now


def _segments(run: Run, begin: float, end: float) -> list[Segment]:
    """Return the segments of a run, without gaps from `begin` to `end`."""
    found: list[Segment] = []
    left, tells = _left(run), run.first_step is not None or run.step is not None
    held_until = end if left is None else min(max(left, begin), end)
    at = begin
    for phase, instant in _bounds(run, end):
        upto = at if instant is None else min(max(instant, at), end)
        for first, last, held in ((at, min(upto, held_until), True), (max(at, held_until), upto, False)):
            if first < last:
                found.append(
                    Segment(
                        phase=phase,
                        begin=first,
                        end=last,
                        nodes=len(run.nodes),
                        held=held,
                        run=run.key,
                        tells_steps=tells,
                    )
                )
        at = upto
    for pause in run.pauses:
        found = [part for one in found for part in _without(one, pause)]
    return found


def _without(one: Segment, pause: Pause) -> list[Segment]:
    """Return the parts of a segment of work that a change of size interrupts."""
    if one.phase is not Phase.WORK or pause.stepped <= one.begin or pause.kept >= one.end:
        return [one]
    edges = [min(max(at, one.begin), one.end) for at in (one.begin, pause.kept, pause.stopped, pause.stepped, one.end)]
    phases = (Phase.WORK, Phase.REDO, Phase.START, Phase.WORK)
    parts = (replace(one, phase=phase, begin=a, end=b) for phase, (a, b) in zip(phases, pairwise(edges), strict=True))
    return [part for part in parts if part.begin < part.end]


def _left(run: Run) -> float | None:
    """Return when the run lost its nodes; None while it has them."""
    if run.ended is None or run.fault is None or not run.was_hit:
        return run.ended
    # Slurm's end is in whole seconds: a run had its nodes until its fault.
    return max(run.ended, run.fault)


def _bounds(run: Run, end: float) -> list[tuple[Phase, float | None]]:
    """Return each phase of the run with the instant that ends it, in order; None: not seen.

    Work ends when the nodes are lost.
    """
    left, start = _left(run), (Phase.START, run.first_step)
    if not run.was_hit:
        return [start, (Phase.WORK, end if left is None else left), (Phase.QUEUE, end)]
    known = (at for at in (run.fault, run.detected, run.decided, run.ended) if at is not None)
    stopped = min(next(known, end), end if left is None else left)
    kept = run.kept_until if run.steps_redone is not None else stopped
    kept = None if kept is None else min(kept, stopped)
    after = [(Phase.DETECT, run.detected), (Phase.DECIDE, run.decided)]
    last = Phase.QUEUE if run.ending is Ending.REQUEUED and run.eligible is not None else Phase.RELEASE
    return [start, (Phase.WORK, kept), (Phase.REDO, stopped), *after, (Phase.RELEASE, run.eligible), (last, end)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIncident:
    """A fault that hit a job, with its instants in Unix seconds; None: not seen, and named in `unknown`.

    `running` and `first_step` are those of the job's next run.
    """

    run: Run
    running: float | None
    first_step: float | None
    replaced: float | None
    returned: float | None
    unknown: tuple[str, ...]

    @property
    def instants(self) -> dict[str, float | None]:
        """Return the instants in the order of the report."""
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
    """One job: its runs in order, and its time in the report's window."""

    job: JobId
    runs: tuple[Run, ...]
    segments: tuple[Segment, ...]
    incidents: tuple[JobIncident, ...]

    @property
    def last(self) -> Run:
        """Return the last run."""
        return self.runs[-1]

    @property
    def resumes(self) -> int:
        """Return how many resumes were charged."""
        return sum(run.counted for run in self.runs)

    @property
    def sums(self) -> Sums:
        """Return the sums of the job's time."""
        return Sums.of(self.segments)

    @property
    def steps_redone(self) -> int | None:
        """Return how many steps were done again after resumes and changes of size; None if that is not known."""
        known = [run.steps_redone for run in self.runs if run.steps_redone is not None]
        known += [pause.steps for run in self.runs for pause in run.pauses if pause.steps is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time of a report in Unix seconds."""

    since: float = 0.0
    until: float


def job_ledgers(lines: Iterable[Line], window: Window, now: float) -> list[JobLedger]:
    """Return each job with time in the window, in the order of their first starts."""
    given = list(lines)
    cases = {line.id: line for line in given if isinstance(line, Case)}
    by_job: defaultdict[tuple[JobId, float], list[Run]] = defaultdict(list)
    for line in given:
        if isinstance(line, Run):
            by_job[line.job, line.opted_at].append(line)
    found = (_job(sorted(runs, key=_order), cases, window, now) for runs in by_job.values())
    return sorted((one for one in found if one.segments), key=lambda one: (one.runs[0].started, one.job))


def repairs(lines: Iterable[Line], window: Window) -> list[Case]:
    """Return the repairs of nodes that were under way in the window."""
    cases = (line for line in lines if isinstance(line, Case))
    return [case for case in cases if case.opened < window.until and (case.closed or window.until) >= window.since]


def out_of_service_s(case: Case, window: Window) -> float:
    """Return how many seconds of the window the node was out of service, from its fault or the case's begin."""
    begin = case.fault_at if case.fault_at is not None else case.opened
    end = next((at for at in (case.returned, case.closed) if at is not None), window.until)
    return max(min(end, window.until) - max(begin, window.since), 0.0)


def grouped_sums(ledgers: Sequence[JobLedger], name: Callable[[JobLedger], str]) -> Mapping[str, Sums]:
    """Return the sums of the jobs for each value of `name`."""
    parts: defaultdict[str, list[Segment]] = defaultdict(list)
    for one in ledgers:
        parts[name(one)] += one.segments
    return {word: Sums.of(segments) for word, segments in sorted(parts.items())}


def by_month(ledgers: Sequence[JobLedger]) -> Mapping[str, Sums]:
    """Return the sums of each month such as `2026-11` (UTC); a job that runs across its end counts in both."""
    segments = [segment for one in ledgers for segment in one.segments]
    if not segments:
        return {}
    begin, end = min(one.begin for one in segments), max(one.end for one in segments)
    found, at = {}, begin
    while at < end:
        month = datetime.fromtimestamp(at, UTC).strftime("%Y-%m")
        _, after = month_window(month)
        if part := clip_segments(segments, at, after):
            found[month] = Sums.of(part)
        at = after
    return found


def month_window(month: str) -> tuple[float, float]:
    """Return begin and end of a month such as `2026-11` (UTC). Raises ValueError for any other text."""
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
        segments=clip_segments(timeline(runs, now), window.since, window.until),
        incidents=tuple(_incident(run, follower, cases) for run, follower in pairs if run.was_hit),
    )


def _incident(run: Run, follower: Run | None, cases: Mapping[CaseId, Case]) -> JobIncident:
    mine = [cases[id] for id in run.cases if id in cases]
    return JobIncident(
        run=run,
        running=follower.started if follower else None,
        first_step=follower.first_step if follower else None,
        replaced=max((case.replaced for case in mine if case.replaced is not None), default=None),
        returned=max((case.returned for case in mine if case.returned is not None), default=None),
        unknown=unknown(run, follower),
    )
