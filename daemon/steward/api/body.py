"""The body of a request to our own pages: bounded in size and in the time that it may take."""

import asyncio
import json
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from steward.model.text import printable

READ_S = 30.0
"""As at the AWS endpoint: who sends no more holds a connection, and not for ever."""
_MAX_BODY = 65536
_MAX_WORD = 400
_MAX_DIGITS = 18


async def read_body(request: Request, *, within_s: float = READ_S) -> bytes:
    """Raises HTTPException for a body that is too long, or that has not come within that time."""
    try:
        async with asyncio.timeout(within_s):
            return await _all_of(request)
    except TimeoutError as error:
        raise HTTPException(408, f"the body did not arrive within {within_s:g} s") from error
    except ClientDisconnect as error:
        raise HTTPException(408, "the caller has gone away before the end of the body") from error


def words_of(body: bytes) -> Mapping[str, str]:
    """The words of a body such as `{"why": "..."}`; an empty body has none. Raises HTTPException."""
    try:
        given = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error
    if not isinstance(given, dict) or not all(isinstance(word, str) for word in given.values()):
        raise HTTPException(400, 'the body is not an object of texts, such as {"why": TEXT}')
    return {name: printable(word, _MAX_WORD) for name, word in given.items()}


def is_declared_longer(request: Request, most: int) -> bool:
    """Whether its Content-Length says so: it is refused at once, not when so much has come. A server lets no text pass
    that is no number."""
    declared = request.headers.get("content-length", "")
    return declared.isdecimal() and int(declared[:_MAX_DIGITS]) > most


async def _all_of(request: Request) -> bytes:
    body = bytearray()
    too_long = HTTPException(413, f"a body of more than {_MAX_BODY} bytes")
    if is_declared_longer(request, _MAX_BODY):
        raise too_long
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise too_long
    return bytes(body)
