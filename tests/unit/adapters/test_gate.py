"""The gate before the costly part of handshakes, where thousands connect at once."""

import asyncio
import time

import pytest

from steward.adapters.wire.frames import Gone
from steward.adapters.wire.handshake import Gate
from tests.fakes.hub_bench import a_hub, hello
from tests.fakes.until import FACT_S


def test_so_many_are_at_it_at_once_and_the_others_wait() -> None:
    async def story() -> None:
        gate, inside, most = Gate(at_once=2, patience_s=FACT_S), 0, 0

        async def come() -> None:
            nonlocal inside, most
            async with gate.turn(time.monotonic()):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(come() for _ in range(10)))
        assert most == 2

    asyncio.run(story())


def test_who_has_proved_himself_does_not_stand_in_line_again() -> None:
    """With thousands in that line he would have given up before his welcome."""

    async def story() -> None:
        gate, done = Gate(at_once=1, patience_s=FACT_S), asyncio.Event()

        async def newcomer() -> None:
            async with gate.turn(time.monotonic()):
                await done.wait()

        line = [asyncio.create_task(newcomer()) for _ in range(3)]
        await asyncio.sleep(0)
        async with asyncio.timeout(FACT_S), gate.turn():
            done.set()
        await asyncio.gather(*line)

    asyncio.run(story())


def test_who_would_have_given_up_before_its_welcome_is_sent_away() -> None:
    async def story() -> None:
        with pytest.raises(Gone, match="it will come again"):
            async with Gate(patience_s=3.0).turn(time.monotonic() - 4.0):
                pass
        async with Gate(patience_s=3.0).turn():  # one that has proved itself
            pass

    asyncio.run(story())


def test_peers_that_say_nothing_keep_no_agent_out() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            silent = [await asyncio.open_connection("127.0.0.1", bench.port) for _ in range(40)]
            async with asyncio.timeout(FACT_S):
                await bench.connect(hello())
            for _, writer in silent:
                writer.close()

    asyncio.run(story())
