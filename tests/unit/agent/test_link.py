"""The connection to the head, with a real head's end of the wire."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import pytest

from steward.adapters.clock import SystemClock
from steward.adapters.offload import Threads
from steward.adapters.wire.frames import (
    ALONE,
    MAX_FRAME,
    WITH_ALL,
    WITH_HOST,
    Channel,
    Frame,
    Gone,
    Malformed,
    dial,
)
from steward.adapters.wire.handshake import Terms
from steward.agent.head_order import LAST_BACKOFF_S, backoff_s
from steward.agent.link import HeadLink, HeadSilence
from tests.fakes.munge import FakeMunged
from tests.fakes.until import FACT_S
from tests.fakes.wires import HELLO, greet_agent, greet_head, sealer

TERMS = Terms(interval_s=0.05, late_after_s=FACT_S, now=0.0)
IMPATIENT = replace(TERMS, late_after_s=0.3)


@dataclass
class Ears:
    """A Listener that keeps what it hears."""

    first: tuple[Frame, ...] = ()
    heard: "asyncio.Queue[Frame]" = field(default_factory=asyncio.Queue)

    def greetings(self) -> tuple[Frame, ...]:
        return self.first

    def hear(self, frame: Frame) -> None:
        if frame["t"] == "nonsense":
            raise Malformed("nonsense")
        self.heard.put_nowait(frame)


class Head:
    """A head of its own: accepts agents, answers beats, keeps frames. `frozen`: it accepts and reads, says nothing."""

    def __init__(self, terms: Terms = TERMS) -> None:
        self.terms = terms
        self.munged = FakeMunged()
        self.frozen = False
        self.heard: asyncio.Queue[Frame] = asyncio.Queue()
        self.channels: asyncio.Queue[Channel] = asyncio.Queue()
        self.port = 0
        self.ahead_s = 0.0
        self.beats = 0
        self.answered = 0
        self.left: object = None
        """What an agent said that ends with it."""
        self.ended = asyncio.Event()

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def connect(self) -> tuple[Channel, Terms]:
        reader, writer = await dial("127.0.0.1", self.port, Threads(1))
        return await greet_head(reader, writer, sealer(self.munged), HELLO)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel, _ = await greet_agent(reader, writer, sealer(self.munged), self.terms)
        self.channels.put_nowait(channel)
        try:
            while True:
                await self._answer(channel, await channel.receive())
        except Gone:
            self.ended.set()
            channel.close()

    async def _answer(self, channel: Channel, frame: Frame) -> None:
        if self.frozen:
            return
        if "leaves" in frame:
            self.left = frame["leaves"]
        elif frame["t"] == "beat":
            self.beats += 1
            if "sent" in frame:
                self.answered += 1
                await channel.beat(echo=frame["sent"], now=SystemClock().now() + self.ahead_s)
        else:
            self.heard.put_nowait(frame)


@dataclass
class Scene:
    head: Head
    ears: Ears
    link: HeadLink
    server: asyncio.Server


def run(story: Callable[[Scene], Awaitable[None]], first: tuple[Frame, ...] = (), terms: Terms = TERMS) -> None:
    async def within() -> None:
        async with asyncio.timeout(2 * FACT_S):
            head, ears = Head(terms), Ears(first)
            server = await head.start()
            link = HeadLink({"head1": head.connect}, clock=SystemClock(), rng=random.Random(1))
            running = asyncio.ensure_future(link.run(ears))
            try:
                await story(Scene(head, ears, link, server))
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                server.close()

    asyncio.run(within())


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_frames_go_both_ways_and_each_connection_begins_with_the_greetings() -> None:
    async def story(scene: Scene) -> None:
        assert await scene.head.heard.get() == {"t": "report", "n": 1}
        scene.link.post({"t": "ask", "n": 2})
        assert await scene.head.heard.get() == {"t": "ask", "n": 2}
        channel = await scene.head.channels.get()
        await channel.send({"t": "answer"})
        assert await scene.ears.heard.get() == {"t": "answer"}
        channel.close()
        assert await scene.head.heard.get() == {"t": "report", "n": 1}

    run(story, first=({"t": "report", "n": 1},))


@pytest.mark.parametrize("word", [ALONE, WITH_HOST, WITH_ALL])
def test_one_that_is_told_to_end_says_what_ends_with_it(word: float) -> None:
    async def story() -> None:
        head = Head()
        server = await head.start()
        link = HeadLink({"head1": head.connect}, clock=SystemClock(), rng=random.Random(1), last_word=lambda: word)
        running = asyncio.ensure_future(link.run(Ears(({"t": "report"},))))
        await head.heard.get()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await head.ended.wait()
        assert head.left == word
        server.close()

    asyncio.run(asyncio.wait_for(story(), FACT_S))


def test_one_that_is_told_to_end_is_heard_before_it_finds_out_what_ends_with_it() -> None:
    """That may take a second, which beside a stopped slurmd looks like the death of the node."""

    async def story() -> None:
        head = Head(replace(TERMS, interval_s=FACT_S / 2))
        server = await head.start()
        link = HeadLink({"head1": head.connect}, clock=SystemClock(), rng=random.Random(1), last_word=lambda: ALONE)
        running = asyncio.ensure_future(link.run(Ears(())))
        await until(lambda: head.beats == 1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await head.ended.wait()
        assert (head.beats, head.left) == (2, ALONE)
        server.close()

    asyncio.run(asyncio.wait_for(story(), FACT_S))


def test_what_is_said_while_a_connection_is_made_is_said_on_it() -> None:
    """A job that opts in between the list in our hello and the head's welcome stands in neither."""

    async def story() -> None:
        head = Head()
        server = await head.start()
        began, go_on = asyncio.Event(), asyncio.Event()

        async def connect() -> tuple[Channel, Terms]:
            began.set()
            await go_on.wait()
            return await head.connect()

        link = HeadLink({"head1": connect}, clock=SystemClock(), rng=random.Random(1))
        running = asyncio.ensure_future(link.run(Ears(({"t": "report"},))))
        await began.wait()
        link.post({"t": "opted"})
        go_on.set()
        assert {(await head.heard.get())["t"], (await head.heard.get())["t"]} == {"opted", "report"}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        server.close()

    asyncio.run(asyncio.wait_for(story(), FACT_S))


def test_what_was_said_on_a_connection_that_did_not_come_is_not_said_on_the_next() -> None:
    """The hello of the next says it; so nothing piles up while the head is away."""

    async def story() -> None:
        head = Head()
        server = await head.start()
        tries = 0

        async def connect() -> tuple[Channel, Terms]:
            nonlocal tries
            tries += 1
            if tries == 1:
                link.post({"t": "opted"})
                raise Gone("not yet")
            return await head.connect()

        link = HeadLink({"head1": connect}, clock=SystemClock(), rng=random.Random(1))
        running = asyncio.ensure_future(link.run(Ears(({"t": "report"},))))
        assert await head.heard.get() == {"t": "report"}
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        server.close()

    asyncio.run(asyncio.wait_for(story(), FACT_S))


def test_the_link_knows_since_when_the_head_is_away() -> None:
    async def story(scene: Scene) -> None:
        assert scene.link.away_since is not None
        channel = await scene.head.channels.get()
        await until(lambda: scene.link.away_since is None)
        scene.server.close()
        before = SystemClock().now()
        channel.close()
        await until(lambda: scene.link.away_since is not None)
        assert scene.link.away_since is not None
        assert before <= scene.link.away_since <= SystemClock().now()
        scene.link.post({"t": "lost"})

    run(story)


def test_a_head_that_freezes_is_left_and_tried_again() -> None:
    async def story(scene: Scene) -> None:
        await until(lambda: scene.link.away_since is None)
        scene.head.frozen = True
        await until(lambda: scene.link.away_since is not None)
        scene.head.frozen = False
        await until(lambda: scene.link.away_since is None and scene.link.skew_s is not None)

    run(story, terms=IMPATIENT)


def asked(silence: HeadSilence, beats: int) -> list[bool]:
    return [silence.next_asks() for _ in range(beats)]


def test_a_head_that_speaks_is_not_asked_to_until_it_is_silent_for_three_seconds() -> None:
    silence = HeadSilence(Terms(interval_s=0.5, late_after_s=3.0, now=0.0))
    assert asked(silence, 1) == [True], "a new connection measures the clocks"
    silence.heard()
    assert asked(silence, 7) == [False] * 6 + [True]
    silence.heard()
    assert asked(silence, 12) == [False] * 6 + [True] * 6
    with pytest.raises(Gone, match="silent for 3 s, though asked"):
        silence.next_asks()


@pytest.mark.parametrize(("interval_s", "late_after_s"), [(4.0, 12.0), (40.0, 120.0)])
def test_on_a_large_site_each_of_the_rare_heartbeats_is_answered(interval_s: float, late_after_s: float) -> None:
    silence = HeadSilence(Terms(interval_s=interval_s, late_after_s=late_after_s, now=0.0))
    assert asked(silence, 3) == [True] * 3
    with pytest.raises(Gone):
        silence.next_asks()
    silence.heard()
    assert asked(silence, 3) == [True] * 3


def test_most_heartbeats_wake_the_agent_once_because_they_are_not_answered() -> None:
    async def story(scene: Scene) -> None:
        await until(lambda: scene.head.beats >= 20)
        assert scene.head.answered == 1
        assert scene.link.away_since is None

    run(story)


def test_a_head_that_comes_back_on_its_port_is_found_again() -> None:
    async def story(scene: Scene) -> None:
        channel = await scene.head.channels.get()
        scene.server.close()
        channel.close()
        await until(lambda: scene.link.away_since is not None)
        await asyncio.sleep(0.1)
        scene.server = await scene.head.start()
        await until(lambda: scene.link.away_since is None)

    run(story)


def test_a_word_of_the_head_that_cannot_be_read_costs_that_word_alone() -> None:
    async def story(scene: Scene) -> None:
        channel = await scene.head.channels.get()
        await channel.send({"t": "nonsense"})
        await channel.send({"t": "answer", "id": "a"})
        assert await scene.ears.heard.get() == {"t": "answer", "id": "a"}
        assert scene.head.channels.empty()

    run(story)


@pytest.mark.parametrize("word", [{"t": "ask", "id": "x" * MAX_FRAME}, {"t": "ask", "id": float("nan")}])
def test_a_word_that_cannot_be_sent_costs_that_word_alone(word: Frame) -> None:
    async def story(scene: Scene) -> None:
        await scene.head.channels.get()
        await until(lambda: scene.link.away_since is None)
        scene.link.post(word)
        scene.link.post({"t": "ask", "id": "b"})
        assert await scene.head.heard.get() == {"t": "ask", "id": "b"}
        assert scene.head.channels.empty()

    run(story)


def test_the_clocks_difference_is_measured_by_the_beats_and_forgotten_with_the_connection() -> None:
    async def story(scene: Scene) -> None:
        scene.head.ahead_s = 40.0
        await until(lambda: scene.link.skew_s is not None and 39 < scene.link.skew_s < 41)
        scene.server.close()
        (await scene.head.channels.get()).close()
        await until(lambda: scene.link.away_since is not None)
        assert scene.link.skew_s is None

    run(story)


def test_without_munged_the_frame_that_could_not_be_sealed_is_not_lost_from_the_greetings() -> None:
    async def story(scene: Scene) -> None:
        await scene.head.heard.get()
        scene.head.munged.up = False
        scene.link.post({"t": "ask"})
        await until(lambda: scene.link.away_since is not None)
        scene.head.munged.up = True
        assert (await scene.head.heard.get())["t"] == "report"

    run(story, first=({"t": "report"},))


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_the_wait_between_tries_grows_to_its_limit_and_is_jittered(chance: float) -> None:
    waits = [backoff_s(tries, chance) for tries in range(1, 40)]
    assert waits == sorted(waits)
    assert 0.05 <= waits[0] <= 0.1
    assert waits[-1] == LAST_BACKOFF_S * (0.5 + chance / 2)


def test_a_ping_is_answered_at_once_and_is_no_measure_of_the_clocks() -> None:
    async def story(scene: Scene) -> None:
        channel = await scene.head.channels.get()
        await until(lambda: scene.link.skew_s is not None)
        beats = scene.head.beats
        for _ in range(20):
            await channel.beat(now=1.0)
        await until(lambda: scene.head.beats >= beats + 20)
        assert abs(scene.link.skew_s or 0.0) < 1e6

    run(story, terms=replace(TERMS, interval_s=FACT_S / 4))
