"""Take agents' frames, and pass each to the part of the head that keeps its content.

Times are of arrival, by our clock. A job's past is told only to the job's nodes. A job may begin a moment before the
head has seen its nodes: until then a question about its past waits, but not longer than the program that asks.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Protocol

from steward.adapters.codec import text_field
from steward.adapters.wire.deep_messages import deep_of
from steward.adapters.wire.elastic_messages import elastic_word_of
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import (
    BundlePiece,
    ask_of,
    bundle_of,
    exits_of,
    facts_frame,
    facts_wanted_of,
    progress_of,
    sight_of,
)
from steward.adapters.wire.messages import answer_frame, opted_list, report_of
from steward.adapters.wire.order_messages import LogChunk, looked_of, mended_of, setup_log_of, setup_of
from steward.head.link import Link
from steward.head.roster import Roster
from steward.head.waiting import Asks, Opted
from steward.model.ask import Answer, OptedIn
from steward.model.ids import AskId, BootId, JobId, NodeName
from steward.model.job_report import ResumeFacts, TaskExit
from steward.model.text import printable
from steward.model.witness import PeerWord
from steward.ports import Clock

log = logging.getLogger(__name__)
_TYPE_SHOWN, _ID_SHOWN = 20, 128
_MOST_LEFT_OUT = 1000
"""At most this many ignored types of frames are reported, once each."""

MAX_WAITING = 10_000
"""The most waiting questions in all: a large job asks from all its nodes at once."""
MAX_OF_NODE = 16
_PATIENCE_S = 1.5
_AGAIN_S = 0.02


class AgentConnection(Protocol):
    """A connection of a node's agent."""

    @property
    def node(self) -> NodeName: ...

    def send(self, frame: Frame) -> None: ...


class Questions:
    """Questions about a job's past that wait until the head has seen where the job runs. In the loop's thread only.

    `nodes_of` gives the nodes of a job in the last picture; empty if they are not known yet.
    """

    def __init__(
        self,
        *,
        facts: Callable[[JobId], ResumeFacts | None],
        nodes_of: Callable[[JobId], Collection[NodeName]],
        ring: Callable[[], None],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._facts, self._nodes_of, self._ring, self._patience_s = facts, nodes_of, ring, patience_s
        self._waiting: defaultdict[JobId, dict[AgentConnection, float]] = defaultdict(dict)
        self._count: Counter[NodeName] = Counter()
        self._all = 0
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, link: AgentConnection, job: JobId) -> None:
        """Answer at once if the job runs on the node, or with nothing if too many questions wait; else let it wait."""
        if link.node in self._nodes_of(job):
            link.send(facts_frame(job, self._facts(job)))
        elif link in self._waiting.get(job, ()):
            return
        elif self._all >= MAX_WAITING or self._count[link.node] >= MAX_OF_NODE:
            link.send(facts_frame(job, None))
        else:
            self._wait(link, job)

    def drop(self, link: AgentConnection) -> None:
        """Forget the questions of a connection that ended."""
        for job in [job for job, links in self._waiting.items() if link in links]:
            self._done(link, job)

    def _wait(self, link: AgentConnection, job: JobId) -> None:
        """Let a question wait for the next picture."""
        loop = asyncio.get_running_loop()
        self._waiting[job][link] = loop.time() + self._patience_s
        self._count[link.node] += 1
        self._all += 1
        if self._timer is None:
            self._timer = loop.call_later(_AGAIN_S, self._look)
        if len(self._waiting[job]) == 1:
            self._ring()

    def _look(self) -> None:
        """Answer the questions of jobs that now show the node, and those that waited too long."""
        loop = asyncio.get_running_loop()
        for job, links in list(self._waiting.items()):
            nodes = self._nodes_of(job)
            for link, until in list(links.items()):
                if link.node in nodes or loop.time() >= until:
                    self._done(link, job)
                    link.send(facts_frame(job, self._facts(job) if link.node in nodes else None))
        self._timer = loop.call_later(_AGAIN_S, self._look) if self._waiting else None

    def _done(self, link: AgentConnection, job: JobId) -> None:
        """Remove a question."""
        del self._waiting[job][link]
        if not self._waiting[job]:
            del self._waiting[job]
        self._all -= 1
        self._count[link.node] -= 1
        if not self._count[link.node]:
            del self._count[link.node]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The receivers of setup logs and bundles, which are not kept in memory. Neither may block."""

    log: Callable[[NodeName, LogChunk], None]
    bundle: Callable[[NodeName, BundlePiece], None]


class Hearing:
    """The taker of agents' frames."""

    def __init__(
        self,
        *,
        roster: Roster,
        asks: Asks[Link],
        opted: Opted,
        clock: Clock,
        ring: Callable[[], None],
        keep: Keep,
        questions: Questions,
    ) -> None:
        self._roster, self._asks, self._opted = roster, asks, opted
        self._clock, self._ring, self._keep, self._questions = clock, ring, keep, questions
        self._left_out: set[tuple[NodeName, str]] = set()

    def take(self, link: Link, frame: Frame) -> None:
        """Take a frame other than a heartbeat; ignore one of unknown type. Raises Malformed."""
        match frame["t"]:
            case "report":
                self._ring_if(self._roster.take_report(link.node, report_of(frame), self._clock.now()))
            case "setup":
                self._ring_if(self._roster.take_setup(link.node, replace(setup_of(frame), at=self._clock.now())))
            case "mended":
                self._ring_if(self._roster.take_mend(link.node, replace(mended_of(frame), at=self._clock.now())))
            case "deep":
                report = replace(deep_of(frame, link.node), at=self._clock.now())
                self._ring_if(self._roster.take_deep_report(link.node, report))
            case "looked":
                node, result = looked_of(frame)
                word = PeerWord(by=link.node, result=result, at=self._clock.now())
                self._ring_if(self._roster.take_peer_word(node, word))
            case "setup_log":
                self._keep.log(link.node, setup_log_of(frame))
            case _:
                self._job_frame(link, frame)

    def _job_frame(self, link: Link, frame: Frame) -> None:
        """Keep a frame about one job."""
        match frame["t"]:
            case "ask":
                self._take_ask(link, frame)
            case "withdraw":
                self._ring_if(self._asks.withdraw(AskId(text_field(frame, "id")), link))
            case "opted":
                self.note_opted(link, opted_list(frame))
            case "progress":
                jobs = progress_of(frame, link.node, self._clock.now())
                self._ring_if(self._roster.take_progress(link.node, jobs))
            case "sight":
                steps = sight_of(frame, link.node, self._clock.now())
                self._ring_if(self._roster.take_sights(link.node, steps))
            case "elastic":
                word = elastic_word_of(frame, link.node, self._clock.now())
                self._ring_if(self._roster.take_elastic_word(link.node, word))
            case "bundle":
                self._keep_piece(link.node, bundle_of(frame))
            case "exits":
                self._take_exits(link.node, exits_of(frame, link.node, self._clock.now()))
            case "facts?":
                self._questions.ask(link, facts_wanted_of(frame))
            case other:
                type = printable(other, _TYPE_SHOWN)
                why = f"frames of the unknown type '{type}' are ignored: is the agent of another version?"
                self._leave_out(link.node, type, why)

    def leave_out(self, link: Link, frame: Frame, why: str) -> None:
        """Ignore an unreadable frame, reported once for each node and type; answer STOP if it is a shim's request."""
        type, id = frame["t"][:_TYPE_SHOWN], frame.get("id")
        shown = printable(type, _TYPE_SHOWN)
        self._leave_out(link.node, type, f"a frame of the type '{shown}' cannot be read and is ignored: {why}")
        if type == "ask" and isinstance(id, str) and id.isascii() and id.isprintable():
            link.send(answer_frame(AskId(id[:_ID_SHOWN]), Answer.STOP, frozenset()))

    def _leave_out(self, node: NodeName, type: str, why: str) -> None:
        """Report an ignored type once."""
        if (node, type) not in self._left_out and len(self._left_out) < _MOST_LEFT_OUT:
            self._left_out.add((node, type))
            log.warning("%s", why, extra={"node": node})

    def _take_ask(self, link: Link, frame: Frame) -> None:
        """Take a shim's request; its deadline counts from its arrival, by our clock."""
        ask = replace(ask_of(frame, link.node), at=self._clock.now())
        about = {"node": link.node, "job": ask.job}
        if self._asks.add(ask, link):
            log.info("a shim asks: its %s failed", ask.kind.value, extra=about)
        else:
            log.warning(
                "too many shims wait on this node, or its id is in use: it is told to stop",
                extra=about,
            )
            link.send(answer_frame(ask.id, Answer.STOP, frozenset()))
        self._ring()

    def _take_exits(self, node: NodeName, exits: tuple[TaskExit, ...]) -> None:
        """Take the ends of tasks on a node."""
        # Only decisions on requests use them: if no shim of the job waits, they need no turn.
        is_news = self._roster.take_exits(node, exits)
        self._ring_if(is_news and any(self._asks.waits_for(exit.job) for exit in exits))

    def _keep_piece(self, node: NodeName, piece: BundlePiece) -> None:
        """Keep a piece of a bundle, and note that the bundle is complete after its last piece."""
        self._keep.bundle(node, piece)
        if piece.is_last:
            self._roster.note_bundle(node, piece.name)
            self._ring()

    def note_opted(self, link: Link, opted: tuple[OptedIn, ...]) -> None:
        """Note an agent's reports on jobs that opted in, from a frame or at its connection."""
        news = [self._opted.add(self._as_told(link, one)) for one in opted]
        self._ring_if(any(news))

    def _as_told(self, link: Link, one: OptedIn) -> OptedIn:
        """Return the report with who made it, in which boot, and when."""
        who, began_in = link.incarnation, frozenset[tuple[NodeName, BootId]]()
        if one.has_script and who is not None:
            began_in = frozenset({(link.node, who.boot)})
        left = f"{link.node}: {one.left}" if one.left else ""
        return replace(
            one,
            at=self._clock.now(),
            told_by=frozenset({link.node}),
            left=left,
            has_script=False,
            began_in=began_in,
        )

    def _ring_if(self, news: bool) -> None:
        """Wake the cycle if there is news."""
        if news:
            self._ring()
