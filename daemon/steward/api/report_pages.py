"""The pages of the ledger: `GET /v1/report` and the runs of a job, also of jobs that Slurm has forgotten."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.exceptions import HTTPException

from steward.api.explain_pages import job_number, run_report
from steward.api.shapes import shape
from steward.api.source import Source
from steward.api.user_names import user_name
from steward.model.case import Case
from steward.model.ids import JobId
from steward.model.ledger import Run, Sums
from steward.model.text import one_line, printable
from steward.ports import LedgerQuery, StorePort
from steward.views.report import (
    JobIncident,
    JobLedger,
    Window,
    by_month,
    grouped_sums,
    job_ledgers,
    month_window,
    out_of_service_s,
    repairs,
)

Json = dict[str, Any]
_LONGEST = 120


def report_page(source: Source, query: Mapping[str, str], only: int | None = None) -> Json:
    """Return the report; with `only`, of this user's jobs only. Raises HTTPException."""
    now = source.clock.now()
    try:
        choice = replace(ReportChoice.of(query, now), job=_job_asked_for(query, source), only=only)
    except ValueError as error:
        raise HTTPException(400, str(error)) from error
    found = report_view(source.store, choice, now)
    if choice.job and not found["jobs"]:
        raise _not_there(query["job"])
    snapshot = source.latest() if choice.job else None
    run = snapshot.memory.elastic.get(JobId(choice.job)) if snapshot is not None else None
    if snapshot is not None and run is not None and only in (None, run.uid):
        found["elastic"] = run_report(snapshot, run)
    return found


def history_page(source: Source, word: str, only: int | None = None) -> list[Json]:
    """Return the runs of a job; with `only`, only this user's (several users may have had this job id).

    Raises HTTPException.
    """
    found = history_view(source.store, _job_in_ledger(word, source), only)
    if not found:
        raise _not_there(word)
    return found


def _job_asked_for(query: Mapping[str, str], source: Source) -> int:
    """Return the id of the query's job; 0 if it names none. Raises HTTPException."""
    word = query.get("job", "0")
    return 0 if word in ("", "0") else _job_in_ledger(word, source)


def _job_in_ledger(word: str, source: Source) -> JobId:
    """Return the id of a job as a person writes it (`7`, `7_2`, `7+1`). Raises HTTPException."""
    found = job_number(word, source.latest(), source.store)
    if found is None:
        raise _not_there(word)
    return found


def _not_there(word: str) -> HTTPException:
    return HTTPException(404, f"job {word} is not in the ledger: it never opted in, or it is too long ago")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChoice:
    """The filters of a report. Empty, 0 or None means all.

    `window.until` is at most the present. `only` is the one user whose jobs the caller may see.
    """

    window: Window
    job: int = 0
    user: str = ""
    partition: str = ""
    only: int | None = None

    @staticmethod
    def of(query: Mapping[str, str], now: float) -> "ReportChoice":
        """Return the filters of a query. Raises ValueError with one line that says what is wrong."""
        since, until = _number(query, "since"), _number(query, "until") or now
        if month := query.get("month", ""):
            try:
                since, until = month_window(month)
            except ValueError as error:
                raise ValueError(f"month={printable(month, 20)}: use a month such as 2026-11") from error
        return ReportChoice(
            window=Window(since=since, until=min(until, now)),
            user=one_line(query.get("user", ""), _LONGEST),
            partition=printable(query.get("partition", ""), _LONGEST),
        )

    def takes(self, one: JobLedger) -> bool:
        run = one.last
        named = self.user in ("", user_name(run.uid), str(run.uid))
        return named and self.partition in ("", run.partition)


def report_view(store: StorePort, choice: ReportChoice, now: float) -> Json:
    """Return each job with its sums and incidents, and the total; with `choice.job` also the job's timeline."""
    window = choice.window
    wanted = LedgerQuery(job=choice.job, since=window.since, until=window.until)
    lines = store.ledger(wanted)
    complete = len(lines) < wanted.limit
    lines = [line for line in lines if not isinstance(line, Run) or choice.only in (None, line.uid)]
    mended = repairs(lines, window)
    if choice.job:
        since = min((line.started for line in lines if isinstance(line, Run)), default=now)
        mended = repairs(store.ledger(LedgerQuery(since=since - 1.0, until=window.until)), window)
        lines = [*lines, *mended]
    ledgers = [one for one in job_ledgers(lines, window, now) if choice.takes(one)]
    return {
        "at": now,
        "since": window.since,
        "until": window.until,
        "complete": complete,
        "jobs": [_job_view(one, whole=bool(choice.job)) for one in ledgers],
        "totals": sums_view(Sums.of(segment for one in ledgers for segment in one.segments)),
        "by_user": _groups(grouped_sums(ledgers, lambda one: user_name(one.last.uid))),
        "by_partition": _groups(grouped_sums(ledgers, lambda one: one.last.partition)),
        "by_month": _groups(by_month(ledgers)),
        "repairs": [_repair_view(case, window) for case in _of_jobs(mended, ledgers, choice)],
    }


def history_view(store: StorePort, job: int, only: int | None = None) -> list[Json]:
    """Return every run of a job, oldest first; with `only`, only this user's.

    A requeued job has several runs under one id.
    """
    found = store.ledger(LedgerQuery(job=job))
    runs = [line for line in found if isinstance(line, Run) and only in (None, line.uid)]
    ordered = sorted(runs, key=lambda run: (run.opted_at, run.restart, run.attempt))
    return [{"number": number, **run_view(run)} for number, run in enumerate(ordered, start=1)]


def sums_view(sums: Sums) -> Json:
    return {
        "seconds": {phase.value: round(spent, 3) for phase, spent in sums.seconds.items()},
        "node_seconds": {phase.value: round(spent, 3) for phase, spent in sums.node_seconds.items()},
        "all_s": round(sums.all_s, 3),
        "all_node_s": round(sums.all_node_s, 3),
        "lost_node_s": round(sums.lost_node_s, 3),
        "held_node_s": round(sums.held_node_seconds, 3),
        "ettr": None if sums.ettr is None else round(sums.ettr, 6),
        "goodput": None if sums.goodput is None else round(sums.goodput, 6),
        "stepless_node_s": round(sums.stepless_node_s, 3),
    }


def run_view(run: Run) -> Json:
    """Return the stable JSON shape of one run (docs/report.md)."""
    return {
        "restart": run.restart,
        "attempt": run.attempt,
        "nodes": shape(run.nodes),
        "started": run.started,
        "first_step": run.first_step,
        "ended": run.ended,
        "ending": run.ending.value if run.ending else None,
        "slurm_state": run.end_text,
        "decision": run.decision.value if run.decision else None,
        "rule": run.why.rule if run.why else "",
        "why": run.why.text if run.why else "",
        "evidence": list(run.why.evidence) if run.why else [],
        "culprits": shape(run.culprits),
        "step": run.step,
        "checkpoint_step": run.checkpoint_step,
        "steps_redone": run.steps_redone,
    }


def _job_view(one: JobLedger, *, whole: bool) -> Json:
    run = one.last
    found: Json = {
        "job": one.job,
        "shown_id": run.shown_id,
        "name": run.name,
        "user": user_name(run.uid),
        "account": run.account,
        "partition": run.partition,
        "started": one.runs[0].started,
        "ended": run.ended if run.ending else None,
        "state": run.end_text or ("running" if run.ending is None else run.ending.value),
        "runs": len(one.runs),
        "resumes": one.resumes,
        "steps_redone": one.steps_redone,
        "incidents": [_incident_view(incident) for incident in one.incidents],
        "sums": sums_view(one.sums),
    }
    if whole:
        found["history"] = [{"key": each.key, **run_view(each)} for each in one.runs]
        found["timeline"] = [shape(segment) for segment in one.segments]
    return found


def _incident_view(one: JobIncident) -> Json:
    run = one.run
    return {
        "restart": run.restart,
        "attempt": run.attempt,
        "culprits": shape(run.culprits),
        "cause": run.cause,
        "decision": run.decision.value if run.decision else None,
        "rule": run.why.rule if run.why else "",
        "why": run.why.text if run.why else "",
        "cases": list(run.cases),
        **one.instants,
        "steps_redone": run.steps_redone,
        "unknown": list(one.unknown),
    }


def _of_jobs(cases: list[Case], ledgers: list[JobLedger], choice: ReportChoice) -> list[Case]:
    """Return the repairs that hit the shown jobs; all repairs if the report is not filtered."""
    if not (choice.job or choice.user or choice.partition or choice.only is not None):
        return cases
    named = {id for one in ledgers for run in one.runs for id in run.cases}
    return [case for case in cases if case.id in named]


def _repair_view(case: Case, window: Window) -> Json:
    wanted = ("id", "node", "check", "fault_at", "detected", "marked", "replaced", "returned", "closed")
    rung = {"rung": case.rung.value, "trigger": case.trigger.value}
    return {**{name: getattr(case, name) for name in wanted}, **rung, "out_s": round(out_of_service_s(case, window), 3)}


def _groups(sums: Mapping[str, Sums]) -> dict[str, Json]:
    return {name: sums_view(each) for name, each in sums.items()}


def _number(query: Mapping[str, str], name: str) -> float:
    text = query.get(name, "0")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2**62:
        raise ValueError(f"{name}={printable(text, 40)}: use a number from 0")
    return value
