"""The pages that explain a node, a job, an instance group or an elastic run.

Orders for elastic runs are read here, too.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from steward.api.admission import path_of
from steward.api.auth import Gatekeeper
from steward.api.shapes import JsonAnswer, event_shape
from steward.api.source import Source
from steward.api.turns import Turns
from steward.model.desired import ElasticPolicy
from steward.model.elastic import ElasticRun, SizeChange
from steward.model.events import Event
from steward.model.ids import JOB_WORD, JobId, NodeName
from steward.model.ledger import Run
from steward.model.order import ChangeRun, Refusal, RefusalKind
from steward.model.text import printable
from steward.policy.elastic.picture import picture, stretches_of
from steward.ports import LedgerQuery, StorePort
from steward.views.explain import explain_job, explain_node
from steward.views.explain_group import explain_group, run_lines
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]
_EVENTS = 50


def explain_job_route(source: Source, gatekeeper: Gatekeeper, reads: Turns) -> Route:
    """Return the route of a job's explanation; what the job printed is shown only to its user and to admins."""

    def job(request: Request) -> Response:
        id, snapshot = job_now(str(request.path_params["job"]), source, source.snapshot())
        known, proof = snapshot.memory.jobs.get(id), request.headers.get("authorization", "")
        private = known is not None and gatekeeper.may_read_of(known.uid, proof, request.method, path_of(request))
        return JsonAnswer(explained_job(id, source, snapshot, private=private))

    return reads.route("/v1/explain/job/{job}", job)


def explained_node(word: str, source: Source, snapshot: Snapshot) -> Json:
    """Return the lines and events about a node, named itself or by a repair of it (`c17`).

    Raises HTTPException if the cluster has no such node.
    """
    repaired = (case.node for case in snapshot.memory.cases.values() if word in (case.id, case.number))
    name = known_node(word if word in snapshot.seen.nodes else next(repaired, word), snapshot)
    lines = explain_node(name, snapshot.seen, source.want, snapshot.memory, source.clock.now())
    return _explained(lines, source.store.events(node=name, limit=_EVENTS))


def explained_group(name: str, source: Source, snapshot: Snapshot) -> Json:
    """Return the lines and events about a group. Raises HTTPException if the cluster has no such group."""
    if name not in snapshot.memory.groups:
        if any(slot.group == name for slot in source.want.slots.values()):
            raise HTTPException(404, f"{name} is a group of the settings ([[groups]]): `steward nodes` has its nodes")
        raise HTTPException(404, f"{printable(name, 200)} is not an instance group of this cluster")
    lines = explain_group(name, snapshot.seen, source.want, snapshot.memory, source.clock.now())
    events = [one for one in source.store.events() if ("group", name) in one[1].data][-_EVENTS:]
    return _explained(lines, events)


def explained_job(id: JobId, source: Source, snapshot: Snapshot, *, private: bool = False) -> Json:
    """Return the lines and events about a job; `private`: also what the job printed."""
    lines = explain_job(id, snapshot.seen, source.want, snapshot.memory, source.clock.now(), private=private)
    return _explained(lines, source.store.events(job=id, limit=_EVENTS))


def _explained(lines: Iterable[str], events: Iterable[tuple[int, Event]]) -> Json:
    return {"lines": list(lines), "events": [event_shape(*one) for one in events]}


def known_node(word: str, snapshot: Snapshot) -> NodeName:
    """Return the node of this name. Raises HTTPException if the cluster has no such node."""
    name = NodeName(word)
    if all(name not in known for known in (snapshot.seen.nodes, snapshot.seen.agents, snapshot.memory.slots)):
        raise HTTPException(404, f"{printable(word, 200)} is not a node of this cluster: `steward nodes` lists them")
    return name


def job_of(word: str, snapshot: Snapshot) -> JobId:
    """Return the id of a job. Raises HTTPException if neither Slurm nor Steward knows the job."""
    id = job_number(word, snapshot)
    if id is None or (id not in snapshot.seen.jobs and id not in snapshot.memory.jobs):
        raise unknown_job(word)
    return id


def job_now(word: str, source: Source, snapshot: Snapshot) -> tuple[JobId, Snapshot]:
    """Return the id of a job as `job_of` does, and a snapshot with the job as Slurm shows it now."""
    # The job may have begun or ended since the last cycle.
    if (id := job_number(word, snapshot)) is not None:
        snapshot = source.with_job(id, snapshot)
    return job_of(word, snapshot), snapshot


def unknown_job(word: str) -> HTTPException:
    """Return the error for an unknown job, also for a caller who may not learn that the job exists."""
    return HTTPException(
        404,
        f"job {word} is not known to Slurm (any more), and never asked to be resumed: `sacct -j {word}` may know it",
    )


def job_number(word: str, snapshot: Snapshot | None, store: StorePort | None = None) -> JobId | None:
    """Return the id of a job from a word such as `JOB_WORD`, for a part that of its heterogeneous job.

    A task of an array that Slurm has forgotten is looked for in its runs, with `store` also in those of older jobs.
    Return None if the task or part is not known. Raises HTTPException for any other text.
    """
    if not (found := JOB_WORD.fullmatch(word)):
        raise HTTPException(404, f"{printable(word, 40)} is not a job number")
    number, index, offset = found.groups()
    id = JobId(int(number))
    jobs = snapshot.seen.jobs if snapshot is not None else {}
    if offset is not None:
        # of a job that Slurm has forgotten its parts are not known any more
        return id if id not in jobs or jobs[id].het_job_id == id else None
    if index is None:
        job = jobs.get(id)
        return job.het_job_id if job is not None and job.is_part else id
    same = [job for job in jobs.values() if job.array_job_id == id and job.array_task in (int(index), None)]
    # The waiting tasks of an array share one record, that of the array: prefer a record of the task's own.
    if same:
        return min(same, key=lambda job: (job.array_task is None, job.id)).id
    return _job_of_task(f"{id}_{int(index)}", snapshot, store)


def _job_of_task(task: str, snapshot: Snapshot | None, store: StorePort | None) -> JobId | None:
    """Return the id of a task of an array by its runs, the newest of them first; None if none is known."""
    kept = snapshot.memory.ledger.values() if snapshot is not None else ()
    runs = [run for runs in kept for run in runs[-1:] if run.task_id == task]
    if not runs and store is not None:
        runs = [line for line in store.ledger(LedgerQuery(task=task)) if isinstance(line, Run)]
    return max(runs, key=lambda run: run.started).job if runs else None


_PAUSED = {"true": True, "false": False, "": None}


def runs_view(snapshot: Snapshot, site: ElasticPolicy) -> list[Json]:
    """Return all remembered elastic runs: open ones first, then the newest."""
    runs = sorted(snapshot.memory.elastic.values(), key=lambda run: (not run.is_open, -run.begun, run.id))
    return [_run_view(run, site, snapshot.at) for run in runs]


def run_report(snapshot: Snapshot, run: ElasticRun) -> Json:
    """Return a run's size and throughput over time: each change of size, and a plot in lines of text."""
    words = (word for agent in snapshot.seen.agents.values() for word in agent.elastic if word.run == run.id)
    consumed = next((word.consumed for word in words if word.consumed is not None), run.consumed)
    stretches = stretches_of(run, snapshot.at, consumed)
    return {
        "base": run.base,
        "changes": run.changes,
        "node_hours_beyond_base": _beyond_s(run, snapshot.at) / 3600.0,
        "events": [_event_view(one) for one in run.events],
        "stretches": [
            {"began": one.began, "ended": one.ended, "nodes": one.nodes, "samples_per_s": one.rate}
            for one in stretches
            if one.ended > one.began
        ],
        "picture": picture(stretches),
    }


def change_run(who: str, said: Mapping[str, str]) -> ChangeRun:
    """Return the order of a body such as `{"run": "7", "size": "4"}`. Raises Refusal for a bad value."""
    run, size, paused = said.get("run", ""), said.get("size", ""), said.get("paused", "")
    if not is_number(run) or (size and not is_number(size)) or paused not in _PAUSED:
        raise Refusal(RefusalKind.VALIDATION, "run and size are whole numbers, paused is true or false")
    return ChangeRun(who=who, run=int(run), size=int(size) if size else None, paused=_PAUSED[paused])


def is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 10


def _run_view(run: ElasticRun, site: ElasticPolicy, now: float) -> Json:
    return {
        "run": run.id,
        "spec": run.spec,
        "base": run.base,
        "size": len(run.members),
        "phase": run.phase.value,
        "since": run.entered,
        "nodes": sorted(run.members),
        "replicas": [{"job": one.job, "nodes": one.nodes} for one in run.replicas],
        "wish": run.wish,
        "paused": run.paused,
        "generation": run.generation,
        "changes": run.changes,
        "node_hours_beyond_base": _beyond_s(run, now) / 3600.0,
        "events": [_event_view(one) for one in run.events],
        "lines": run_lines(run, site, now),
    }


def _beyond_s(run: ElasticRun, now: float) -> float:
    """Return the node-seconds that the run used beyond its base size."""
    return run.node_seconds + max(len(run.members) - run.base, 0) * max(now - run.counted, 0.0)


def _event_view(one: SizeChange) -> Json:
    return {
        "at": one.at,
        "before": one.before,
        "after": one.after,
        "cause": one.cause.value,
        "why": one.why,
        "done": one.done,
        "saved_s": one.saved_s,
        "unsaved": sorted(one.unsaved),
        "steps_again": one.again,
        "up_s": one.up_s,
    }
