"""The HTTP API: reads are open on loopback, changes need proof (see `auth`). All is JSON; errors: `{"error": ...}`."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from steward.api.admission import OwnHosts, admitted, own_names, words_of
from steward.api.auth import Gatekeeper, Refused
from steward.api.checks import (
    check_deep,
    checks_view,
    deep_view,
    deeps_view,
    lemons_view,
    node_checks_view,
    trials_view,
)
from steward.api.events import EventChoice, channels_view, choose_events, test_channels
from steward.api.explain_pages import change_run, explain_routes, job_number, runs_view
from steward.api.late import Endpoint
from steward.api.page import page_routes
from steward.api.quota_pages import quota_routes
from steward.api.report_pages import report_routes
from steward.api.routes import OPENAPI, document
from steward.api.shapes import event_shape, shape
from steward.api.source import Source
from steward.api.standstill import TellsStandstill
from steward.api.turns import Examination, News, Turns
from steward.api.views import (
    approve,
    breakers_view,
    cases_view,
    draft_of,
    jobs_view,
    nodes_view,
    plan_view,
    status_view,
)
from steward.model.events import Event
from steward.model.ids import NodeName
from steward.model.order import Refusal
from steward.model.text import printable
from steward.ports import PortError
from steward.workflows.commands import ArmCheck, Command, PauseOrder, ResetBreakers, ResumeActions

_MAX_EVENTS = 5000
_MAX_WAIT_S = 30.0
_MAX_WAITERS = 64


class Pages:
    """One method a page. Those that are not `async` run in a thread: a big cluster's page does not hold up beats."""

    def __init__(self, source: Source, gatekeeper: Gatekeeper, news: News) -> None:
        self._source, self._gatekeeper, self._news = source, gatekeeper, news
        self._examination = Examination(source.doctor)
        self._searching = Turns(at_once=1, waiting=_MAX_WAITERS)

    def status(self, _request: Request) -> Response:
        snapshot = self._source.snapshot()
        return JSONResponse(status_view(self._source, snapshot, draft_of(self._source, snapshot)))

    def nodes(self, _request: Request) -> Response:
        return JSONResponse(nodes_view(self._source, self._source.snapshot()))

    def cases(self, _request: Request) -> Response:
        return JSONResponse(cases_view(self._source.snapshot()))

    def jobs(self, _request: Request) -> Response:
        return JSONResponse(jobs_view(self._source.snapshot()))

    def plan(self, _request: Request) -> Response:
        snapshot, now = self._source.snapshot(), self._source.clock.now()
        return JSONResponse(plan_view(self._source, snapshot, now))

    def lemons(self, _request: Request) -> Response:
        return JSONResponse(lemons_view(self._source.snapshot(), self._source.clock.now()))

    async def doctor(self, _request: Request) -> Response:
        return JSONResponse([shape(line) for line in await self._examination.lines()])

    def metrics(self, _request: Request) -> Response:
        standstill, now = self._source.standstill(), self._source.clock.now()
        text = self._source.metrics.text(0.0 if standstill is None else max(now - standstill.since, 0.001))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def events(self, request: Request) -> Response:
        """`after` and `wait_s` follow: the answer comes with the first new event, or empty after `wait_s`."""
        choice = EventChoice.of(request.query_params, self._job_number)
        after = _number(request, "after", 0, 2**62)
        limit = _number(request, "limit", 100, _MAX_EVENTS)
        wait_s = _number(request, "wait_s", 0, _MAX_WAIT_S)
        until = asyncio.get_running_loop().time() + wait_s
        while True:
            found = await self._chosen(int(after), int(limit), choice)
            left = until - asyncio.get_running_loop().time()
            if found or left <= 0 or self._news.waiters >= _MAX_WAITERS:
                return JSONResponse([event_shape(*one) for one in found])
            await self._news.wait(min(left, 1.0))

    async def _chosen(self, after: int, limit: int, choice: EventChoice) -> list[tuple[int, Event]]:
        """One search at a time: each may go through every event that is kept."""
        async with contextlib.nullcontext() if choice.is_all else self._searching.turn():
            return await run_in_threadpool(choose_events, self._source.store, after, limit, choice)

    def _job_number(self, word: str) -> int:
        """Also of a job that Slurm has forgotten; of a task of an array only while Slurm knows it."""
        latest = self._source.latest()
        found = job_number(word, latest.seen) if latest else None
        if found is None:
            raise HTTPException(404, f"job {printable(word, 40)} is not known to Slurm (any more)")
        return found

    async def pause(self, request: Request) -> Response:
        return await self._order(request, lambda who, said: PauseOrder(who=who, why=said.get("why", "")))

    async def approve(self, request: Request) -> Response:
        return await self._order(request, approve)

    async def resume_actions(self, request: Request) -> Response:
        return await self._order(request, lambda who, _said: ResumeActions(who=who))

    def breakers(self, _request: Request) -> Response:
        return JSONResponse(breakers_view(draft_of(self._source, self._source.snapshot())))

    def checks(self, request: Request) -> Response:
        """With `node`, as they stand on that one."""
        snapshot, name = self._source.snapshot(), NodeName(request.query_params.get("node", ""))
        if not name:
            return JSONResponse(checks_view(self._source.checks, snapshot))
        if name not in snapshot.seen.nodes and name not in snapshot.seen.agents:
            raise HTTPException(404, f"{name} is not a node of this cluster: `steward nodes` lists them")
        return JSONResponse(node_checks_view(self._source.checks, name, snapshot))

    def trials(self, _request: Request) -> Response:
        return JSONResponse(trials_view(self._source.snapshot()))

    async def reset_breakers(self, request: Request) -> Response:
        return await self._order(request, lambda who, said: ResetBreakers(who=who, scope=said.get("scope", "")))

    async def arm_check(self, request: Request) -> Response:
        return await self._order(request, lambda who, said: ArmCheck(who=who, check=said.get("check", ""), armed=True))

    async def disarm_check(self, request: Request) -> Response:
        return await self._order(request, lambda who, said: ArmCheck(who=who, check=said.get("check", ""), armed=False))

    def notify(self, _request: Request) -> Response:
        return JSONResponse(channels_view(self._source.notify))

    async def notify_test(self, request: Request) -> Response:
        """Sends a test message; what went wrong is told for each channel."""
        who, body = await admitted(request, self._gatekeeper)
        channel = words_of(body).get("channel", "")
        return JSONResponse(await run_in_threadpool(test_channels, self._source.notify, who, channel))

    def openapi(self, _request: Request) -> Response:
        return JSONResponse(document(self._source.version))

    def deeps(self, _request: Request) -> Response:
        return JSONResponse(deeps_view(self._source.snapshot()))

    def deep(self, request: Request) -> Response:
        id = str(request.path_params["id"])
        found = deep_view(id, self._source.snapshot())
        if found is None:
            raise HTTPException(404, f"there is no deep check {id}: `steward check list` shows them")
        return JSONResponse(found)

    async def check_deep(self, request: Request) -> Response:
        return await self._order(request, check_deep)

    def elastic(self, _request: Request) -> Response:
        return JSONResponse(runs_view(self._source.snapshot(), self._source.want.elastic))

    async def change_run(self, request: Request) -> Response:
        return await self._order(request, change_run)

    async def _order(self, request: Request, command: Callable[[str, Mapping[str, str]], Command]) -> Response:
        who, body = await admitted(request, self._gatekeeper)
        answer = await run_in_threadpool(self._source.commands.give, command(who, words_of(body)))
        return JSONResponse({"done": True, "by": who, **({"runs": list(answer.runs)} if answer.runs else {})})


def build(
    source: Source, gatekeeper: Gatekeeper, news: News, aws: Endpoint, hosts: Collection[str] = own_names()
) -> Starlette:
    """The application: our own pages, and `aws` at the root for AWS clients. `hosts`: names that it is called by."""
    pages = Pages(source, gatekeeper, news)
    reads, heavy = Turns(at_once=4, waiting=64), Turns(at_once=1, waiting=8)
    routes = [
        reads.route("/v1/status", pages.status),
        reads.route("/v1/nodes", pages.nodes),
        reads.route("/v1/cases", pages.cases),
        reads.route("/v1/jobs", pages.jobs),
        *report_routes(source, heavy),
        Route("/v1/events", pages.events),
        *explain_routes(source, gatekeeper, reads, heavy),
        *quota_routes(source, gatekeeper, aws.read, reads),
        heavy.route("/v1/plan", pages.plan),
        Route("/v1/doctor", pages.doctor),
        reads.route("/v1/breakers", pages.breakers),
        reads.route("/v1/lemons", pages.lemons),
        reads.route("/v1/checks", pages.checks),
        reads.route("/v1/checks/trials", pages.trials),
        reads.route("/v1/checks/deep", pages.deeps),
        reads.route("/v1/checks/deep/{id}", pages.deep),
        reads.route("/v1/elastic", pages.elastic),
        reads.route("/v1/notify", pages.notify),
        Route(OPENAPI, pages.openapi),
        reads.route("/metrics", pages.metrics),
        *_orders(pages),
        *page_routes(source, news, reads, heavy),
        Route("/", aws.serve, methods=["POST"]),
    ]
    around = [Middleware(OwnHosts, names=hosts), Middleware(TellsStandstill, source=source)]
    return Starlette(routes=routes, exception_handlers=ERRORS, middleware=around)


def _orders(pages: Pages) -> list[Route]:
    """The routes that change something."""
    return [
        Route("/v1/cases/approve", pages.approve, methods=["POST"]),
        Route("/v1/pause", pages.pause, methods=["POST"]),
        Route("/v1/resume-actions", pages.resume_actions, methods=["POST"]),
        Route("/v1/breakers/reset", pages.reset_breakers, methods=["POST"]),
        Route("/v1/checks/arm", pages.arm_check, methods=["POST"]),
        Route("/v1/checks/deep", pages.check_deep, methods=["POST"]),
        Route("/v1/checks/disarm", pages.disarm_check, methods=["POST"]),
        Route("/v1/elastic", pages.change_run, methods=["POST"]),
        Route("/v1/notify/test", pages.notify_test, methods=["POST"]),
    ]


def _number(request: Request, name: str, default: float, highest: float) -> float:
    text = request.query_params.get(name)
    try:
        value = default if text is None else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= highest:
        raise HTTPException(400, f"{name}={text}: use a number from 0 to {highest:g}")
    return value


def _http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail: Any = error.detail if isinstance(error, HTTPException) else str(error)
    return JSONResponse({"error": detail}, status_code=status)


def says(status: int, headers: Mapping[str, str] | None = None) -> Callable[[Request, Exception], Response]:
    """The answer to an error whose text is for the caller."""
    return lambda _request, error: JSONResponse({"error": str(error)}, status_code=status, headers=headers)


ERRORS: dict[Any, Callable[[Request, Exception], Response]] = {
    HTTPException: _http_error,
    Refused: says(403),
    Refusal: says(409),
    PortError: says(503),
}
"""The answers of our pages to errors."""
