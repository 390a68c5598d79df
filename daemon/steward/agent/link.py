"""The one connection to the head that leads: opened, kept alive by heartbeats, watched, and opened again."""

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from steward.adapters.together import run_together
from steward.adapters.wire.frames import ALONE, BEAT, Channel, Frame, Gone, Malformed, why_unsendable
from steward.adapters.wire.handshake import Terms, seconds_to_next_beat
from steward.adapters.wire.head_messages import HeadFollows
from steward.agent.head_order import STEADY_S, HeadOrder
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

MAX_QUEUED = 1024
UNASKED_S = 3.0
"""How long the head may be silent before a heartbeat asks for an answer."""
SAY_EVERY = 100

Connect = Callable[[], Awaitable[tuple[Channel, Terms]]]
"""Connect to one head and shake hands. Raises PortError."""


class Listener(Protocol):
    """The receiver of the head's frames."""

    def greetings(self) -> tuple[Frame, ...]:
        """Return the frames with which every new connection begins."""

    def hear(self, frame: Frame) -> None:
        """Take a frame that is no heartbeat. Raises Malformed for a frame that is to be ignored."""


class Outbox(Protocol):
    """The outbox of frames for the head."""

    def post(self, frame: Frame) -> None:
        """Send the frame if there is a connection; drop it otherwise: a new connection begins with the greetings."""


class HeadConnection(Outbox, Protocol):
    """The connection to the head, as the agent's parts use it."""

    @property
    def away_since(self) -> float | None:
        """Return the time (Unix s) since which there is no connection; None while there is one."""


class HeadSilence:
    """The head's silence on one connection, in heartbeats, so that a stall of this process counts as one heartbeat."""

    def __init__(self, terms: Terms) -> None:
        # ask for few answers: each wakes this agent once more, which may disturb the node's jobs
        self._unasked = int(UNASKED_S / terms.interval_s)
        self._most = self._unasked + math.ceil(terms.late_after_s / terms.interval_s)
        self._late_after_s = terms.late_after_s
        self._beats = self._unasked

    def heard(self) -> None:
        """Note that the head spoke."""
        self._beats = 0

    def next_asks(self) -> bool:
        """Return whether the next heartbeat asks for an answer. Raises Gone if none came in time."""
        if self._beats >= self._most:
            raise Gone(f"silent for {self._late_after_s:g} s, though asked")
        self._beats += 1
        return self._beats > self._unasked


class HeadLink:
    """The agent's connection to the head. `post` never blocks; the agent's parts read `away_since` and `skew_s`."""

    def __init__(
        self,
        heads: Mapping[str, Connect],
        *,
        clock: Clock,
        rng: random.Random,
        last_word: Callable[[], float] = lambda: ALONE,
    ) -> None:
        """Take the way to each head, by its address in the settings.

        `last_word` returns within a second what ends with the agent: ALONE, WITH_HOST or WITH_ALL.
        """
        self._heads, self._last_word = heads, last_word
        self._order = HeadOrder(heads, rng.random)
        self._epoch = 0
        """The highest epoch of the heads that led; 0 if this agent knows of none."""
        self._changed = asyncio.Event()
        self._clock = clock
        self._rng = rng
        self._outbox: asyncio.Queue[Frame] | None = None
        self.away_since: float | None = clock.now()
        self.skew_s: float | None = None
        """The head's clock minus this node's, measured by the heartbeats; None without a connection."""
        self.warning = ""
        """The head's last warning to jobs that ask to be resumed; empty for none."""

    async def news(self, within_s: float) -> None:
        """Wait until the connection opens or closes, at most `within_s` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._changed.wait()
        self._changed.clear()

    def post(self, frame: Frame) -> None:
        """Send the frame if there is a connection; log and drop a frame that cannot be encoded.

        A connection that cannot keep up is closed and opened again.
        """
        if self._outbox is None:
            return
        if why := why_unsendable(frame):
            log.error("a word for the head is left out type=%s why=%r", frame.get("t"), why)
            return
        try:
            self._outbox.put_nowait(frame)
        except asyncio.QueueFull:
            log.warning("head does not keep up: queue full")

    async def run(self, listener: Listener) -> None:
        """Keep a connection to the head that leads, until cancelled.

        After every fault try again, with a growing, jittered wait for each head.
        """
        tries, now = 0, asyncio.get_running_loop().time
        while True:
            head, wait_s = self._order.next(now())
            await asyncio.sleep(wait_s)
            began = now()
            try:
                await self._once(listener, head)
            except HeadFollows as error:
                log.debug("head follows head=%s leader=%s", head, error.word.leader)
                self._order.follows(head, now(), error.word)
                continue
            except PortError as error:
                level = logging.WARNING if tries % SAY_EVERY == 0 else logging.DEBUG
                log.log(level, "head away why=%r try=%d", str(error), tries + 1)
            lasted_s = now() - began
            tries = 0 if lasted_s > STEADY_S else tries + 1
            self._order.ended(head, now(), lasted_s=lasted_s)

    async def _once(self, listener: Listener, head: str) -> None:
        self._outbox = asyncio.Queue(MAX_QUEUED)  # before the hello: frames posted after it was built are sent, too
        try:
            channel, terms = await self._heads[head]()
            self._check_epoch(channel, terms)
            log.info("head connected head=%s epoch=%d interval_s=%g", head, terms.epoch, terms.interval_s)
            try:
                await self._talk(channel, terms, listener, self._outbox)
            finally:
                self.away_since = self._clock.now()
                self._changed.set()
                self.skew_s = None
                channel.close()
        finally:
            self._outbox = None

    def _check_epoch(self, channel: Channel, terms: Terms) -> None:
        """Raise Gone for a head that another one has replaced: its orders must not be carried out any more."""
        if terms.epoch and terms.epoch < self._epoch:
            channel.close()
            raise Gone(f"this head leads by epoch {terms.epoch}, but another one led by {self._epoch} since")
        self._epoch = max(terms.epoch, self._epoch)

    async def _talk(self, channel: Channel, terms: Terms, listener: Listener, outbox: "asyncio.Queue[Frame]") -> None:
        self.warning = terms.warning
        for frame in listener.greetings():
            self.post(frame)
        self.away_since = None
        self._changed.set()
        try:
            silence = HeadSilence(terms)
            listen = self._listen(channel, listener, silence)
            await run_together(self._beat(channel, terms, silence), listen, self._send_queued(channel, outbox))
        except asyncio.CancelledError:
            await self._take_leave(channel)
            raise

    async def _take_leave(self, channel: Channel) -> None:
        """Tell the head what ends: the agent alone, or its host, which ends the jobs there."""
        # if only the agent ends, slurmd may restart at the same time: its silence is then no evidence against the node
        with contextlib.suppress(PortError):
            # `last_word` may take a second: without this heartbeat the head would take a busy node for a dead one
            await channel.beat(sent=self._clock.now())
            await channel.beat(sent=self._clock.now(), leaves=self._last_word())

    async def _beat(self, channel: Channel, terms: Terms, silence: HeadSilence) -> None:
        """Send a heartbeat at the start and then at every interval, jittered so that agents do not beat in step.

        Raises Gone when the head was asked for an answer and stays silent for too long.
        """
        wait_s = terms.interval_s * self._rng.random()
        while True:
            sent, asks = self._clock.now(), silence.next_asks()
            await (channel.beat(sent=sent) if asks else channel.beat(lives=sent))
            await asyncio.sleep(seconds_to_next_beat(wait_s, sent + (self.skew_s or 0.0)))
            wait_s = terms.interval_s

    async def _listen(self, channel: Channel, listener: Listener, silence: HeadSilence) -> None:
        """Handle the head's frames. Raises Gone when the connection ended."""
        while True:
            frame = await channel.receive()
            silence.heard()
            if frame["t"] == BEAT and "echo" not in frame:  # a ping: the head asks at once whether the agent lives
                await channel.beat(lives=self._clock.now())
            elif frame["t"] == BEAT:
                self._measure_skew(frame)
            else:
                self._dispatch(listener, frame)

    def _dispatch(self, listener: Listener, frame: Frame) -> None:
        # a malformed frame is ignored, not a fault: the head would send the same frame on the next connection
        try:
            listener.hear(frame)
        except Malformed as error:
            log.error("a word of the head is left out type=%s why=%r", frame["t"][:20], str(error))

    async def _send_queued(self, channel: Channel, outbox: "asyncio.Queue[Frame]") -> None:
        while True:
            if outbox.full():
                raise Gone("the head does not read what we send")
            await channel.send(await outbox.get())

    def _measure_skew(self, frame: Frame) -> None:
        echo, now = frame.get("echo"), frame.get("now")
        if not isinstance(echo, int | float) or not isinstance(now, int | float):
            raise Malformed("a beat without its times")
        here = self._clock.now()
        if 0 <= here - echo < 1.0:  # a slow round trip says little about the clocks
            self.skew_s = now - (echo + here) / 2
