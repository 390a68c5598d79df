"""Admit requests: meant for this head, with a body bounded in size and time, at a limited rate per caller.

A page in an administrator's browser can point its own name at our address (DNS rebinding), and would then read what is
open on loopback. A signed change is carried out once, so that a listener on the network cannot replay it; a request
that was signed for another endpoint is refused.
"""

import asyncio
import ipaddress
import json
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from steward.api.auth import Gatekeeper
from steward.api.json11.errors import ApiError, Code
from steward.api.shapes import JsonAnswer
from steward.model.settings.sections import ApiSettings
from steward.model.text import printable

_MISDIRECTED = 421
PASSED = "steward.passed"
"""The key of an ASGI scope whose request another head has passed to this one (`follow`): no header can set it."""


def own_names(*configured: str) -> frozenset[str]:
    """Return the head's names: `localhost`, the machine's with and without its domain, and the configured ones."""
    machine = os.uname().nodename
    return frozenset(name.lower() for name in ("localhost", machine, machine.partition(".")[0], *configured) if name)


def path_of(request: Request) -> str:
    """Return the path for which the route was chosen and the proof must be made."""
    # Not `request.url`: some versions of Starlette take a part of the caller's Host header for a part of the path.
    return str(request.scope["path"])


class OwnHosts:
    """A middleware that refuses requests addressed to another host name (421).

    An IP address is always accepted, because a page in a browser cannot have one as its name; so is a request without
    Host, because no browser sends one.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "") if scope["type"] == "http" else ""
        # The head that a passed request came to has compared its host with that head's own names.
        if not host or PASSED in scope or self._is_ours(_without_port(host).lower().rstrip(".")):
            await self._app(scope, receive, send)
            return
        name = printable(_without_port(host), 100)
        text = f"{name} is not a name of this head; if it should be one, add it to api.host_names"
        answer = JsonAnswer({"error": text, "message": text}, status_code=_MISDIRECTED)
        await answer(scope, receive, send)

    def _is_ours(self, name: str) -> bool:
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name in self._names
        return True


def _without_port(host: str) -> str:
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


READ_S = 30.0
"""Time limit for a body: a caller that stops sending must not hold its connection forever."""
_MAX_BODY = 65536
_MAX_WORD = 400
_MAX_DIGITS = 18


class TooLong(Exception):
    """The body of a request is larger than allowed."""


async def body_of(request: Request, *, most: int, within_s: float = READ_S) -> bytes:
    """Return the body of a request.

    Raises TooLong beyond `most` bytes, TimeoutError, or ClientDisconnect if the caller leaves before the end.
    """
    if _is_declared_longer(request, most):
        raise TooLong
    body = bytearray()
    async with asyncio.timeout(within_s):
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise TooLong
    return bytes(body)


def _is_declared_longer(request: Request, most: int) -> bool:
    """Return whether the Content-Length header exceeds `most`: such a body is refused before it arrives."""
    # The HTTP server rejects a Content-Length that is not a number; the digits are bounded so that `int` stays cheap.
    declared = request.headers.get("content-length", "")
    return declared.isdecimal() and int(declared[:_MAX_DIGITS]) > most


async def read_body(request: Request, *, within_s: float = READ_S) -> bytes:
    """Return the body. Raises HTTPException if it is too long, late, or cut off by the caller."""
    try:
        return await body_of(request, most=_MAX_BODY, within_s=within_s)
    except TooLong as error:
        raise HTTPException(413, f"a body of more than {_MAX_BODY} bytes") from error
    except TimeoutError as error:
        raise HTTPException(408, f"the body did not arrive within {within_s:g} s") from error
    except ClientDisconnect as error:
        raise HTTPException(408, "the caller has gone away before the end of the body") from error


async def admit_caller(request: Request, gatekeeper: Gatekeeper) -> tuple[str, bytes]:
    """Return the login name of a caller who may change things, and the body.

    Raises HTTPException for a bad body, Refused without valid proof, Retryable if munged does not answer.
    """
    body = await read_body(request)
    proof = request.headers.get("authorization", "")
    return await run_in_threadpool(gatekeeper.admit, proof, request.method, path_of(request), body), body


def json_of(body: bytes) -> Any:
    """Return the parsed body. Raises HTTPException if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error


def words_of(body: bytes) -> Mapping[str, str]:
    """Return the texts of a body such as `{"why": "..."}`; empty for an empty body.

    Raises HTTPException for any other body.
    """
    given = json_of(body) if body else {}
    if not isinstance(given, dict) or not all(isinstance(word, str) for word in given.values()):
        raise HTTPException(400, 'the body is not an object of texts, such as {"why": TEXT}')
    return {name: printable(word, _MAX_WORD) for name, word in given.items()}


_MAX_BUCKETS = 4096
_MAX_SEEN = 65_536


BURST_S = 2.0
"""A caller may make as many calls at once as its rate allows in this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rate limit: `burst` calls at once, then `per_s` calls a second."""

    per_s: float
    burst: int


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


def call_limits(api: ApiSettings, now: Callable[[], float]) -> "CallerLimits":
    """Return the rate limits for each caller, as set by the site."""
    return CallerLimits(
        reads=Rate(per_s=api.reads_per_s, burst=math.ceil(BURST_S * api.reads_per_s)),
        writes=Rate(per_s=api.writes_per_s, burst=math.ceil(BURST_S * api.writes_per_s)),
        now=now,
    )


class CallerLimits:
    """The rate limits of each caller. Thread-safe.

    Beyond `_MAX_BUCKETS` the callers seen least recently are forgotten.
    """

    def __init__(self, *, reads: Rate, writes: Rate, now: Callable[[], float]) -> None:
        self._rates, self._now = {True: reads, False: writes}, now
        self._buckets: OrderedDict[tuple[str, bool], _Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, user: str, *, read: bool) -> None:
        """Count one call. Raises ApiError (ThrottlingException) above the rate: SDKs then back off and retry."""
        with self._lock:
            bucket = self._refilled(user, read)
            if bucket.tokens >= 1:
                bucket.tokens -= 1
                return
        rate, kind = self._rates[read], "reads" if read else "changes"
        raise ApiError(Code.THROTTLED, f"Rate exceeded: {rate.per_s:g} {kind} a second, {rate.burst} at once.")

    def _refilled(self, user: str, read: bool) -> _Bucket:
        now, rate, key = self._now(), self._rates[read], (user, read)
        bucket = self._buckets.setdefault(key, _Bucket(rate.burst, now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
        bucket.tokens = min(rate.burst, bucket.tokens + max(now - bucket.at, 0.0) * rate.per_s)
        bucket.at = now
        return bucket


class Replays:
    """The signatures that were accepted. Thread-safe.

    Each is remembered for twice `skew_s`, as long as its timestamp can be valid. Beyond `_MAX_SEEN` the oldest ones are
    forgotten here but not in the store: `first_use` (StorePort) also knows those accepted before a restart.
    """

    def __init__(self, *, skew_s: float, now: Callable[[], float], first_use: Callable[[str, float], bool]) -> None:
        self._keep_s, self._now, self._first_use = 2 * skew_s, now, first_use
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, signature: str) -> None:
        """Accept a signature once.

        Raises ApiError if it was accepted before, Retryable if it cannot be stored; the change must not be carried out
        then.
        """
        with self._lock:
            self._forget()
            is_known = signature in self._seen
            if not is_known:
                self._seen[signature] = self._now()
        if is_known or not self._first_use(signature, self._now() + self._keep_s):
            # After this code SDKs sign anew: two equal requests within one second have the same signature.
            raise ApiError(Code.THROTTLED, "A request with this very signature was taken before: sign it anew.")

    def _forget(self) -> None:
        now = self._now()
        while self._seen and (len(self._seen) >= _MAX_SEEN or not self._is_kept(next(iter(self._seen.values())), now)):
            self._seen.popitem(last=False)

    def _is_kept(self, at: float, now: float) -> bool:
        """Return whether a signature accepted at `at` must still be remembered."""
        return now - at <= self._keep_s
