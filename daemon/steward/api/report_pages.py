"""The pages of the ledger."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from steward.api.elastic_pages import run_report
from steward.api.report import ReportChoice, history_view, report_view
from steward.api.source import Source
from steward.api.turns import Turns
from steward.model.ids import JobId
from steward.model.text import printable

_DIGITS = 10


def report_routes(source: Source, turns: Turns) -> list[Route]:
    """Each in its turn: a year of a big cluster takes a while."""

    def report(request: Request) -> Response:
        return report_page(source, request.query_params)

    def history(request: Request) -> Response:
        return history_page(source, str(request.path_params["job"]))

    return [turns.route("/v1/report", report), turns.route("/v1/jobs/{job}/history", history)]


def report_page(source: Source, query: Mapping[str, str], only: int | None = None) -> Response:
    """`only`: of this user's jobs alone. Raises HTTPException."""
    now = source.clock.now()
    try:
        choice = replace(ReportChoice.of(query, now), only=only)
    except ValueError as error:
        raise HTTPException(400, str(error)) from error
    found = report_view(source.store, choice, now)
    if choice.job and not found["jobs"]:
        raise _not_there(choice.job)
    snapshot = source.latest() if choice.job else None
    run = snapshot.memory.elastic.get(JobId(choice.job)) if snapshot is not None else None
    if snapshot is not None and run is not None and only in (None, run.uid):
        found["elastic"] = run_report(snapshot, run)
    return JSONResponse(found)


def history_page(source: Source, word: str, only: int | None = None) -> Response:
    """`only`: this user's runs alone, where several had a job of this number. Raises HTTPException."""
    if not (word.isascii() and word.isdigit() and len(word) <= _DIGITS):
        raise HTTPException(404, f"{printable(word, 40)} is not a job number")
    found = history_view(source.store, int(word), only)
    if not found:
        raise _not_there(int(word))
    return JSONResponse(found)


def _not_there(job: int) -> HTTPException:
    return HTTPException(404, f"job {job} is not in the ledger: it never opted in, or it is too long ago")
