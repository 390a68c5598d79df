"""Serve `POST /`: one AWS request from its headers to its answer, with an audit of changes.

Each requested change makes one log line (`steward.audit`) and one event: the user, the operation, the time and the
address. The operations themselves are handlers: see `Handler`.
"""

import json
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from steward.api.admission import READ_S, CallerLimits, Replays, TooLong, body_of, path_of
from steward.api.identify import Authenticator, Received
from steward.api.json11 import validate
from steward.api.json11.errors import CONTENT_TYPE, ApiError, Code
from steward.api.json11.render import render
from steward.api.json11.service import Service, is_read
from steward.api.operations.sight import Handler
from steward.model.access import Caller, Identity
from steward.model.events import Event, Level
from steward.model.text import printable
from steward.ports import PortError, Retryable

log = logging.getLogger(__name__)
audit = logging.getLogger("steward.audit")

_SUMMARY = 400
_DONE = "done"


class Audit:
    """The audit of changes; `tell` stores an event.

    Refused changes are recorded, too; those refused for their rate only in the log.
    """

    def __init__(self, *, tell: Callable[[Event], None], now: Callable[[], float]) -> None:
        self._tell, self._now = tell, now

    def note(self, caller: Caller, operation: str, body: bytes, refusal: Code | None) -> None:
        """Record a requested change; `refusal` is None if it was accepted."""
        outcome = refusal.value if refusal else _DONE
        about = {
            "who": caller.user,
            "way": caller.method,
            "from": caller.address,
            "request": caller.request,
            "outcome": outcome,
            "asked": printable(body[: 4 * _SUMMARY].decode(errors="replace"), _SUMMARY),
        }
        audit.log(logging.WARNING if refusal else logging.INFO, "%s: %s", operation, outcome, extra=about)
        if refusal is not Code.THROTTLED:
            self._tell(_event(self._now(), operation, about, Level.WARNING if refusal else Level.INFO))


def _event(at: float, operation: str, about: dict[str, str], level: Level) -> Event:
    text = f"{operation} by {about['who']} from {about['from']}: {about['outcome']}"
    return Event(at=at, kind=f"api.{operation}", text=text, level=level, data=tuple(about.items()))


class Json11:
    """The endpoint for AWS clients. `max_body_bytes` limits a request's body."""

    def __init__(
        self,
        *,
        service: Service,
        door: Authenticator,
        limits: CallerLimits,
        audit: Audit,
        replays: Replays,
        handlers: Mapping[str, Handler],
        max_body_bytes: int,
    ) -> None:
        self._service, self._door, self._limits, self._audit = service, door, limits, audit
        self._replays = replays
        self._handlers, self._max_body_bytes = handlers, max_body_bytes

    def read(self, operation: str, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the input of a served operation, as its handler gets it. Raises ApiError."""
        return validate.read(self._service.input_shape(operation), members)

    async def serve(self, request: Request) -> Response:
        """Answer the request; a failure is an answer with a code and the request's id, never an exception."""
        number = str(uuid.uuid4())
        try:
            received = await self._receive(request, number)
            answer = await run_in_threadpool(self._answer, received)
        except ApiError as error:
            return _response(
                error.status, error.body(), {"x-amzn-RequestId": number, "x-amzn-ErrorType": error.code.value}
            )
        return _response(200, answer, {"x-amzn-RequestId": number})

    async def _receive(self, request: Request, number: str) -> Received:
        most = self._max_body_bytes
        try:
            body = await body_of(request, most=most)
        except TooLong as error:
            raise ApiError(Code.TOO_LARGE, f"The body has more than {most} bytes.") from error
        except TimeoutError as error:
            raise ApiError(Code.TIMEOUT, f"The body did not arrive within {READ_S:g} s.") from error
        except ClientDisconnect as error:
            raise ApiError(Code.TIMEOUT, "The caller has gone away.") from error
        return Received(
            id=number,
            method=request.method,
            path=path_of(request),
            query=request.scope["query_string"].decode("latin-1"),
            headers=tuple((name.lower(), value) for name, value in request.headers.items()),
            body=body,
            address=request.client.host if request.client else "",
        )

    def _answer(self, received: Received) -> dict[str, Any] | None:
        """Return the answer to the request. Raises ApiError for every failure.

        An unexpected error is logged in full; the caller gets only the request's id.
        """
        try:
            return self._admit(received)
        except ApiError:
            raise
        except Retryable as error:
            raise ApiError(Code.UNAVAILABLE, str(error)) from error
        except PortError as error:
            log.error("%s", error, extra={"request": received.id})
            raise _internal(received) from error
        except Exception as error:
            log.exception("an AWS request failed unexpectedly", extra={"request": received.id})
            raise _internal(received) from error

    def _admit(self, received: Received) -> dict[str, Any] | None:
        identity = self._door.identify(received)
        operation = self._operation(received)
        if is_read(operation):
            self._limits.take(identity.user, read=True)
            return self._carry_out(received, identity, operation)
        return self._change(received, identity, operation)

    def _operation(self, received: Received) -> str:
        target = received.header("x-amz-target") or ""
        prefix, _, operation = target.partition(".")
        if (
            prefix != self._service.target_prefix
            or operation not in self._handlers
            or not self._service.serves(operation)
        ):
            raise ApiError(Code.UNKNOWN_OPERATION, f"This endpoint has no operation '{printable(target, 100)}'.")
        return operation

    def _change(self, received: Received, identity: Identity, operation: str) -> dict[str, Any] | None:
        """Carry out a change as `_carry_out` does, and record it in the audit whatever the result."""
        refusal: Code | None = Code.INTERNAL
        try:
            # The rate is limited before permission is checked, so that callers without permission are limited, too.
            self._limits.take(identity.user, read=False)
            if identity.read_only:
                raise ApiError(Code.ACCESS_DENIED, f"{identity.user} may read, but not call {operation}.")
            if identity.signature:
                self._replays.take(identity.signature)
            answer = self._carry_out(received, identity, operation)
            refusal = None
        except ApiError as error:
            refusal = error.code
            raise
        except Retryable:
            refusal = Code.UNAVAILABLE
            raise
        finally:
            self._audit.note(_caller(received, identity), operation, received.body, refusal)
        return answer

    def _carry_out(self, received: Received, identity: Identity, operation: str) -> dict[str, Any] | None:
        _need_content_type(received)
        members = self.read(operation, parse(received.body))
        answer = self._handlers[operation](_caller(received, identity), members)
        return render(self._service.output_shape(operation), answer)


def _caller(received: Received, identity: Identity) -> Caller:
    return Caller(user=identity.user, method=identity.method, address=received.address, request=received.id)


def _need_content_type(received: Received) -> None:
    given = (received.header("content-type") or "").partition(";")[0].strip().lower()
    if given != CONTENT_TYPE:
        raise ApiError(Code.MALFORMED, f"The Content-Type must be {CONTENT_TYPE}.")


def _internal(received: Received) -> ApiError:
    return ApiError(Code.INTERNAL, f"The head failed at this; its log says why, under request={received.id}.")


def _response(status: int, answer: dict[str, Any] | None, headers: dict[str, str]) -> Response:
    body = b"" if answer is None else json.dumps(answer, separators=(",", ":"), allow_nan=False).encode()
    return Response(body, status_code=status, headers=headers, media_type=CONTENT_TYPE)


# Reading JSON from strangers: bounded depth, one value for a key, no NaN, only Unicode texts.

_MAX_DEPTH = 32


def parse(body: bytes) -> dict[str, Any]:
    """Return the JSON object in `body`, empty for an empty body. Raises ApiError (SerializationException)."""
    try:
        value = json.loads(body.decode(), object_pairs_hook=_once, parse_constant=_no_constant) if body else {}
    except RecursionError as error:
        raise _malformed(f"nested deeper than {_MAX_DEPTH} levels") from error
    except ValueError as error:
        raise _malformed(str(error)) from error
    if not isinstance(value, dict):
        raise _malformed("not an object")
    _look_through(value)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _look_through(value: Any) -> None:
    """Raise ApiError if the value is nested too deep or contains a text that is not Unicode."""
    # Level by level, not recursively: so depth costs no stack.
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise _malformed(f"nested deeper than {_MAX_DEPTH} levels")
        level = [inner for outer in level for inner in _inside(outer)]


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, str):
        _need_unicode(value)
    return value if isinstance(value, list) else []


def _need_unicode(text: str) -> None:
    """Raise ApiError if a text is not Unicode."""
    # JSON can hold half of a surrogate pair, which can be neither stored nor sent back.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _malformed("a text is not Unicode") from error


def _malformed(why: str) -> ApiError:
    return ApiError(Code.MALFORMED, f"The body is not a JSON object that we read: {why}")
