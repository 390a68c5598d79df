"""The gate before the costly part of handshakes, where thousands connect at once."""

import asyncio
import time

import pytest

from steward.adapters.wire.frames import Gone, read_frame
from steward.adapters.wire.handshake import MAX_HELLO, WAIT_S, HandshakeGate
from tests.fakes.hub_bench import a_hub, hello
from tests.fakes.until import FACT_S, comes_true


def test_so_many_are_at_it_at_once_and_the_others_wait() -> None:
    async def story() -> None:
        gate, inside, most = HandshakeGate(at_once=2, usual_s=FACT_S), 0, 0

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
        gate, done = HandshakeGate(at_once=1, usual_s=FACT_S), asyncio.Event()

        async def newcomer() -> None:
            async with gate.turn(time.monotonic()):
                await done.wait()

        line = [asyncio.create_task(newcomer()) for _ in range(3)]
        await asyncio.sleep(0)
        async with asyncio.timeout(FACT_S), gate.turn():
            done.set()
        await asyncio.gather(*line)

    asyncio.run(story())


def test_nobody_is_let_in_while_many_that_proved_themselves_wait() -> None:
    """A welcome may cost more than a proof: else ever more would wait for theirs, until all give up."""

    async def story() -> None:
        gate, leave = HandshakeGate(at_once=2, usual_s=FACT_S), asyncio.Semaphore(0)
        entered = list[str]()

        async def come(name: str, since: float | None) -> None:
            async with gate.turn(since):
                entered.append(name)
                await leave.acquire()

        proved = [asyncio.create_task(come(f"proved {n}", None)) for n in range(4)]
        await asyncio.sleep(0)
        newcomer = asyncio.create_task(come("newcomer", time.monotonic()))
        await asyncio.sleep(0)
        assert entered == ["proved 0", "proved 1"]
        leave.release()
        await comes_true("there is room", lambda: len(entered) == 4)
        assert set(entered[2:]) == {"proved 2", "newcomer"}
        proved[3].cancel()
        for _ in range(5):
            leave.release()
        await asyncio.gather(*proved[:3], newcomer)

    asyncio.run(story())


def test_who_gives_up_while_it_is_due_for_its_welcome_holds_up_nobody() -> None:
    async def story() -> None:
        gate, done = HandshakeGate(at_once=1, usual_s=FACT_S), asyncio.Event()

        async def come(since: float | None, until: asyncio.Event | None = None) -> None:
            async with gate.turn(since):
                if until is not None:
                    await until.wait()

        first, due = (asyncio.create_task(come(None, done)) for _ in range(2))
        await asyncio.sleep(0)
        newcomer = asyncio.create_task(come(time.monotonic()))
        await asyncio.sleep(0)
        assert not newcomer.done()
        due.cancel()
        async with asyncio.timeout(FACT_S):
            await newcomer
        done.set()
        await first

    asyncio.run(story())


def test_who_would_have_given_up_before_its_welcome_is_sent_away() -> None:
    async def story() -> None:
        with pytest.raises(Gone, match="the agent will retry"):
            async with HandshakeGate().turn(time.monotonic() - 4.0):
                pass
        async with HandshakeGate().turn():  # one that has proved itself
            pass

    asyncio.run(story())


def test_addresses_take_turns() -> None:
    """One that sends many hellos keeps no other waiting for all of them."""

    async def story() -> None:
        gate, done, came = HandshakeGate(at_once=1, usual_s=FACT_S), asyncio.Event(), list[str]()

        async def come(address: str) -> None:
            async with gate.turn(time.monotonic(), address=address):
                came.append(address)
                await done.wait()

        line = [asyncio.create_task(come("10.0.0.6")) for _ in range(5)]
        line += [asyncio.create_task(come(f"10.0.0.{n}")) for n in (1, 2)]
        await asyncio.sleep(0)
        done.set()
        await asyncio.gather(*line)
        assert came == ["10.0.0.6", "10.0.0.6", "10.0.0.1", "10.0.0.2", *["10.0.0.6"] * 3]

    asyncio.run(story())


@pytest.mark.parametrize("in_turn", [False, True], ids=["in line", "as its turn comes"])
def test_who_gives_up_leaves_his_place_to_the_next(in_turn: bool) -> None:
    async def story() -> None:
        gate, done = HandshakeGate(at_once=1, usual_s=FACT_S), asyncio.Event()

        async def come(until: asyncio.Event | None = None) -> bool:
            async with gate.turn(time.monotonic(), address="10.0.0.1"):
                if until is not None:
                    await until.wait()
            return True

        first, second, third = (asyncio.create_task(come(until)) for until in (done, None, None))
        await asyncio.sleep(0)
        if in_turn:
            done.set()
            await asyncio.wait([first])  # the second has its place by now, and does not know yet
        second.cancel()
        done.set()
        async with asyncio.timeout(FACT_S):
            assert await first
            assert await third
            assert await come()
        assert second.cancelled() or second.done()

    asyncio.run(story())


def test_who_waits_for_longer_is_let_in_later() -> None:
    async def story() -> None:
        since = time.monotonic() - 10.0
        async with HandshakeGate().turn(since, waits_s=WAIT_S):
            pass
        with pytest.raises(Gone, match="the agent will retry"):
            async with HandshakeGate().turn(since):
                pass
        with pytest.raises(Gone, match="the agent will retry"):
            async with HandshakeGate().turn(time.monotonic() - WAIT_S + 1.0, waits_s=WAIT_S):
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


def test_where_many_come_each_is_asked_to_wait() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            comers = [await asyncio.open_connection("127.0.0.1", bench.port) for _ in range(40)]
            async with asyncio.timeout(FACT_S):
                asked = [(await read_frame(reader)).get("wait") for reader, _ in comers]
            assert asked[0] is None
            assert asked[-1] == WAIT_S
            for _, writer in comers:
                writer.close()

    asyncio.run(story())


def test_a_peer_that_has_not_proved_itself_may_say_no_more_than_a_hello() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            comers = [await asyncio.open_connection("127.0.0.1", bench.port) for _ in range(2)]
            for (reader, writer), size in zip(comers, (MAX_HELLO - 8, MAX_HELLO), strict=True):
                await read_frame(reader)
                writer.write((60000).to_bytes(4, "big") + b" " * size)
            async with asyncio.timeout(FACT_S):
                assert await comers[1][0].read() == b""
            assert not comers[0][0].at_eof()
            for _, writer in comers:
                writer.close()

    asyncio.run(story())
