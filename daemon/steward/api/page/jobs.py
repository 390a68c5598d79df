"""The pages of jobs: those with --auto-resume, and one job."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from steward.api.explain_pages import job_of
from steward.api.page.charts import JobTime, job_time
from steward.api.page.look import Look, Paged, PageRequest
from steward.api.page.nodes import NodeRow, rows
from steward.api.report_pages import run_view
from steward.api.user_names import user_name
from steward.api.views import in_order, natural_sort_key, nodes_of
from steward.model.events import Event
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.memory import Memory
from steward.model.resume import Attempt, JobMemory
from steward.ports import PortError
from steward.views.explain import job_lines

Json = dict[str, Any]
_NODES, _EVENTS = 60, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job in a list. `last` is the last decision about the job."""

    id: JobId
    shown_id: str
    name: str
    user: str
    state: str
    mode: str
    resumes: int
    nodes: frozenset[NodeName]
    excluded: frozenset[NodeName]
    step: int | None
    coming_back: float | None
    time: JobTime
    last: Attempt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    jobs: Paged[JobRow]
    users: tuple[str, ...]
    asked: PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class OneJob:
    """One job. `row` is None if the job did not opt in; `slurm` is None if Slurm has forgotten the job."""

    id: JobId
    shown_id: str
    slurm: Job | None
    user: str
    row: JobRow | None
    runs: tuple[Json, ...]
    attempts: tuple[Attempt, ...]
    nodes: tuple[NodeRow, ...]
    more_nodes: int
    is_elastic: bool
    lines: tuple[str, ...]
    events: tuple[Event, ...]


def jobs(look: Look, asked: PageRequest) -> Jobs:
    """Return the jobs with --auto-resume that match: those that come back first, then those that are not over."""
    memory = look.snapshot.memory
    found = [job for job in urgent_first(memory) if _is_asked_for(job, look, asked)]
    users = sorted({user_name(uid) for uid in {job.uid for job in memory.jobs.values()}})
    return Jobs(jobs=Paged.of(found, asked, 100).map(lambda job: row(job, look)), users=tuple(users), asked=asked)


def urgent_first(memory: Memory) -> list[JobMemory]:
    """Return the remembered jobs: those that come back, then the others that are not over; the newest of each first."""
    return sorted(in_order(memory), key=lambda job: job.pending_from is None)


def _is_asked_for(job: JobMemory, look: Look, asked: PageRequest) -> bool:
    text, user, state = asked.word("q").lower(), asked.word("user"), asked.word("state")
    if user and user_name(job.uid) != user:
        return False
    if state and state != ("over" if job.ended is not None else "back" if job.pending_from is not None else "on"):
        return False
    return not text or text in look.snapshot.shown_id(job.id) or text in str(job.id) or text in _name(job, look).lower()


def _name(job: JobMemory, look: Look) -> str:
    known, runs = look.job(job.id), look.snapshot.memory.ledger.get(job.id, ())
    return known.name if known else (runs[-1].name if runs else "")


def row(job: JobMemory, look: Look) -> JobRow:
    snapshot, known = look.snapshot, look.job(job.id)
    runs = snapshot.memory.ledger.get(job.id, ())
    return JobRow(
        id=job.id,
        shown_id=snapshot.shown_id(job.id),
        name=_name(job, look),
        user=user_name(job.uid),
        state=known.state.value if known and job.ended is None else (job.end_text or "ended"),
        mode=job.mode.text,
        resumes=job.resumes,
        nodes=nodes_of(known, snapshot.memory) if known is not None and known.nodes else job.nodes,
        excluded=job.excluded,
        step=runs[-1].step if runs else None,
        coming_back=job.pending_from,
        time=job_time(runs, job.ended, look.now),
        last=job.last_attempt,
    )


def job(look: Look, asked: PageRequest) -> OneJob:
    """Return the page of one job. Raises HTTPException if neither Slurm nor Steward knows the job."""
    snapshot = look.snapshot
    id = job_of(asked.name, snapshot)
    known, mem = look.job(id), snapshot.memory.jobs.get(id)
    mine = row(mem, look) if mem else None
    on = mine.nodes if mine else known.nodes if known else frozenset[NodeName]()
    nodes = [name for name in sorted(on, key=natural_sort_key) if name in snapshot.seen.nodes]
    uid = mem.uid if mem else known.user_id if known else None
    return OneJob(
        id=id,
        shown_id=snapshot.shown_id(id),
        slurm=known,
        user=user_name(uid) if uid is not None else "",
        row=mine,
        runs=tuple({**run_view(run), "number": at} for at, run in _numbered(snapshot.memory.ledger.get(id, ()))),
        attempts=tuple(reversed(mem.attempts)) if mem else (),
        nodes=rows(nodes[:_NODES], look),
        more_nodes=max(len(nodes) - _NODES, 0),
        is_elastic=id in snapshot.memory.elastic,
        # What the job printed is left out: only its user and admins may read that.
        lines=job_lines(id, snapshot.memory, look.draft),
        events=tuple(_events(look, id)),
    )


def _numbered(runs: Iterable[Any]) -> list[tuple[int, Any]]:
    return list(reversed(list(enumerate(runs, start=1))))


def _events(look: Look, id: JobId) -> list[Event]:
    """Return the events of a job, the newest first; none if the store cannot be read."""
    try:
        return [event for _, event in reversed(look.source.store.events(job=id, limit=_EVENTS))]
    except PortError:
        return []
