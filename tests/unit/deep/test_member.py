"""A rank as rank 0 speaks to it: each order has its own answer, whatever became of the one before."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from steward.deep.coordinator import Member
from steward.deep.meeting import NoPeer, encode
from steward.model.ids import NodeName


@asynccontextmanager
async def a_slow_rank(go_on: asyncio.Event) -> AsyncIterator[Member]:
    """It measures one order after the other, and the first until `go_on`."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            order = json.loads(line)
            await go_on.wait()
            writer.write(encode({"n": order["n"], "found": order["partner"]}))
        writer.close()

    async with await asyncio.start_server(play, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        yield Member(
            node=NodeName("n1"), address="", port=1, token="t", tools=frozenset(), reader=reader, writer=writer
        )
        writer.close()


def test_an_answer_that_came_too_late_is_not_taken_for_the_next_ones() -> None:
    async def story() -> None:
        go_on = asyncio.Event()
        async with a_slow_rank(go_on) as member:
            with pytest.raises(NoPeer, match="n1 does not answer"):
                await member.ask({"do": "drive", "partner": "bad"}, 0.05)
            go_on.set()
            for partner in ("good", "better"):
                assert (await member.ask({"do": "drive", "partner": partner}, 10.0))["found"] == partner

    asyncio.run(story())
