"""Frames, seals and the handshake, over real streams."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from steward.adapters.wire import handshake
from steward.adapters.wire.frames import MAX_FRAME, Frame, Gone, Malformed, pack, read_frame, unpack
from steward.adapters.wire.handshake import (
    MAX_HELLO,
    HandshakeGate,
    Hello,
    accept_agent,
)
from steward.adapters.wire.messages import MAX_OPTED, opted_list
from steward.adapters.wire.seal import Beats, PeerRole, digest
from steward.model.ask import OptedIn
from steward.model.health import Incarnation
from steward.model.ids import BootId, InstanceId, JobId, NodeName
from steward.model.resume_mode import MAX_TEXT as MAX_MODE
from steward.model.resume_mode import ResumeMode
from steward.ports import Permanent, Retryable
from tests.fakes.munge import FakeMunged
from tests.fakes.still_loop import StillLoop, run_still, turns
from tests.fakes.until import FACT_S, comes_true
from tests.fakes.wires import HELLO, TERMS, WHO, greet_agent, greet_head, sealer, stream_pair, wire


def run(work: Coroutine[Any, Any, None]) -> None:
    async def within() -> None:
        async with asyncio.timeout(FACT_S):
            await work

    asyncio.run(within())


async def read(data: bytes) -> Frame:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return await read_frame(reader)


def test_a_frame_is_its_length_and_its_json() -> None:
    assert pack({"t": "beat", "sent": 1.5}) == b'\x00\x00\x00\x17{"t":"beat","sent":1.5}'


def test_the_longest_frame_is_read_and_one_byte_more_is_refused() -> None:
    frame = {"t": "x", "s": "a" * (MAX_FRAME - 16)}
    data = pack(frame)
    assert len(data) == MAX_FRAME + 4
    assert asyncio.run(read(data)) == frame
    with pytest.raises(Malformed):
        pack({**frame, "s": frame["s"] + "a"})
    with pytest.raises(Malformed):
        asyncio.run(read((MAX_FRAME + 1).to_bytes(4, "big") + b"{"))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"t"', b"{}", b'{"t":1}', b'{"t":"x","n":NaN}', b'{"t":"x","n":Infinity}', b"\xff"],
)
def test_what_is_not_an_object_with_a_type_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        unpack(body)


def test_deep_nesting_is_refused_and_does_not_end_the_process() -> None:
    with pytest.raises(Malformed):
        unpack(b'{"t":"x","d":' + b"[" * 30000 + b"]" * 30000 + b"}")


@pytest.mark.parametrize("cut", [0, 3, 4, 10])
def test_a_connection_that_ends_in_the_middle_of_a_frame_is_gone(cut: int) -> None:
    with pytest.raises(Gone):
        asyncio.run(read(pack({"t": "beat", "sent": 1.0})[:cut]))


def test_both_sides_learn_what_the_other_is() -> None:
    opted = OptedIn(job=JobId(7), uid=1000, mode=ResumeMode.parse("any:3"), restart=2, at=99.5)
    hello = Hello(node=NodeName("n7"), incarnation=WHO, version="1.2", opted=(opted,))

    async def story() -> None:
        async with wire(hello, TERMS) as ends:
            assert ends.hello == hello
            assert ends.terms == TERMS

    run(story())


LONGEST = ResumeMode.parse(f"any:1000,max=10,codes={':'.join(['255'] * 28)},checkpoint=/{'c' * 254}")


def test_the_longest_words_of_a_full_book_all_reach_the_head_the_newest_with_the_hello() -> None:
    """More than one frame holds: an agent that could not say them would never be heard again."""
    assert len(LONGEST.text) == MAX_MODE
    book = [
        OptedIn(job=JobId(2**32 - 1 - n), uid=2**32 - 1, mode=LONGEST, restart=10**6, at=1e9 + n / 3)
        for n in range(MAX_OPTED)
    ]
    hello = Hello(node=NodeName("n" * 64), incarnation=WHO, version="1.2", opted=tuple(book))

    async def story() -> None:
        async with wire(hello) as ends:
            await ends.agent.send({"t": "report"})
            told = list(ends.hello.opted)
            while (frame := await ends.head.receive())["t"] == "opted":
                told += opted_list(frame)
            assert told == book[::-1]
            assert frame == {"t": "report"}

    run(story())


def test_an_agent_says_little_at_first_and_the_rest_when_it_is_welcomed() -> None:
    book = [
        OptedIn(job=JobId(2**32 - 1 - n), uid=2**32 - 1, mode=LONGEST, restart=10**6, at=1e9 + n / 3) for n in range(20)
    ]
    who = Incarnation(instance=InstanceId("i" * 128), boot=BootId("b" * 128))
    hello = Hello(node=NodeName("n" * 64), incarnation=who, version="v" * 32, opted=tuple(book))

    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as ((reader, writer), agent):
            greeting = asyncio.ensure_future(greet_head(*agent, sealer(munged), hello))
            writer.write(pack({"t": "challenge", "nonce": "b" * 32}))
            frame = await read_frame(reader)
            assert len(pack({**frame, "cred": "c" * 700})) < MAX_HELLO
            told = list(opted_list(frame))
            assert told == book[::-1][: len(told)]
            welcome: Frame = {"t": "welcome", "interval": 1.0, "late_after": 3.0, "now": 0.0}
            proof = digest(welcome, PeerRole.HEAD, frame["nonce"])
            writer.write(pack({**welcome, "cred": await sealer(munged).credential(proof + b"k" * 32)}))
            await greeting
            while len(told) < len(book):
                told += opted_list(await read_frame(reader))
            assert told == book[::-1]

    run(story())


def test_sealed_frames_arrive_in_order_in_both_directions() -> None:
    async def story() -> None:
        async with wire() as ends:
            for number in range(3):
                await ends.agent.send({"t": "ask", "n": number})
                await ends.agent.beat(sent=float(number))
                await ends.head.send({"t": "answer", "n": number})
            for number in range(3):
                assert await ends.head.receive() == {"t": "ask", "n": number}
                assert await ends.head.receive() == {"t": "beat", "sent": float(number)}
                assert await ends.agent.receive() == {"t": "answer", "n": number}

    run(story())


def test_an_agent_that_is_not_trusted_is_refused() -> None:
    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as (head, agent):
            stranger = asyncio.ensure_future(_ignore(greet_head(*agent, sealer(munged, uid=1000), HELLO)))
            with pytest.raises(Permanent, match="uid 1000"):
                await greet_agent(*head, sealer(munged), TERMS)
            stranger.cancel()

    run(story())


def test_a_head_that_is_not_trusted_is_refused() -> None:
    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as (head, agent):
            stranger = asyncio.ensure_future(_ignore(greet_agent(*head, sealer(munged, uid=1000), TERMS)))
            with pytest.raises(Permanent, match="uid 1000"):
                await greet_head(*agent, sealer(munged), HELLO)
            stranger.cancel()

    run(story())


def test_an_agent_whose_proof_is_not_believed_is_told_so() -> None:
    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as (head, agent):
            refused = asyncio.ensure_future(_ignore(greet_agent(*head, sealer(munged), TERMS)))
            with pytest.raises(Permanent, match="the head refused"):
                await greet_head(*agent, sealer(munged, uid=1000), HELLO)
            await refused

    run(story())


def test_an_agent_of_another_protocol_is_told_apart() -> None:
    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as (head, (reader, writer)):
            greeting = asyncio.ensure_future(greet_agent(*head, sealer(munged), TERMS))
            nonce = (await read_frame(reader))["nonce"]
            frame = {"t": "hello", "v": 2, "nonce": "a" * 32}
            cred = await sealer(munged).credential(digest(frame, PeerRole.AGENT, nonce))
            writer.write(pack({**frame, "cred": cred}))
            with pytest.raises(Malformed, match="install the same release"):
                await greeting

    run(story())


def test_a_hello_for_another_connection_is_refused() -> None:
    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as (head, (reader, writer)):
            greeting = asyncio.ensure_future(greet_agent(*head, sealer(munged), TERMS))
            await read_frame(reader)
            frame = {"t": "hello", "v": 1, "nonce": "a" * 32}
            cred = await sealer(munged).credential(digest(frame, PeerRole.AGENT, "b" * 32))
            writer.write(pack({**frame, "cred": cred}))
            with pytest.raises(Permanent, match="another frame"):
                await greeting

    run(story())


def test_the_key_comes_in_the_welcomes_own_proof_for_this_agent_alone() -> None:
    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as (head, (reader, writer)):
            greeting = asyncio.ensure_future(greet_agent(*head, sealer(munged), TERMS))
            welcome = await _welcome_of(reader, writer, munged)
            await greeting
            assert "key" not in welcome
            assert munged.readers[welcome["cred"]] == 0
            _, carried = munged.made[welcome["cred"]]
            assert carried[:32] == digest(welcome, PeerRole.HEAD, "a" * 32)
            assert len(carried) == 64

    run(story())


async def _welcome_of(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, munged: FakeMunged) -> Frame:
    """What the head answers to a hello."""
    nonce = (await read_frame(reader))["nonce"]
    who = {"v": 1, "node": "n1", "instance": "i-1", "boot": "b-1", "version": "1.0"}
    frame = {"t": "hello", "nonce": "a" * 32, **who}
    writer.write(pack({**frame, "cred": await sealer(munged).credential(digest(frame, PeerRole.AGENT, nonce))}))
    return await read_frame(reader)


def test_the_agent_seals_its_heartbeats_with_the_key_in_the_welcomes_proof() -> None:
    key = b"k" * 32

    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as ((reader, writer), agent):
            greeting = asyncio.ensure_future(greet_head(*agent, sealer(munged), HELLO))
            writer.write(pack({"t": "challenge", "nonce": "b" * 32}))
            hello = await read_frame(reader)
            welcome: Frame = {"t": "welcome", "interval": 1.0, "late_after": 3.0, "now": 0.0}
            proof = digest(welcome, PeerRole.HEAD, hello["nonce"])
            writer.write(pack({**welcome, "cred": await sealer(munged).credential(proof + key)}))
            channel, _ = await greeting
            await channel.beat(sent=1.0)
            Beats(key, PeerRole.HEAD).check((await read_frame(reader))["seal"], b"1.0")

    run(story())


@pytest.mark.parametrize("more", [b"", b"k", b"k" * 31, b"k" * 33, b"k" * 1000])
def test_a_key_of_another_length_is_refused(more: bytes) -> None:
    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as ((reader, writer), agent):
            greeting = asyncio.ensure_future(greet_head(*agent, sealer(munged), HELLO))
            writer.write(pack({"t": "challenge", "nonce": "b" * 32}))
            welcome: Frame = {"t": "welcome", "interval": 1.0, "late_after": 3.0, "now": 0.0}
            proof = digest(welcome, PeerRole.HEAD, (await read_frame(reader))["nonce"])
            writer.write(pack({**welcome, "cred": await sealer(munged).credential(proof + more)}))
            with pytest.raises(Malformed, match="a key of"):
                await greeting

    run(story())


@pytest.mark.parametrize(("asked", "waits"), [(20.0, 20.0), (1e9, 20.0), (-1.0, 5.0), (5.2, 5.2)])
def test_an_agent_waits_as_long_as_the_head_asks_within_bounds(asked: float, waits: float) -> None:
    async def story(loop: StillLoop) -> None:
        async with stream_pair() as ((reader, writer), agent):
            greeting = asyncio.ensure_future(handshake.greet_head(*agent, sealer(FakeMunged()), HELLO))
            writer.write(pack({"t": "challenge", "nonce": "b" * 32, "wait": asked}))
            await read_frame(reader)
            loop.advance(waits - 0.1)
            await turns(10)
            assert not greeting.done()
            loop.advance(0.2)
            with pytest.raises(Gone, match=f"no handshake within {waits:g} s"):
                await greeting

    run_still(story)


class WatchedGate(HandshakeGate):
    """A gate that tells when an agent asks for its turn."""

    def __init__(self, at_once: int) -> None:
        super().__init__(at_once)
        self.entered = asyncio.Event()

    @contextlib.asynccontextmanager
    async def turn(self, since: float | None = None, *, address: str = "", waits_s: float = 0.0) -> AsyncIterator[None]:
        self.entered.set()
        async with super().turn(since, address=address, waits_s=waits_s):
            yield


def test_a_head_waits_as_long_as_it_asked_for() -> None:
    async def story(loop: StillLoop) -> None:
        gate, munged = WatchedGate(at_once=1), FakeMunged()
        async with stream_pair() as (head, (reader, writer)), gate.turn(time.monotonic()):
            gate.entered.clear()
            accepted = asyncio.ensure_future(accept_agent(*head, sealer(munged), lambda: TERMS, gate=gate, wait_s=7.0))
            assert (await read_frame(reader))["wait"] == 7.0
            writer.write(pack({"t": "hello", "nonce": "a" * 32}))
            await gate.entered.wait()
            loop.advance(6.9)
            await turns(10)
            assert not accepted.done()
            loop.advance(0.2)
            with pytest.raises(Gone, match=r"no handshake within 7 s"):
                await accepted

    run_still(story)


def test_who_hung_up_before_its_turn_costs_munged_nothing() -> None:
    async def story() -> None:
        gate, munged = HandshakeGate(at_once=1, usual_s=FACT_S), FakeMunged(up=False)
        async with stream_pair() as (head, (reader, writer)):
            async with gate.turn(time.monotonic()):
                accepted = asyncio.ensure_future(accept_agent(*head, sealer(munged), lambda: TERMS, gate=gate))
                await read_frame(reader)
                writer.write(pack({"t": "hello", "nonce": "a" * 32}))
                writer.close()
                await comes_true("the head knows", head[0].at_eof)
            with pytest.raises(Gone, match="closed the connection before its turn"):
                await accepted

    run(story())


def _sealed(frame: Frame) -> Frame:
    return {**frame, "seq": 1, "cred": "MUNGE:none:"}


@pytest.mark.parametrize(
    "forged",
    [{"t": "answer"}, _sealed({"t": "answer"}), {"t": "answer", "seq": 1}, {"t": "answer", "seq": True, "cred": ""}],
    ids=["no seal", "forged", "no credential", "wrong kinds"],
)
def test_a_frame_without_a_good_seal_ends_the_connection(forged: Frame) -> None:
    async def story() -> None:
        async with stream_pair() as (head, agent):
            munged = FakeMunged()
            greeting = asyncio.ensure_future(greet_agent(*head, sealer(munged), TERMS))
            channel, _ = await greet_head(*agent, sealer(munged), HELLO)
            await greeting
            head[1].write(pack(forged))
            with pytest.raises(Permanent):
                await channel.receive()

    run(story())


def test_a_replayed_a_reflected_and_a_changed_frame_are_refused() -> None:
    async def story(spoil: str) -> None:
        munged = FakeMunged()
        async with stream_pair() as (head, agent):
            greeting = asyncio.ensure_future(greet_agent(*head, sealer(munged), TERMS))
            agent_channel, _ = await greet_head(*agent, sealer(munged), HELLO)
            head_channel, _ = await greeting
            await agent_channel.send({"t": "ask", "job": 1})
            frame = await read_frame(head[0])
            writer, receiver = (head[1], agent_channel) if spoil == "reflected" else (agent[1], head_channel)
            if spoil == "replayed":
                agent[1].write(pack(frame))
                await head_channel.receive()
            writer.write(pack({**frame, "job": 2} if spoil == "changed" else frame))
            with pytest.raises(Permanent):
                await receiver.receive()

    for spoil in ("replayed", "reflected", "changed"):
        run(story(spoil))


def test_a_frame_that_follows_on_a_lost_one_is_refused() -> None:
    async def story() -> None:
        munged = FakeMunged()
        async with stream_pair() as (head, agent):
            greeting = asyncio.ensure_future(greet_agent(*head, sealer(munged), TERMS))
            agent_channel, _ = await greet_head(*agent, sealer(munged), HELLO)
            head_channel, _ = await greeting
            await agent_channel.send({"t": "opted"})
            await agent_channel.send({"t": "ask"})
            await read_frame(head[0])
            with pytest.raises(Permanent, match="frame 2 came where frame 1 was due"):
                await head_channel.receive()

    run(story())


def test_without_munged_nothing_is_sent_and_the_next_frame_is_still_in_order() -> None:
    async def story() -> None:
        async with wire() as ends:
            ends.munged.up = False
            with pytest.raises(Retryable):
                await ends.agent.send({"t": "lost"})
            ends.munged.up = True
            await ends.agent.send({"t": "ask"})
            assert await ends.head.receive() == {"t": "ask"}

    run(story())


def test_a_closed_channel_is_gone_for_both() -> None:
    async def story() -> None:
        async with wire() as ends:
            ends.agent.close()
            with pytest.raises(Gone):
                await ends.agent.beat(sent=1.0)
            with pytest.raises(Gone):
                await ends.head.receive()

    run(story())


async def _ignore(work: Coroutine[Any, Any, Any]) -> None:
    try:
        await work
    except (Permanent, Retryable):
        return
