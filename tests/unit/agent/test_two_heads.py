"""An agent's link with two heads: real servers on loopback, of which one leads."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from steward.adapters.clock import SystemClock
from steward.adapters.offload import Threads
from steward.adapters.wire.frames import Channel, Frame, Gone, dial, pack
from steward.adapters.wire.handshake import Terms
from steward.adapters.wire.head_messages import FollowerGreeting, follower_greeting_frame
from steward.agent.link import HeadLink
from tests.fakes.munge import FakeMunged
from tests.fakes.until import FACT_S
from tests.fakes.wires import HELLO, greet_agent, greet_head, sealer

TERMS = Terms(interval_s=0.05, late_after_s=FACT_S, now=0.0)


@dataclass
class Head:
    """A head at a port of its own. `leader`: the head that leads, as far as this one knows."""

    name: str
    epoch: int
    munged: FakeMunged
    leader: str = ""
    is_stopped: bool = False
    """As by SIGSTOP: it takes connections and frames, and says nothing."""
    dialled: int = 0
    heard: "asyncio.Queue[Frame]" = field(default_factory=asyncio.Queue)
    port: int = 0
    channels: list[Channel] = field(default_factory=list)
    server: asyncio.Server | None = None
    terms: Terms = TERMS

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    def end(self) -> None:
        """As if the process were killed."""
        if self.server is not None:
            self.server.close()
        for channel in self.channels:
            channel.close()

    async def connect(self) -> tuple[Channel, Terms]:
        reader, writer = await dial("127.0.0.1", self.port, Threads(1))
        return await greet_head(reader, writer, sealer(self.munged), HELLO)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.dialled += 1
        while self.is_stopped:
            await asyncio.sleep(0.01)
        if self.leader != self.name:
            writer.write(pack(follower_greeting_frame(FollowerGreeting(leader=self.leader, again_s=0.1))))
            writer.close()
            return
        channel, _ = await greet_agent(reader, writer, sealer(self.munged), replace(self.terms, epoch=self.epoch))
        self.channels.append(channel)
        with contextlib.suppress(Gone):
            while True:
                frame = await channel.receive()
                while self.is_stopped:
                    await asyncio.sleep(0.01)
                if frame["t"] == "beat" and "sent" in frame:
                    await channel.beat(echo=frame["sent"], now=SystemClock().now())
                elif frame["t"] != "beat":
                    self.heard.put_nowait(frame)


class Asks:
    """A listener with one waiting ask, which it says on each new connection, as the desk does."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[Frame] = asyncio.Queue()

    def greetings(self) -> tuple[Frame, ...]:
        return ({"t": "ask", "id": "n1-7"},)

    def hear(self, frame: Frame) -> None:
        self.answers.put_nowait(frame)


@dataclass
class Scene:
    one: Head
    two: Head
    link: HeadLink
    asks: Asks

    def lead(self, leader: str) -> None:
        self.one.leader = self.two.leader = leader


@contextlib.asynccontextmanager
async def two_heads(leader: str = "one", terms: Terms = TERMS) -> AsyncIterator[Scene]:
    munged, asks = FakeMunged(), Asks()
    one, two = (Head(name, epoch, munged, leader, terms=terms) for name, epoch in (("one", 7), ("two", 8)))
    await one.start()
    await two.start()
    link = HeadLink({"one": one.connect, "two": two.connect}, clock=SystemClock(), rng=random.Random(1))
    running = asyncio.ensure_future(link.run(asks))
    try:
        async with asyncio.timeout(2 * FACT_S):
            yield Scene(one, two, link, asks)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        one.end()
        two.end()


def test_an_agent_that_comes_to_a_follower_goes_to_the_leader() -> None:
    async def story() -> None:
        async with two_heads("two") as scene:
            assert (await scene.two.heard.get())["id"] == "n1-7"
            assert (scene.one.dialled, scene.two.dialled) == (1, 1)
            assert scene.one.heard.empty()

    asyncio.run(story())


def test_a_question_that_waits_during_a_takeover_is_asked_again_and_answered() -> None:
    async def story() -> None:
        async with two_heads("one") as scene:
            await scene.one.heard.get()
            scene.one.end()
            await asyncio.sleep(0.3)  # nobody leads yet: the follower still names the dead head
            assert scene.two.heard.empty()
            scene.two.leader = "two"
            assert (await scene.two.heard.get())["id"] == "n1-7"
            await scene.two.channels[0].send({"t": "answer", "id": "n1-7"})
            assert (await scene.asks.answers.get())["id"] == "n1-7"

    asyncio.run(story())


def test_a_head_that_was_replaced_is_not_obeyed_even_if_it_still_believes_that_it_leads() -> None:
    async def story() -> None:
        async with two_heads("one") as scene:
            await scene.one.heard.get()
            scene.one.end()
            scene.two.leader = "two"
            await scene.two.heard.get()
            await scene.one.start()  # it was stopped, and wakes
            scene.two.end()
            before = scene.one.dialled
            while scene.one.dialled < before + 3:
                await asyncio.sleep(0.01)
            assert scene.one.heard.empty()
            assert scene.link.away_since is not None
            scene.one.epoch = 9  # it took the lead anew
            await scene.one.heard.get()

    asyncio.run(story())


def test_a_leader_that_stands_still_is_left_for_the_other_head() -> None:
    async def story() -> None:
        async with two_heads("one", replace(TERMS, late_after_s=0.3)) as scene:
            await scene.one.heard.get()
            scene.one.is_stopped = True
            scene.two.leader = "two"
            assert (await scene.two.heard.get())["id"] == "n1-7"
            scene.one.is_stopped = False

    asyncio.run(story())


def test_a_refused_head_does_not_count_as_a_connection() -> None:
    """A shim is held while the head is away, for a limited time: a head without the lead must not begin it anew."""

    async def story() -> None:
        async with two_heads("two") as scene:
            await scene.two.heard.get()
            scene.two.end()
            while scene.link.away_since is None:
                await asyncio.sleep(0.01)
            since, scene.one.leader = scene.link.away_since, "one"
            while scene.one.dialled < 4:
                await asyncio.sleep(0.01)
            assert scene.link.away_since == since

    asyncio.run(story())


@pytest.mark.parametrize("epoch", [0, 8, 9])
def test_a_head_alone_and_a_head_of_the_same_or_a_later_epoch_are_obeyed(epoch: int) -> None:
    async def story() -> None:
        async with two_heads("two") as scene:
            await scene.two.heard.get()
            scene.two.end()
            scene.one.epoch, scene.one.leader = epoch, "one"
            await scene.one.heard.get()

    asyncio.run(story())
