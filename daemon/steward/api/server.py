"""The HTTP API: reads are open on loopback, changes need proof (see `auth`). Errors are `{"error": ...}`."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from steward.api.admission import OwnHosts, admit_caller, own_names, words_of
from steward.api.auth import Gatekeeper, Refused
from steward.api.channels import test_channels
from steward.api.checks import check_deep
from steward.api.events import EventChoice, choose_events
from steward.api.explain_pages import change_run, explain_job_route, job_number
from steward.api.late import Endpoint
from steward.api.page import page_routes
from steward.api.quota_pages import quota_routes
from steward.api.routes import ROUTES, ReadRequest, View
from steward.api.shapes import JsonAnswer, event_shape, shape
from steward.api.source import Source
from steward.api.standstill import TellsStandstill
from steward.api.turns import Examination, News, Turns
from steward.api.views import approve
from steward.model.events import Event
from steward.model.leadership import Heads
from steward.model.order import Refusal, RefusalKind
from steward.model.text import printable
from steward.ports import PortError
from steward.workflows.commands import ArmCheck, Command, PauseOrder, ResetBreakers, ResumeActions

_FIGURES = "text/plain; version=0.0.4; charset=utf-8"
_MAX_EVENTS = 5000
_MAX_WAIT_S = 30.0
_MAX_WAITERS = 64


class Pages:
    """The handlers of changes, and of the pages that wait for events or an examination."""

    def __init__(self, source: Source, gatekeeper: Gatekeeper, news: News) -> None:
        self._source, self._gatekeeper, self._news = source, gatekeeper, news
        self._examination = Examination(source.doctor)
        self._searching = Turns(at_once=1, waiting=_MAX_WAITERS)

    async def doctor(self, _request: Request) -> Response:
        return JsonAnswer([shape(line) for line in await self._examination.lines()])

    async def events(self, request: Request) -> Response:
        """Return the events after `after`; if there are none yet, wait up to `wait_s` seconds for the first one."""
        choice = EventChoice.of(request.query_params, self._job_number)
        after = _number(request, "after", 0, 2**62)
        limit = _number(request, "limit", 100, _MAX_EVENTS)
        wait_s = _number(request, "wait_s", 0, _MAX_WAIT_S)
        until = asyncio.get_running_loop().time() + wait_s
        while True:
            found = await self._chosen(int(after), int(limit), choice)
            left = until - asyncio.get_running_loop().time()
            if found or left <= 0 or self._news.waiters >= _MAX_WAITERS:
                return JsonAnswer([event_shape(*one) for one in found])
            await self._news.wait(min(left, 1.0))

    async def _chosen(self, after: int, limit: int, choice: EventChoice) -> list[tuple[int, Event]]:
        """Return the chosen events; filtered searches run one at a time, because each may read every stored event."""
        async with contextlib.nullcontext() if choice.is_all else self._searching.turn():
            return await run_in_threadpool(choose_events, self._source.store, after, limit, choice)

    def _job_number(self, word: str) -> int:
        """Return the id of a job, also of one that Slurm has forgotten; of an array's task for a day after its end.

        Raises HTTPException.
        """
        found = job_number(word, self._source.latest())
        if found is None:
            raise HTTPException(404, f"job {printable(word, 40)} is not known to Slurm (any more)")
        return found

    async def pause(self, request: Request) -> Response:
        return await self._order(request, lambda who, said: PauseOrder(who=who, why=said.get("why", "")))

    async def hand_over(self, request: Request) -> Response:
        """Let another head lead. Raises Refusal if none could take over now."""
        who, _body = await admit_caller(request, self._gatekeeper)
        heads = self._source.heads()
        if heads is None or not heads.successors:
            raise Refusal(RefusalKind.CONFLICT, _no_successor(heads))
        self._source.hand_over(f"{who} asked for it")
        return JsonAnswer({"done": True, "by": who, "to": list(heads.successors)})

    async def approve(self, request: Request) -> Response:
        return await self._order(request, approve)

    async def resume_actions(self, request: Request) -> Response:
        return await self._order(request, lambda who, _said: ResumeActions(who=who))

    async def reset_breakers(self, request: Request) -> Response:
        return await self._order(request, lambda who, said: ResetBreakers(who=who, scope=said.get("scope", "")))

    async def arm_check(self, request: Request) -> Response:
        return await self._order(request, lambda who, said: ArmCheck(who=who, check=said.get("check", ""), armed=True))

    async def disarm_check(self, request: Request) -> Response:
        return await self._order(request, lambda who, said: ArmCheck(who=who, check=said.get("check", ""), armed=False))

    async def notify_test(self, request: Request) -> Response:
        """Send a test message and return each channel's result."""
        who, body = await admit_caller(request, self._gatekeeper)
        channel = words_of(body).get("channel", "")
        return JsonAnswer(await run_in_threadpool(test_channels, self._source.notify, who, channel))

    async def check_deep(self, request: Request) -> Response:
        return await self._order(request, check_deep)

    async def change_run(self, request: Request) -> Response:
        return await self._order(request, change_run)

    async def _order(self, request: Request, command: Callable[[str, Mapping[str, str]], Command]) -> Response:
        who, body = await admit_caller(request, self._gatekeeper)
        answer = await run_in_threadpool(self._source.commands.give, command(who, words_of(body)))
        return JsonAnswer({"done": True, "by": who, **({"runs": list(answer.runs)} if answer.runs else {})})


def _no_successor(heads: Heads | None) -> str:
    """Return why no other head could take over now."""
    if heads is None:
        return "this head has no other: two heads share a database (docs/operations.md)"
    why = "; ".join(f"{other.name}: {other.why_not}" for other in heads.others)
    return f"no other head could take over now: {why or 'none is named in agent.head'}"


def build(
    source: Source,
    gatekeeper: Gatekeeper,
    news: News,
    aws: Endpoint,
    hosts: Collection[str] = own_names(),
    passes_on: Middleware | None = None,
) -> Starlette:
    """Return the application: our own pages, and `aws` at `POST /`.

    `hosts` are the names of this head; `passes_on` passes its requests to another head while this one follows.
    """
    pages = Pages(source, gatekeeper, news)
    reads, heavy = Turns(at_once=4, waiting=64), Turns(at_once=1, waiting=8)
    routes = [
        *_reads(source, reads, heavy),
        Route("/v1/events", pages.events),
        Route("/v1/doctor", pages.doctor),
        explain_job_route(source, gatekeeper, reads),
        *quota_routes(source, gatekeeper, aws.read),
        *_orders(pages),
        *page_routes(source, news, reads, heavy),
        Route("/", aws.serve, methods=["POST"]),
    ]
    passing = [passes_on] if passes_on is not None else []
    around = [Middleware(OwnHosts, names=hosts), *passing, Middleware(TellsStandstill, source=source)]
    return Starlette(routes=routes, exception_handlers=ERRORS, middleware=around)


def _reads(source: Source, reads: Turns, heavy: Turns) -> Iterator[Route]:
    """Yield the routes of the table that have a view."""
    for one in ROUTES:
        if one.view is not None:
            yield (heavy if one.is_heavy else reads).route(one.path, _page(source, one.view, is_json=bool(one.answer)))


def _page(source: Source, view: View, *, is_json: bool) -> Callable[[Request], Response]:
    def page(request: Request) -> Response:
        path = {name: str(value) for name, value in request.path_params.items()}
        found = view(ReadRequest(source=source, path=path, query=request.query_params))
        return JsonAnswer(found) if is_json else Response(found, media_type=_FIGURES)

    return page


def _orders(pages: Pages) -> list[Route]:
    """Return the routes that change something."""
    return [
        Route("/v1/cases/approve", pages.approve, methods=["POST"]),
        Route("/v1/head/handover", pages.hand_over, methods=["POST"]),
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
    return JsonAnswer({"error": detail}, status_code=status)


def error_handler(status: int, headers: Mapping[str, str] | None = None) -> Callable[[Request, Exception], Response]:
    """Return a handler that answers errors whose text is meant for the caller."""
    return lambda _request, error: JsonAnswer({"error": str(error)}, status_code=status, headers=headers)


ERRORS: dict[Any, Callable[[Request, Exception], Response]] = {
    HTTPException: _http_error,
    Refused: error_handler(403),
    Refusal: error_handler(409),
    PortError: error_handler(503),
}
"""How our pages answer exceptions."""
