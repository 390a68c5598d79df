"""Serve the pages for people at `/`: read-only, updated by server-sent events, complete without JavaScript.

Each page is one row of PAGES: a view makes a record from one look, and a template shows the record.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module, resources
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from steward.api.page import cases, groups, jobs, nodes, overview, report, trouble
from steward.api.page.look import Look, PageLooks, PageRequest
from steward.api.page.words import FILTERS
from steward.api.source import Source
from steward.api.turns import News, Turns
from steward.model.ids import JOB_WORD, NodeName
from steward.model.text import harmless, printable
from steward.ports import Retryable

_MAX_WATCHERS = 32
_LEAST_S = 2.0
"""A browser is told of new cycles at most this often."""
_KEEPALIVE_S = 15.0
_KINDS = MappingProxyType({"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"})
_HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
)
"""No content from other hosts, nothing inline, no framing. Forms only search (GET)."""
_PART = "steward-part"
"""The header of a request for the changing part of a page only, without the frame around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoute:
    """A page with its path, template and view.

    The page's heading is `title`, followed by the name from the path, if any. A `heavy` page may take long: it is made
    in a turn of its own, and is not refreshed while it is open.
    """

    path: str
    template: str
    title: str
    view: Callable[[Look, PageRequest], Any]
    heavy: bool = False

    @property
    def is_list(self) -> bool:
        return "{" not in self.path


PAGES = (
    PageRoute(path="/", template="overview.html", title="Overview", view=overview.overview),
    PageRoute(path="/nodes", template="nodes.html", title="Nodes", view=nodes.nodes),
    PageRoute(path="/node/{name}", template="node.html", title="Node", view=nodes.node),
    PageRoute(path="/jobs", template="jobs.html", title="Jobs", view=jobs.jobs),
    PageRoute(path="/job/{name}", template="job.html", title="Job", view=jobs.job),
    PageRoute(path="/cases", template="cases.html", title="Repairs", view=cases.cases),
    PageRoute(path="/case/{name}", template="case.html", title="Repair", view=cases.case),
    PageRoute(path="/incidents", template="incidents.html", title="Incidents", view=trouble.incidents),
    PageRoute(path="/incident/{name}", template="incident.html", title="Incident", view=trouble.incident),
    PageRoute(path="/checks", template="checks.html", title="Checks", view=trouble.checks),
    PageRoute(path="/check/{name}", template="check.html", title="Check", view=trouble.check),
    PageRoute(path="/groups", template="groups.html", title="Groups", view=groups.groups),
    PageRoute(path="/group/{name}", template="group.html", title="Group", view=groups.group),
    PageRoute(path="/quotas", template="quotas.html", title="Quotas", view=groups.quotas),
    PageRoute(path="/quota/{name}", template="quota.html", title="Quota of", view=groups.quota),
    PageRoute(path="/elastic", template="runs.html", title="Elastic", view=groups.runs),
    PageRoute(path="/elastic/{name}", template="run.html", title="Elastic run", view=groups.run),
    PageRoute(path="/report", template="report.html", title="Report", view=report.report, heavy=True),
    PageRoute(path="/plan", template="plan.html", title="Plan", view=trouble.plan, heavy=True),
    PageRoute(path="/events", template="events.html", title="Events", view=trouble.events, heavy=True),
)


def page_routes(source: Source, news: News, reads: Turns, heavy: Turns) -> list[Route]:
    """Return the routes of the pages: all users may read them, and no page contains what a job printed."""
    pages = _Pages(source, news)
    return [
        *((heavy if page.heavy else reads).route(page.path, _in_words(pages.serving(page))) for page in PAGES),
        reads.route("/search", _in_words(pages.search)),
        Route("/page/news", pages.news),
        Route("/page/{file}", pages.file),
    ]


def _harmless(value: Any) -> Any:
    """Return a value without control characters; every value of a page passes here."""
    # Markup was made by the pages themselves, from values that are harmless already.
    return harmless(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


class _Pages:
    def __init__(self, source: Source, news: News) -> None:
        self._source, self._news, self._watchers = source, news, 0
        self._looks = PageLooks(source)

    @cached_property
    def _templates(self) -> Any:
        """The templates, loaded at the first request for a page: the head starts without them."""
        jinja2 = import_module("jinja2")
        templates = jinja2.Environment(
            loader=jinja2.PackageLoader("steward.api.page"),
            autoescape=True,
            finalize=_harmless,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        templates.filters.update(FILTERS)
        return templates

    def _rendered(self, template: str, values: Mapping[str, Any]) -> str:
        return str(self._templates.get_template(template).render(**values))

    def serving(self, page: PageRoute) -> Callable[[Request], Response]:
        """Return the handler of a page, which answers with the whole page or only its changing part."""

        def serve(request: Request) -> Response:
            asked = PageRequest.of(request.path_params, request.query_params)
            main = self._main(page, asked)
            if _PART in request.headers:
                return HTMLResponse(main, headers=dict(_HEADERS))
            title = page.title if page.is_list else f"{page.title} {asked.name}"
            whole = {"main": main, "title": title, "page": page, "pages": PAGES, "cluster": self._source.cluster}
            return HTMLResponse(self._rendered("frame.html", whole), headers=dict(_HEADERS))

        return serve

    def _main(self, page: PageRoute, asked: PageRequest) -> str:
        def made(look: Look) -> str:
            return self._rendered(page.template, {"it": page.view(look, asked), "now": look.now, "title": page.title})

        return made(self._looks.apart()) if page.heavy else self._looks.page((page.path, asked), made)

    def search(self, request: Request) -> Response:
        """Redirect to the node, job or repair of that name; else to the nodes whose names contain the word."""
        word, snapshot = PageRequest.of({}, request.query_params).word("q"), self._source.snapshot()
        memory = snapshot.memory
        place = f"/nodes?q={quote(word, safe='')}"
        if NodeName(word) in snapshot.seen.nodes:
            place = f"/node/{quote(word, safe='')}"
        elif JOB_WORD.fullmatch(word):
            place = f"/job/{quote(word, safe='')}"
        elif any(word in (case.id, case.number) for case in memory.cases.values()):
            place = f"/case/{quote(word, safe='')}"
        return RedirectResponse(place, status_code=303, headers=dict(_HEADERS))

    def file(self, request: Request) -> Response:
        name = str(request.path_params["file"])
        if name not in _KINDS:
            raise HTTPException(404, f"there is no file {printable(name, 40)}")
        text = (resources.files("steward.api.page") / "static" / name).read_text(encoding="utf-8")
        return Response(text, media_type=_KINDS[name], headers=dict(_HEADERS))

    async def news(self, _request: Request) -> Response:
        """Stream a line for each cycle that ends; answer 503 if too many browsers watch."""
        # A page that gets 503 asks again by itself, more rarely.
        if self._watchers >= _MAX_WATCHERS:
            raise HTTPException(503, "too many watch the page now")
        return StreamingResponse(self._lines(), media_type="text/event-stream", headers=dict(_HEADERS))

    async def _lines(self) -> AsyncIterator[str]:
        self._watchers += 1
        try:
            shown = None
            while True:
                latest = self._source.latest()
                if latest is not None and latest.number != shown:
                    shown = latest.number
                    yield f"data: {shown}\n\n"
                    await asyncio.sleep(_LEAST_S)
                else:
                    await self._news.wait(_KEEPALIVE_S)
                    yield ": still here\n\n"
        finally:
            self._watchers -= 1


def _in_words(page: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return a handler that answers errors in plain text; while the head starts, the browser asks again."""

    def said(request: Request) -> Response:
        try:
            return page(request)
        except HTTPException as error:
            return Response(
                error.detail, status_code=error.status_code, media_type="text/plain", headers=dict(_HEADERS)
            )
        except Retryable as error:
            headers = {**_HEADERS, "Refresh": "5"}
            return Response(f"{error}\n", status_code=503, media_type="text/plain", headers=headers)

    return said
