"""Tell by a header of successful answers that the head decides nothing: they are of an older picture."""

import json
from http import HTTPStatus

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steward.api.source import Source
from steward.model.access import STANDSTILL_HEADER
from steward.model.text import printable

_MOST = 1000


class TellsStandstill:
    """A middleware that sets the header of a standstill.

    Its value is a JSON object of `since`, `why` and `at`, the time of the picture (null if there is none).
    """

    def __init__(self, app: ASGIApp, source: Source) -> None:
        self._app, self._source = app, source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            is_good = message["type"] == "http.response.start" and message["status"] < HTTPStatus.BAD_REQUEST
            found = self._source.standstill() if is_good else None
            if found is not None:
                latest = self._source.latest()
                said = {"since": found.since, "why": printable(found.why, _MOST), "at": latest.at if latest else None}
                MutableHeaders(scope=message)[STANDSTILL_HEADER] = json.dumps(said)
            await send(message)

        await self._app(scope, receive, told)
