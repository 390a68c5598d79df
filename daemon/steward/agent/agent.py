"""The agent: what its parts say to each other. It decides nothing about nodes or jobs; the head does."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from steward.adapters.wire.codec import number, text
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import StacksOrder, facts_of, stacks_of
from steward.adapters.wire.messages import LetGoOrder, answer_of, let_go_of
from steward.adapters.wire.order_messages import LookOrder, MendOrder, look_of, mend_of
from steward.agent.desk import Desk
from steward.agent.link import Link
from steward.agent.tasks import together
from steward.model.ids import JobId
from steward.model.job_report import ResumeFacts
from steward.ports import Notifier

log = logging.getLogger(__name__)
ALIVE_EVERY_S = 5.0
_TYPE_SHOWN = 20
_MOST_LEFT_OUT = 100
"""Types of frames that are told of, each once."""


class Reports(Protocol):
    """What is said on every new connection of the deep checks, jobs, setup, repair, ... of this boot."""

    def frames(self) -> tuple[Frame, ...]:
        """As they stand now; none where there is nothing to tell."""


class Senses(Reports, Protocol):
    """The checks, as the agent sees them."""

    def check_now(self, request: str, budget_s: float) -> None:
        """Begin; the report that answers `request` is posted within `budget_s` seconds."""

    async def run(self) -> None:
        """Watch, until cancelled."""


class Part(Reports, Protocol):
    """The node's lifecycle scripts, or the elastic runs whose base's script is here, as the agent sees them."""

    def hear(self, frame: Frame) -> None:
        """An order, or a part of one; never blocks. Raises Malformed."""

    async def run(self) -> None:
        """Watch, until cancelled."""


class Mending(Reports, Protocol):
    """The light repairs of this node, as the agent sees them."""

    def obey(self, order: MendOrder) -> None:
        """Begin, or tell again how it ended; never blocks."""


class LettingGo(Protocol):
    def obey(self, order: LetGoOrder) -> None:
        """Begin to end what is left of a lost run; never blocks."""


class Past(Protocol):
    def hear(self, job: JobId, facts: ResumeFacts | None) -> None:
        """Take the head's facts about a resumed job."""


class Stacks(Protocol):
    def obey(self, order: StacksOrder) -> None:
        """Begin to find out what a job's tasks are doing; never blocks."""


class PeerLook(Protocol):
    def obey(self, order: LookOrder) -> None:
        """Begin to look at another node's slurmd; never blocks."""


class Agent:
    """A Listener of the link, and the one that runs everything."""

    def __init__(
        self,
        *,
        link: Link,
        desk: Desk,
        past: Past,
        senses: Senses,
        letting_go: LettingGo,
        jobs: Reports,
        stacks: Stacks,
        setups: Part,
        deep: Reports,
        mending: Mending,
        peers: PeerLook,
        elastic: Part,
        notifier: Notifier,
    ) -> None:
        self._link = link
        self._desk = desk
        self._past = past
        self._senses = senses
        self._letting_go = letting_go
        self._jobs = jobs
        self._stacks = stacks
        self._setups = setups
        self._deep = deep
        self._mending = mending
        self._peers = peers
        self._elastic = elastic
        self._notifier = notifier
        self._left_out: set[str] = set()

    def greetings(self) -> tuple[Frame, ...]:
        speakers = (self._senses, self._desk, self._jobs, self._setups, self._deep, self._mending, self._elastic)
        return tuple(frame for speaker in speakers for frame in speaker.frames())

    def hear(self, frame: Frame) -> None:
        match frame["t"]:
            case "answer":
                self._desk.decide(*answer_of(frame))
            case "facts":
                self._past.hear(*facts_of(frame))
            case "check_now":
                self._senses.check_now(text(frame, "id"), number(frame, "budget_s"))
            case "let_go":
                self._letting_go.obey(let_go_of(frame))
            case "stacks":
                self._stacks.obey(stacks_of(frame))
            case "look":
                self._peers.obey(look_of(frame))
            case "mend":
                self._mending.obey(mend_of(frame))
            case "elastic":
                self._elastic.hear(frame)
            case "set_up":
                self._setups.hear(frame)
            case _:
                self._leave_out(frame["t"][:_TYPE_SHOWN])

    def _leave_out(self, type: str) -> None:
        """A head of another version says what we do not know: the rest of what it says still counts."""
        if type not in self._left_out and len(self._left_out) < _MOST_LEFT_OUT:
            self._left_out.add(type)
            log.warning("frames of the unknown type %r from the head are ignored: is it of another version?", type)

    async def run(self, *more: Coroutine[Any, Any, None]) -> None:
        """Until cancelled, or until one part fails for good: then its error."""
        self._notifier.ready()
        try:
            parts = (self._link.run(self), self._senses.run(), self._setups.run(), self._elastic.run(), self._alive())
            await together(*parts, *more)
        finally:
            self._notifier.stopping()

    async def _alive(self) -> None:
        while True:
            self._notifier.alive("connected" if self._link.away_since is None else "no head")
            await asyncio.sleep(ALIVE_EVERY_S)
