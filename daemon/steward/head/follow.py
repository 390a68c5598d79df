"""Pass a follower's requests to the head that leads, and answer those that another head passes here.

A passed request has the rights of its caller, no more and no less: the proof in it (MUNGE or an AWS signature) goes on
as it came and is judged by the leader alone, and what is open to any user of a head's host is open to those of the
other head's. The check of the Host header is the follower's, where the caller's connection ends.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steward.adapters.wire.frames import Channel, Gone, why_unsendable
from steward.adapters.wire.head_messages import PassedAnswer, PassedRequest, passed_request_frame
from steward.adapters.wire.passing import (
    MAX_BODY,
    pieces,
    read_answer,
    read_request,
    send_answer,
    send_body,
    send_request,
)
from steward.api.admission import PASSED, READ_S, TooLong, body_of
from steward.api.metrics import FIGURES
from steward.api.shapes import JsonAnswer
from steward.model.access import FOLLOWS_HEADER
from steward.model.leadership import Leadership
from steward.model.text import printable
from steward.ports import PortError

log = logging.getLogger(__name__)

HTTP, USERS = "http", "users"
"""The doors of a head: `head.http` and `head.users_http`."""
WAIT_S = 7.0
"""How long a request waits for a head that leads and has looked; the `steward` command gives up a page after 8 s."""
_LOOK_S = 0.1
_LEAD_LOOK_S = 0.5
"""How often a request that waits for its answer looks whether the lead has changed."""
_TAKEN_S = 30.0
"""How long the other head may take to read an answer to its end."""
_AGAIN_S = "2"
_READS = ("GET", "HEAD")
_BETWEEN_TWO = ("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect", "date", "server")
"""Headers of one connection only, and those that each server adds itself."""
_LONGEST = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """What a follower needs to pass requests on.

    `leadership` returns the head that leads, and `has_looked` whether this head has a picture to answer from, once it
    leads; neither blocks. `open` connects to another head.
    """

    leadership: Callable[[], Leadership]
    open: Callable[[str], Awaitable[Channel]]
    has_looked: Callable[[], bool] = lambda: True
    wait_s: float = WAIT_S

    def at(self, door: str) -> Middleware:
        """Return the middleware for the pages behind a door."""
        return Middleware(PassesOn, door=door, passing=self)


class PassesOn:
    """A middleware that passes all requests at one door on while this head follows, but for its own figures."""

    def __init__(self, app: ASGIApp, door: str, passing: Passing) -> None:
        self._app, self._door, self._passing = app, door, passing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_mine = self._passing.leadership().is_mine
        if scope["type"] != "http" or scope["path"] == FIGURES or (is_mine and self._passing.has_looked()):
            await self._app(scope, receive, send)
        elif (body := await _body(scope, receive, send)) is not None:
            await self._pass_on(scope, body, receive, send)

    async def _pass_on(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Answer the request, unless its caller leaves before."""
        gone = asyncio.ensure_future(_until_gone(receive))
        answering = asyncio.ensure_future(self._answer(scope, body, gone, send))
        try:
            await asyncio.wait((gone, answering), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            gone.cancel()
            answering.cancel()
            await asyncio.gather(gone, answering, return_exceptions=True)

    async def _answer(self, scope: Scope, body: bytes, gone: "asyncio.Future[None]", send: Send) -> None:
        """Have the leader answer; wait for one, and ask the next one where that does no harm."""
        request, now = _request_of(scope, self._door), asyncio.get_running_loop().time
        if why := why_unsendable(passed_request_frame(request)):
            await _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"its headers are too long: {why}")(
                scope, _nothing, send
            )
            return
        until, why = now() + self._passing.wait_s, ""
        while True:
            lead = self._passing.leadership()
            if lead.is_mine and (self._passing.has_looked() or now() >= until):
                await self._app(scope, _once(body, gone), send)
                return
            if PASSED in scope and not lead.is_mine:
                await _refusal(HTTPStatus.SERVICE_UNAVAILABLE, "this head does not lead any more: ask again")(
                    scope, _nothing, send
                )
                return
            if lead.leader and not lead.is_mine:
                why = await self._ask(lead, request, body, scope, send)
                if not why:
                    return
                why = f"{lead.leader} leads, but does not answer here: {why}"
            if now() >= until:
                text = f"this head follows, and {why or 'no head leads now'}; `steward doctor` at the other head, or "
                await _refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"{text}`journalctl -u stewardd` on both, says why")(
                    scope, _nothing, send
                )
                return
            await asyncio.sleep(_LOOK_S)

    async def _ask(self, lead: Leadership, request: PassedRequest, body: bytes, scope: Scope, send: Send) -> str:
        """Pass the request to the leader and its answer to the caller.

        Return why not, if the leader did not get the request, or if it was a read; empty if there is an answer.
        """
        try:
            channel = await self._passing.open(lead.leader)
        except PortError as error:
            return str(error)
        try:
            await send_request(channel, request, body)
            answer = await self._answer_of(channel, lead)
            await send({"type": "http.response.start", "status": answer.status, "headers": _split(answer.headers)})
        except PortError as error:
            if request.method in _READS:
                return str(error)
            text = f"{lead.leader} ended before it answered ({error}): whether it did what was asked is not known here"
            await _refusal(HTTPStatus.BAD_GATEWAY, f"{text}; look before you ask again", is_undone=False)(
                scope, _nothing, send
            )
            return ""
        else:
            await _relay(channel, send, lead.leader)
            return ""
        finally:
            channel.close()

    async def _answer_of(self, channel: Channel, lead: Leadership) -> PassedAnswer:
        """Return the beginning of the answer. Raises PortError, also if another head has taken the lead meanwhile."""
        reading = asyncio.ensure_future(read_answer(channel))
        try:
            while not (await asyncio.wait((reading,), timeout=_LEAD_LOOK_S))[0]:
                if self._passing.leadership().epoch != lead.epoch:
                    raise Gone("it lost the lead")
            return reading.result()
        finally:
            reading.cancel()


async def _relay(channel: Channel, send: Send, leader: str) -> None:
    """Pass the body of an answer on; leave it unfinished if the leader ends, so that the caller sees it cut off."""
    try:
        async for data in pieces(channel):
            await send({"type": "http.response.body", "body": data, "more_body": True})
    except PortError as error:
        log.warning("an answer of %s was cut off: %s", leader, error)
        return
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _body(scope: Scope, receive: Receive, send: Send) -> bytes | None:
    """Return the request's body; None, after a refusal, if it is too long or does not come."""
    try:
        return await body_of(Request(scope, receive), most=MAX_BODY)
    except TooLong:
        refusal = _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body of more than {MAX_BODY} bytes")
    except TimeoutError:
        refusal = _refusal(HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {READ_S:g} s")
    except ClientDisconnect:
        return None
    await refusal(scope, receive, send)
    return None


def _refusal(status: HTTPStatus, text: str, *, is_undone: bool = True) -> JsonAnswer:
    """Return an answer of the follower itself. `is_undone`: no head did anything for the request."""
    headers = {FOLLOWS_HEADER: "refused"} if is_undone else {}
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = _AGAIN_S
    return JsonAnswer({"error": printable(text, 1000), "message": printable(text, 1000)}, status, headers)


def _request_of(scope: Scope, door: str) -> PassedRequest:
    """Return the request as it is passed on, without headers that only concern the caller's connection."""
    headers = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"])
    client = scope.get("client")
    raw = scope.get("raw_path")
    return PassedRequest(
        door=door,
        method=scope["method"],
        path=raw.decode("latin-1") if raw else quote(scope["path"]),
        query=scope["query_string"].decode("latin-1"),
        headers=tuple(_lines(headers)),
        client=str(client[0]) if client else "",
    )


def _lines(headers: Any) -> list[str]:
    lines = [f"{name}: {value}" for name, value in headers if name not in _BETWEEN_TWO]
    return [line for line in lines if printable(line, _LONGEST) == line]


def _split(lines: Collection[str]) -> list[tuple[bytes, bytes]]:
    pairs = (line.partition(": ") for line in lines)
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, _, value in pairs]


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def _once(body: bytes, gone: "asyncio.Future[None]") -> Receive:
    """Return an ASGI `receive` that gives the body, and then waits until the peer is gone."""
    given = False

    async def receive() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(gone)
        return {"type": "http.disconnect"}

    return receive


# The leader's side


async def answer_passed(channel: Channel, doors: Callable[[str], ASGIApp | None]) -> None:
    """Answer the one request on this connection by the application behind its door. Raises PortError."""
    request, body = await read_request(channel)
    app = doors(request.door)
    if app is None or not request.path.startswith("/"):
        raise Gone("a passed request names no page of this head")
    gone = asyncio.ensure_future(_until_closed(channel))
    answering = asyncio.ensure_future(app(_scope_of(request), _once(body, gone), _Answer(channel).send))
    try:
        await asyncio.wait((gone, answering), return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            answering.result()
            await asyncio.wait((gone,), timeout=_TAKEN_S)  # a close before would drop what is not sent yet
    finally:
        gone.cancel()
        answering.cancel()
        await asyncio.gather(gone, answering, return_exceptions=True)


async def _until_closed(channel: Channel) -> None:
    with contextlib.suppress(PortError):
        while True:
            await channel.receive()


def _scope_of(request: PassedRequest) -> Scope:
    """Return the ASGI scope in which the application sees the request as if it had come here."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": request.method,
        "path": unquote(request.path),
        "raw_path": request.path.encode("latin-1"),
        "query_string": request.query.encode("latin-1"),
        "root_path": "",
        "headers": _split(request.headers),
        "client": (request.client, 0),
        "server": None,
        PASSED: True,
    }


class _Answer:
    """The answer of an application, sent over the channel as it is made."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in message.get("headers", ()))
            await send_answer(self._channel, PassedAnswer(status=message["status"], headers=tuple(_lines(headers))))
        elif message["type"] == "http.response.body":
            await send_body(self._channel, message.get("body", b""), is_last=not message.get("more_body", False))
