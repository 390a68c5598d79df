"""The first page: faults, work in progress, decisions that wait for a person, all nodes, jobs not over."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from steward.api.page.charts import Spark, hourly, open_counts, out_of_service
from steward.api.page.jobs import JobRow, urgent_first
from steward.api.page.jobs import row as job_row
from steward.api.page.look import Look, PageRequest
from steward.api.page.nodes import WRONG, Legend, Place, legend, place
from steward.api.page.words import URGENCY
from steward.api.views import natural_sort_key, status_view
from steward.model.case import Case
from steward.model.deep import DeepRun
from steward.model.events import Event
from steward.model.group import GroupStatus
from steward.model.ids import NodeName
from steward.model.node_names import fold
from steward.model.resume import JobMemory
from steward.model.text import PAUSED, REPORT_ONLY, capitalized, verdict_label
from steward.ports import PortError
from steward.views.node_verdict import Word, next_of_case

Json = dict[str, Any]
T = TypeVar("T")
_ROWS, _JOBS, _EVENTS = 8, 8, 10
_NEEDS_LOOK = WRONG - {Word.HELD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a box, with a link. `css` is the verdict whose sign is shown; `since` is in Unix seconds."""

    href: str
    name: str
    word: str
    since: float | None
    text: str
    css: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box with the first lines of a longer list; `more` links to the whole list."""

    id: str
    title: str
    lines: tuple[Line, ...]
    total: int
    more: str
    none: str

    @property
    def rest(self) -> int:
        return self.total - len(self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPage:
    now: float
    status: Json
    alerts: tuple[Alert, ...]
    boxes: tuple[Box, ...]
    sparks: tuple[Spark, ...]
    legend: tuple[Legend, ...]
    places: tuple[Place, ...]
    jobs: tuple[JobRow, ...]
    more_jobs: int
    events: tuple[Event, ...]


def overview(look: Look, _asked: PageRequest) -> OverviewPage:
    status, memory = status_view(look.source, look.snapshot, look.draft), look.snapshot.memory
    jobs = [job for job in urgent_first(memory) if job.ended is None] or urgent_first(memory)
    attempts = (attempt.at for job in memory.jobs.values() for attempt in job.attempts)
    return OverviewPage(
        now=look.now,
        status=status,
        alerts=tuple(_alerts(status, look.source.standstill_text())),
        boxes=(_wrong(look), _doing(look), _waiting(look, status["breakers"])),
        sparks=(
            open_counts("Nodes out for repair", map(out_of_service, memory.cases.values()), look.now),
            hourly("Decisions about failed jobs", attempts, look.now),
        ),
        legend=legend(look),
        places=tuple(place(title, names, look) for title, names in look.places.items()),
        jobs=tuple(job_row(job, look) for job in jobs[:_JOBS]),
        more_jobs=max(len(memory.jobs) - _JOBS, 0),
        events=_events(look),
    )


def _events(look: Look) -> tuple[Event, ...]:
    """Return the last events, newest first; none if the store cannot be read."""
    # The page is needed most when the store is broken: it must not fail with the store.
    try:
        return tuple(event for _, event in reversed(look.source.store.events(limit=_EVENTS)))
    except PortError:
        return ()


def _alerts(status: Json, stands: str) -> Iterable[Alert]:
    """Yield warnings about the whole page or all repairs: an old picture, actions that are paused or switched off."""
    if stands:
        text = f"{capitalized(stands)}. What is shown here is the last picture before that."
        yield Alert(level="error", text=text)
    if status["slurm"] != "fresh":
        yield Alert(level="error", text="Slurm cannot be read now: nothing is decided on what is shown here.")
    if status["paused"]:
        yield Alert(level="warning", text=PAUSED)
    if not status["acts"]:
        yield Alert(level="warning", text=REPORT_ONLY)
    yield from _alerts_of_heads(status["heads"])
    if not status["resumes"]:
        yield Alert(level="warning", text="Resuming is off (resume.enabled = false): no job is brought back.")


def _alerts_of_heads(heads: Json | None) -> Iterable[Alert]:
    """Yield a warning for each other head that could not take over now; none for a head alone."""
    if heads is None:
        return
    if heads["trouble"]:
        yield Alert(level="error", text=f"No lease, so no head acts: {heads['trouble']}")
    for other in heads["others"]:
        if other["why_not"]:
            yield Alert(level="warning", text=f"{other['name']} could not take over now: {other['why_not']}")


def _box(id: str, title: str, parts: Sequence[tuple[Sequence[T], Callable[[T], Line]]], more: str, none: str) -> Box:
    """Return a box filled from each part in turn; a line is made only if it is shown."""
    lines: list[Line] = []
    for every, line in parts:
        lines += [line(one) for one in every[: _ROWS - len(lines)]]
    total = sum(len(every) for every, _ in parts)
    return Box(id=id, title=title, lines=tuple(lines), total=total, more=more, none=none)


def _wrong(look: Look) -> Box:
    incidents = [one for one in look.snapshot.memory.incidents.values() if one.over is None]
    nodes = [name for name, said in look.verdicts.items() if said.word in _NEEDS_LOOK]
    nodes.sort(key=lambda name: (URGENCY[look.verdicts[name].word], natural_sort_key(name)))
    parts: list[tuple[Sequence[Any], Callable[[Any], Line]]] = [
        (
            incidents,
            lambda one: _line(f"/incident/{quote(one.kind, safe='')}", one.kind, "incident", one.since, one.text),
        ),
        (nodes, lambda name: _of_node(name, look)),
    ]
    return _box("wrong", "Wrong", parts, "/nodes?state=wrong", "No fault is known.")


def _doing(look: Look) -> Box:
    memory, draft = look.snapshot.memory, look.draft
    cases = sorted(_open(look, waits=False), key=lambda case: case.opened)
    jobs = sorted((job for job in memory.jobs.values() if job.pending_from is not None), key=lambda job: job.id)
    deeps = [run for run in memory.deeps.values() if run.is_open]
    groups = [one for one in memory.groups.values() if one.status is not GroupStatus.IN_SERVICE]
    runs = [run for run in memory.elastic.values() if run.is_changing]
    parts: list[tuple[Sequence[Any], Callable[[Any], Line]]] = [
        (cases, lambda case: _of_case(case, next_of_case(case, draft))),
        (jobs, lambda job: _of_job(job, look)),
        (
            groups,
            lambda one: _line(f"/group/{quote(one.name, safe='')}", one.name, one.status.value, None, one.message),
        ),
        (runs, lambda run: _line(f"/elastic/{run.id}", f"run {run.id}", run.phase.value, run.entered, run.why)),
        (deeps, _of_deep),
    ]
    return _box("doing", "Being done", parts, "/cases?state=open", "Nothing.")


def _waiting(look: Look, breakers: Sequence[Json]) -> Box:
    cases = sorted(_open(look, waits=True), key=lambda case: case.opened)
    orphans = [
        name
        for name, said in look.verdicts.items()
        if said.word is Word.HELD and name not in {case.node for case in cases}
    ]
    foreign = sorted((name for name, said in look.verdicts.items() if said.word is Word.FOREIGN), key=natural_sort_key)
    parts: list[tuple[Sequence[Any], Callable[[Any], Line]]] = [
        (cases, lambda case: _of_case(case, _for_person(case, look))),
        (sorted(orphans, key=natural_sort_key), lambda name: _of_node(name, look)),
        (breakers, lambda one: _line("/incidents", one["scope"], "breaker tripped", one["tripped"], one["now"])),
        (foreign, lambda name: _of_node(name, look)),
    ]
    return _box("waiting", "Waits for a person", parts, "/nodes?state=held", "Nothing waits.")


def _open(look: Look, *, waits: bool) -> list[Case]:
    return [case for case in look.snapshot.memory.cases.values() if case.is_open and case.waits_for_person == waits]


def _for_person(case: Case, look: Look) -> str:
    if case.waits_for_yes:
        return f"waits for your approval: `steward approve {case.number}`"
    return next_of_case(case, look.draft)


def _of_job(job: JobMemory, look: Look) -> Line:
    why = job.last_attempt.why.text if job.last_attempt is not None else ""
    return _line(f"/job/{job.id}", f"job {look.snapshot.shown_id(job.id)}", "coming back", job.pending_from, why)


def _line(href: str, name: str, word: str, since: float | None, text: str) -> Line:
    return Line(href=href, name=name, word=word, since=since, text=text)


def _of_case(case: Case, text: str) -> Line:
    word = "needs approval" if case.waits_for_yes else case.step.value
    return _line(f"/case/{case.number}", case.node, word, case.entered, f"{case.why.text}; next: {text}")


def _of_deep(run: DeepRun) -> Line:
    text = f"{fold(run.nodes)}: {run.cause.value}"
    return _line("/nodes?state=in+deep+check", f"deep check {run.id}", run.state.value, run.asked, text)


def _of_node(name: NodeName, look: Look) -> Line:
    said = look.verdicts[name]
    text = said.evidence if not said.next else f"{said.evidence}; next: {said.next}"
    return Line(
        href=f"/node/{quote(name, safe='')}",
        name=name,
        word=verdict_label(said.word.value),
        since=said.since,
        text=text,
        css=said.word.value,
    )
