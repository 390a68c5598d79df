"""Make the endpoint for AWS clients at the first call of such a client.

botocore, with its model of the service, takes a tenth of the head's memory and a fifth of its start: a head whose users
have no AWS client does not pay for it.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from steward.api.json11.errors import CONTENT_TYPE, ApiError, Code
from steward.ports import PortError

log = logging.getLogger(__name__)

_FAILED = "the endpoint for AWS clients cannot be made"


class Endpoint(Protocol):
    """The endpoint as its callers see it; see `json11.route`."""

    async def serve(self, request: Request) -> Response: ...

    def read(self, operation: str, members: Mapping[str, Any]) -> dict[str, Any]: ...


class LateEndpoint:
    """An endpoint that is made when first needed. Thread-safe. `make` is called until it succeeds once."""

    def __init__(self, make: Callable[[], Endpoint]) -> None:
        self._make = make
        self._made: Endpoint | None = None
        self._lock = threading.Lock()

    async def serve(self, request: Request) -> Response:
        """Answer the request; never raise."""
        try:
            made = await run_in_threadpool(self._get) if self._made is None else self._made
        except PortError as error:
            log.error("%s: %s", _FAILED, error)
            return _unavailable(str(error))
        except Exception:  # for example, an upgrade changed the files under a head that was not restarted
            log.exception(_FAILED)
            return _unavailable("The head fails at this, and its log says why; restart stewardd if it was upgraded.")
        return await made.serve(request)

    def read(self, operation: str, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the input of an operation, as its handler gets it. Raises ApiError and PortError."""
        return self._get().read(operation, members)

    def _get(self) -> Endpoint:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made


def _unavailable(why: str) -> Response:
    """Return the answer ServiceUnavailable, after which SDKs retry."""
    told = ApiError(Code.UNAVAILABLE, why)
    return Response(json.dumps(told.body()), told.status, media_type=CONTENT_TYPE)
