"""The agent: dispatches the head's frames to its parts. Decisions about nodes and jobs are the head's."""

import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from steward.adapters.codec import number_field, text_field
from steward.adapters.together import run_together
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import facts_of
from steward.adapters.wire.messages import answer_of
from steward.adapters.wire.order_messages import LookOrder, let_go_of, look_of, mend_of, stacks_of
from steward.agent.desk import JobDesk
from steward.agent.link import HeadLink
from steward.model.agent_action import CollectStacks, LetGo, MendNode
from steward.model.ids import JobId, NodeName
from steward.model.job_report import ResumeFacts
from steward.ports import Notifier

log = logging.getLogger(__name__)
ALIVE_EVERY_S = 20.0
"""The longest time between two signs of life to the service manager, which waits for 60 s (WatchdogSec)."""
_TYPE_SHOWN = 20
_MAX_UNKNOWN = 100
"""The most unknown frame types that are logged, each once."""


class Reports(Protocol):
    """A part whose state (deep checks, jobs, setup, repair, ...) is sent on every new connection."""

    def frames(self) -> tuple[Frame, ...]:
        """Return the frames with the part's current state; empty if there is nothing to report."""


class ChecksPart(Reports, Protocol):
    """The checks, as the agent calls them."""

    def check_now(self, request: str, budget_s: float) -> None:
        """Start every quick check; the report that answers `request` is posted within `budget_s` seconds."""

    async def run(self) -> None:
        """Watch until cancelled."""


class AgentPart(Reports, Protocol):
    """The lifecycle scripts, or the elastic runs whose base job's script is on this node, as the agent calls them."""

    def hear(self, frame: Frame) -> None:
        """Take an order of the head, or a part of one, without blocking. Raises Malformed."""

    async def run(self) -> None:
        """Watch until cancelled."""


class MendHandler(Reports, Protocol):
    """The light repairs of this node, as the agent calls them."""

    def obey(self, order: MendNode) -> None:
        """Start the repair, or report its result again, without blocking."""


class LetGoHandler(Protocol):
    """The cleanup of lost runs, as the agent calls it."""

    def obey(self, order: LetGo) -> None:
        """Start ending the leftover slurmstepds of a lost run, without blocking."""


class FactsListener(Protocol):
    """The receiver of the head's facts about resumed jobs."""

    def hear(self, job: JobId, facts: ResumeFacts | None) -> None:
        """Take the head's facts about a resumed job; None where the head does not know the job."""


class StacksHandler(Protocol):
    """The collection of stacks, as the agent calls it."""

    def obey(self, order: CollectStacks) -> None:
        """Start collecting the stacks of a job's tasks, without blocking."""


class LookHandler(Protocol):
    """The probes of other nodes, as the agent calls them."""

    def obey(self, order: LookOrder) -> None:
        """Start probing another node's slurmd, without blocking."""


class Agent:
    """The agent's main object: the link's listener, and the task group of all parts."""

    def __init__(
        self,
        *,
        node: NodeName,
        link: HeadLink,
        desk: JobDesk,
        past: FactsListener,
        senses: ChecksPart,
        letting_go: LetGoHandler,
        jobs: Reports,
        sight: Reports,
        stacks: StacksHandler,
        setups: AgentPart,
        deep: Reports,
        mending: MendHandler,
        peers: LookHandler,
        elastic: AgentPart,
        notifier: Notifier,
    ) -> None:
        self._node = node
        self._link = link
        self._desk = desk
        self._past = past
        self._senses = senses
        self._letting_go = letting_go
        self._jobs = jobs
        self._sight = sight
        self._stacks = stacks
        self._setups = setups
        self._deep = deep
        self._mending = mending
        self._peers = peers
        self._elastic = elastic
        self._notifier = notifier
        self._unknown: set[str] = set()

    def greetings(self) -> tuple[Frame, ...]:
        """Return the frames of every part's state, for a new connection."""
        of_jobs = (self._desk, self._jobs, self._sight, self._elastic)
        speakers = (self._senses, *of_jobs, self._setups, self._deep, self._mending)
        return tuple(frame for speaker in speakers for frame in speaker.frames())

    def hear(self, frame: Frame) -> None:
        """Hand a frame of the head to the part that it is for; log an unknown type once."""
        match frame["t"]:
            case "answer":
                self._desk.decide(*answer_of(frame))
            case "facts":
                self._past.hear(*facts_of(frame))
            case "check_now":
                self._senses.check_now(text_field(frame, "id"), number_field(frame, "budget_s"))
            case "let_go":
                self._letting_go.obey(let_go_of(frame, self._node))
            case "stacks":
                self._stacks.obey(stacks_of(frame, self._node))
            case "look":
                self._peers.obey(look_of(frame))
            case "mend":
                self._mending.obey(mend_of(frame, self._node))
            case "elastic":
                self._elastic.hear(frame)
            case "set_up":
                self._setups.hear(frame)
            case _:
                self._ignore_unknown(frame["t"][:_TYPE_SHOWN])

    def _ignore_unknown(self, type: str) -> None:
        # a head of another version may send unknown types: its other frames still count
        if type not in self._unknown and len(self._unknown) < _MAX_UNKNOWN:
            self._unknown.add(type)
            log.warning("frames of the unknown type %r from the head are ignored: is it of another version?", type)

    async def run(self, *more: Coroutine[Any, Any, None]) -> None:
        """Run all parts until cancelled, or until one of them fails; then raise its error."""
        self._notifier.ready()
        try:
            parts = (self._link.run(self), self._senses.run(), self._setups.run(), self._elastic.run(), self._alive())
            await run_together(*parts, *more)
        finally:
            self._notifier.stopping()

    async def _alive(self) -> None:
        while True:
            self._notifier.alive("connected" if self._link.away_since is None else "no head")
            await self._link.news(ALIVE_EVERY_S)
