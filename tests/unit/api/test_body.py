"""A body that does not come, or does not end, holds up nobody for long."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from steward.api.admission import read_body

Piece = MutableMapping[str, Any]


def a_piece(body: bytes, *, more: bool) -> Piece:
    return {"type": "http.request", "body": body, "more_body": more}


def sending(*pieces: Piece) -> Callable[[], Awaitable[Piece]]:
    """Those, and then nothing for ever."""
    left = list(pieces)

    async def receive() -> Piece:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


def read(*pieces: Piece) -> bytes:
    request = Request({"type": "http", "method": "POST", "headers": []}, sending(*pieces))
    return asyncio.run(read_body(request, within_s=0.05))


def test_a_body_in_pieces_is_read_whole() -> None:
    assert read(a_piece(b'{"why"', more=True), a_piece(b': "x"}', more=False)) == b'{"why": "x"}'


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ((), 408),
        ((a_piece(b"{", more=True),), 408),
        (({"type": "http.disconnect"},), 408),
        ((a_piece(b"x" * 70_000, more=True),), 413),
    ],
)
def test_a_body_that_does_not_end_is_refused(pieces: tuple[Piece, ...], status: int) -> None:
    with pytest.raises(HTTPException) as refused:
        read(*pieces)
    assert refused.value.status_code == status


@pytest.mark.parametrize("length", ["65537", "9" * 30])
def test_a_length_that_is_too_much_is_answered_before_anything_comes(length: str) -> None:
    request = Request({"type": "http", "method": "POST", "headers": [(b"content-length", length.encode())]}, sending())
    with pytest.raises(HTTPException) as refused:
        asyncio.run(read_body(request, within_s=600.0))
    assert refused.value.status_code == 413
