"""Make small charts as numbers, which the templates draw as SVG: the last 24 hours, and a job's time by phase.

They use only what the head remembers anyway: repairs (a week), runs of jobs that opted in (a day after the job's end)
and events.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steward.model.case import Case
from steward.model.events import Event
from steward.model.ledger import Phase, Run, Sums
from steward.model.text import age, count_noun
from steward.policy.elastic.picture import Stretch
from steward.views.report import timeline

DAY_S = 86_400.0
WIDTH = 1000.0
"""The width of a chart, in units of its own."""
_HOURS = 24
_SLOTS = 96
"""How many bars a count over the day has."""
_TICK = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartBar:
    """A period of time; `x` and `width` are in units of WIDTH."""

    x: float
    width: float
    css: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBar:
    """A period in which a run had one number of nodes; `height` is in percent."""

    x: float
    width: float
    height: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLane:
    """One row of a chart of 24 hours; `text` says the same in words."""

    label: str
    bars: tuple[ChartBar, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """Counts over the last 24 hours, the oldest first; `text` sums them up in words."""

    label: str
    text: str
    counts: tuple[int, ...]

    @property
    def most(self) -> int:
        return max(self.counts, default=0)

    @property
    def bars(self) -> list[tuple[float, float, float]]:
        """The x, width and height (at most 20) of each bar that is not empty."""
        width = WIDTH / max(len(self.counts), 1)
        heights = (20.0 * count / max(self.most, 1) for count in self.counts)
        return [(round(at * width, 1), round(width * 0.8, 1), round(h, 1)) for at, h in enumerate(heights) if h]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTime:
    """A job's time as parts of a bar, and in words; both are empty without a run."""

    bars: tuple[ChartBar, ...] = ()
    spent: str = ""


def job_time(runs: Sequence[Run], ended: float | None, now: float) -> JobTime:
    found = timeline(runs, ended or now)
    if not found:
        return JobTime()
    begin, whole = found[0].begin, max(found[-1].end - found[0].begin, 1e-3)
    spent = Sums.of(found).seconds
    bars = tuple(
        ChartBar(
            x=round((one.begin - begin) / whole * WIDTH, 1),
            width=round(max(one.seconds / whole * WIDTH, 1.5), 1),
            css=one.phase.value,
            text=f"{one.phase.value}: {age(one.seconds)} on {count_noun(one.nodes, 'node')}",
        )
        for one in found
    )
    words = ", ".join(f"{phase.value} {age(spent[phase])}" for phase in Phase if spent[phase] >= 0.5)
    return JobTime(bars=bars, spent=words)


def open_counts(label: str, spans: Iterable[tuple[float, float | None]], now: float) -> Spark:
    """Return how many of the spans overlap each part of the day; a span without an end is still open."""
    steps = [0] * (_SLOTS + 1)
    for begin, end in spans:
        first, last = _slot(begin, now, _SLOTS), _slot(now if end is None else end, now, _SLOTS)
        if last >= 0:
            steps[max(first, 0)] += 1
            steps[min(last, _SLOTS - 1) + 1] -= 1
    counts, open_now = [], 0
    for step in steps[:-1]:
        open_now += step
        counts.append(open_now)
    return Spark(label=label, text=f"{counts[-1]} now, {max(counts)} at most", counts=tuple(counts))


def hourly(label: str, times: Iterable[float], now: float) -> Spark:
    """Return how many of the times lie in each hour of the day."""
    counts = [0] * _HOURS
    for at in times:
        slot = _slot(at, now, _HOURS)
        if slot >= 0:
            counts[min(slot, _HOURS - 1)] += 1
    return Spark(label=label, text=f"{sum(counts)}, {max(counts)} in one hour at most", counts=tuple(counts))


def _slot(at: float, now: float, slots: int) -> int:
    return int((at - (now - DAY_S)) // (DAY_S / slots))


def size_bars(stretches: Sequence[Stretch], most: int) -> tuple[SizeBar, ...]:
    """Return the bars of an elastic run's size over time; empty while the run still forms."""
    if not stretches:
        return ()
    began, took = stretches[0].began, max(stretches[-1].ended - stretches[0].began, 1e-3)
    return tuple(
        SizeBar(
            x=round((one.began - began) / took * WIDTH, 1),
            width=round(max((one.ended - one.began) / took * WIDTH, 1.0), 1),
            height=round(100.0 * one.nodes / max(most, 1), 1),
            text=f"{one.nodes} nodes for {one.ended - one.began:.0f} s",
        )
        for one in stretches
    )


def out_of_service(case: Case) -> tuple[float, float | None]:
    """Return the span from the fault until the node served again; its end is None while the node is out of service."""
    begin = case.fault_at if case.fault_at is not None else case.opened
    return begin, case.returned if case.returned is not None else case.closed


def day_of_node(
    cases: Sequence[Case], runs: Sequence[Run], events: Sequence[Event], now: float
) -> tuple[ChartLane, ...]:
    """Return the chart of a node's last 24 hours: its repairs, its jobs with --auto-resume, and its events."""
    out = [(*out_of_service(case), "lost", f"{case.id}: {case.why.text}") for case in cases]
    jobs = [(run.started, run.ended, "work", f"job {run.shown_id} {run.name}") for run in runs]
    told = [(event.at, event.at, f"tick {event.level.value}", event.text) for event in events]
    return tuple(
        ChartLane(label=label, bars=bars, text=f"{label}: {len(bars)} in 24 hours")
        for label, spans in (("Out of service", out), ("Jobs", jobs), ("Events", told))
        for bars in [tuple(_day_bar(*span, now) for span in spans if (span[1] or now) > now - DAY_S)]
    )


def _day_bar(begin: float, end: float | None, css: str, text: str, now: float) -> ChartBar:
    x = max((begin - (now - DAY_S)) / DAY_S * WIDTH, 0.0)
    upto = ((now if end is None else end) - (now - DAY_S)) / DAY_S * WIDTH
    return ChartBar(x=round(min(x, WIDTH - _TICK), 1), width=round(max(upto - x, _TICK), 1), css=css, text=text)
