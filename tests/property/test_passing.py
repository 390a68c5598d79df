"""What one head passes to another comes out as it went in, whatever is in it."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.adapters.wire.head_messages import MAX_PIECE, PassedAnswer, PassedRequest
from steward.adapters.wire.passing import pieces, read_answer, read_request, send_answer, send_body, send_request
from tests.fakes.wires import wire

printed = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200)
lines = st.lists(printed, max_size=64).map(tuple)
sizes = st.sampled_from([0, 1, MAX_PIECE - 1, MAX_PIECE, MAX_PIECE + 1, 3 * MAX_PIECE]) | st.integers(0, 4096)
requests = st.builds(
    PassedRequest,
    door=st.sampled_from(["http", "users"]),
    method=st.sampled_from(["GET", "POST"]),
    path=printed,
    query=printed,
    headers=lines,
    client=st.sampled_from(["", "127.0.0.1", "::1"]),
)
answers = st.builds(PassedAnswer, status=st.integers(100, 599), headers=lines)


@given(request=requests, answer=answers, size=sizes, parts=st.lists(sizes, max_size=3), salt=st.binary(max_size=8))
@settings(max_examples=30)
def test_a_request_and_its_answer_come_as_they_were_sent(
    request: PassedRequest, answer: PassedAnswer, size: int, parts: list[int], salt: bytes
) -> None:
    body = (salt + b"\0\xff")[: size or 0] + bytes(max(size - len(salt) - 2, 0))

    async def story() -> None:
        async with wire() as ends:
            _, got = await asyncio.gather(send_request(ends.agent, request, body), read_request(ends.head))
            assert got == (request, body)
            await send_answer(ends.head, answer)
            assert await read_answer(ends.agent) == answer

            async def say() -> None:
                for part in parts:
                    await send_body(ends.head, salt * part if part < 100 else bytes(part), is_last=False)
                await send_body(ends.head, b"", is_last=True)

            async def hear() -> bytes:
                return b"".join([data async for data in pieces(ends.agent)])

            _, heard = await asyncio.gather(say(), hear())
            assert heard == b"".join(salt * part if part < 100 else bytes(part) for part in parts)

    asyncio.run(story())
