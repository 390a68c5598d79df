"""The pages of the ledger."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from steward.api.report import ReportChoice, history_view, report_view
from steward.api.source import Source
from steward.api.turns import Turns
from steward.model.text import printable

_DIGITS = 10


def report_routes(source: Source, turns: Turns) -> list[Route]:
    """Each in its turn: a year of a big cluster takes a while."""

    def report(request: Request) -> Response:
        now = source.clock.now()
        try:
            choice = ReportChoice.of(request.query_params, now)
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        found = report_view(source.store, choice, now)
        if choice.job and not found["jobs"]:
            raise HTTPException(404, f"job {choice.job} is not in the ledger: it never opted in, or it is too long ago")
        return JSONResponse(found)

    def history(request: Request) -> Response:
        word = str(request.path_params["job"])
        if not (word.isascii() and word.isdigit() and len(word) <= _DIGITS):
            raise HTTPException(404, f"{printable(word, 40)} is no number of a job")
        job = int(word)
        found = history_view(source.store, job)
        if not found:
            raise HTTPException(404, f"job {job} is not in the ledger: it never opted in, or it is too long ago")
        return JSONResponse(found)

    return [turns.route("/v1/report", report), turns.route("/v1/jobs/{job}/history", history)]
