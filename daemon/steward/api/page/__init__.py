"""The status page at `/`: server-rendered, read-only, live by server-sent events, and whole without JavaScript."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cached_property
from importlib import import_module, resources
from types import MappingProxyType
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from steward.api.explain_pages import Explained, explained_job, explained_node, job_now, known_node
from steward.api.page.view import FILTERS, page_view
from steward.api.shapes import event_shape
from steward.api.source import Source
from steward.api.turns import News, Turns
from steward.api.views import plan_view
from steward.model.text import harmless, printable
from steward.ports import Retryable
from steward.workflows.snapshot import Snapshot

_MAX_WATCHERS = 32
_LEAST_S = 2.0
"""A page that is watched is made again at most so often."""
_KEEPALIVE_S = 15.0
_KINDS = MappingProxyType({"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"})
_HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
)
"""Nothing from elsewhere, nothing inline, in nobody's frame."""
_PLAN_S = 10.0
"""Seconds between two dry runs of the plan at least: for a big cluster they are the dear part."""


def page_routes(source: Source, news: News, turns: Turns) -> list[Route]:
    """All may read them, as the JSON pages with the same content; what a job printed is in none of them."""
    pages = _Pages(source, news)
    return [
        turns.route("/", _in_words(pages.whole)),
        turns.route("/page/main", _in_words(pages.main)),
        Route("/page/news", pages.news),
        Route("/page/{file}", pages.file),
        turns.route("/node/{name}", _in_words(pages.node)),
        turns.route("/job/{job}", _in_words(pages.job)),
    ]


def _harmless(value: Any) -> Any:
    """The one door of every value to the page; what is markup was made here."""
    return harmless(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


class _Pages:
    def __init__(self, source: Source, news: News) -> None:
        self._source, self._news, self._watchers = source, news, 0
        self._fragment = Fragment(source, lambda view: self._rendered("main.html", view), _LEAST_S)

    @cached_property
    def _templates(self) -> Any:
        """Read when somebody looks at a page first: a head's start does not wait for them."""
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

    def whole(self, _request: Request) -> Response:
        return self._made("page.html", main=self._fragment.html(), cluster=self._source.cluster)

    def main(self, _request: Request) -> Response:
        """The part of the page that changes, without the frame around it."""
        return HTMLResponse(self._fragment.html(), headers=dict(_HEADERS))

    def node(self, request: Request) -> Response:
        source, name = self._source, str(request.path_params["name"])
        snapshot = source.snapshot()
        return self._explained(f"Node {name}", explained_node(known_node(name, snapshot), source, snapshot))

    def job(self, request: Request) -> Response:
        source, word = self._source, str(request.path_params["job"])
        id, snapshot = job_now(word, source, source.snapshot())
        return self._explained(f"Job {word}", explained_job(id, source, snapshot))

    def file(self, request: Request) -> Response:
        name = str(request.path_params["file"])
        if name not in _KINDS:
            raise HTTPException(404, f"there is no file {printable(name, 40)}")
        text = (resources.files("steward.api.page") / "static" / name).read_text(encoding="utf-8")
        return Response(text, media_type=_KINDS[name], headers=dict(_HEADERS))

    async def news(self, _request: Request) -> Response:
        """A line for each cycle that ended. 503 where too many watch: their pages ask by themselves, more rarely."""
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
                else:
                    yield ": still here\n\n"
                await asyncio.sleep(_LEAST_S)
                await self._news.wait(_KEEPALIVE_S)
        finally:
            self._watchers -= 1

    def _explained(self, title: str, explained: Explained) -> Response:
        lines, events = explained
        shown = [event_shape(*one) for one in reversed(events)]
        return self._made("explained.html", title=title, lines=lines, events=shown, cluster=self._source.cluster)

    def _made(self, template: str, **values: Any) -> Response:
        return HTMLResponse(self._rendered(template, values), headers=dict(_HEADERS))


def _in_words(page: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Make a page show errors as a plain line, not as JSON; while the head starts the browser asks again."""

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


class Fragment:
    """Safe to ask from several threads."""

    def __init__(self, source: Source, rendered: Callable[[Mapping[str, Any]], str], least_s: float) -> None:
        self._source, self._rendered, self._least_s = source, rendered, least_s
        self._lock = threading.Lock()
        self._html, self._made = "", 0.0
        self._of: Snapshot | None = None
        self._actions: list[dict[str, object]] = []
        self._planned: Snapshot | None = None
        self._planned_at = 0.0

    def html(self) -> str:
        """Raises Retryable before the head's first cycle has ended."""
        with self._lock:
            snapshot, now = self._source.snapshot(), self._source.clock.now()
            if snapshot is not self._of or not 0 <= now - self._made < self._least_s:
                view = page_view(self._source, snapshot, self._would_do(snapshot, now), now)
                self._html, self._made, self._of = self._rendered(view), now, snapshot
            return self._html

    def _would_do(self, snapshot: Snapshot, now: float) -> list[dict[str, object]]:
        if self._planned is None or (snapshot is not self._planned and not 0 <= now - self._planned_at < _PLAN_S):
            self._actions = plan_view(self._source, snapshot, now)["actions"]
            self._planned, self._planned_at = snapshot, now
        return self._actions
