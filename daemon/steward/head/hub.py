"""All agent connections of the head: one asyncio server and one watch over them. Implements AgentPort."""

import asyncio
import logging
import random
import re
import socket
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Generic, Protocol, TypeVar

from steward.adapters.socket_path import AT_ONCE, lengthen
from steward.adapters.wire.frames import Channel, Frame, Gone, Malformed, pack
from steward.adapters.wire.handshake import (
    HANDSHAKE_TIMEOUT_S,
    WAIT_S,
    HandshakeGate,
    Hello,
    Terms,
    accept_agent,
)
from steward.adapters.wire.head_messages import FollowerGreeting, follower_greeting_frame
from steward.adapters.wire.job_messages import BundlePiece, facts_frame
from steward.adapters.wire.messages import answer_frame, check_now_frame
from steward.adapters.wire.order_messages import LogChunk, LookOrder, look_frame, order_frames
from steward.adapters.wire.seal import Sealer
from steward.head.arrival import AgentAdmission, ArrivalRefused, PeerAddress, place_of
from steward.head.hearing import Hearing, Keep, Questions
from steward.head.link import Link
from steward.head.origin import Origin, Origins
from steward.head.passed import PassedRequests
from steward.head.roster import Roster, Superseded
from steward.head.waiting import Asks, Opted
from steward.head.watch import Examine, Watch, gone_after
from steward.model.agent_action import AgentAction, AgentsAction
from steward.model.ask import Answer, Ask, OptedIn
from steward.model.events import Event
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job_report import ResumeFacts
from steward.model.leadership import ALONE, Leadership
from steward.model.observed import AgentDetail, AgentView
from steward.model.resume_mode import SiteDefault
from steward.model.setting_types import AddressRule
from steward.model.text import printable
from steward.model.witness import Address, WitnessSeen
from steward.ports import Clock, PortError, Stale

log = logging.getLogger(__name__)

_NODE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
_BEATS_PER_S = 250
"""Heartbeats a second in all: one costs 66 us, mostly in the kernel and asyncio, all 1.7 % of a core.

Measured by tests/bench/heartbeats.py.
"""
_MAX_LINKS = 20_000
_MAX_GREETING = 12_000
"""The most connections in their handshake.

It is more than there are agents: an agent that is sent away comes again, which costs both sides more than a wait.
"""
_MAX_FREELY = 300
"""If more connections than this are in their handshake, each address may hold only a few of them."""
_CROWD = 32
"""If more connections than this wait, each agent is asked to wait longer for its handshake than it does by itself."""
_BACKLOG = 2_000
_ASKING_AGAIN = 4_000
"""If there are more nodes than this, their agents ask a follower more rarely than once in a second."""


class Hub:
    """All agent connections. Made and started in the loop's thread; any thread may call AgentPort's methods."""

    def __init__(
        self,
        *,
        sealer: Sealer,
        clock: Clock,
        ring: Callable[[], None],
        tell: Callable[[Event], None],
        heartbeat_s: float = 1.0,
        keep_log: Callable[[NodeName, LogChunk], None] = lambda node, chunk: None,
        keep_bundle: Callable[[NodeName, BundlePiece], None] = lambda node, piece: None,
        facts: Callable[[JobId], ResumeFacts | None] = lambda job: None,
        nodes_of: Callable[[JobId], Collection[NodeName]] = lambda job: (),
        defaults: tuple[SiteDefault, ...] = (),
        warning: str = "",
        origins: Origins | None = None,
        addresses: AddressRule = AddressRule.AUTO,
        examine: Examine | None = None,
        handshake_s: float = HANDSHAKE_TIMEOUT_S,
        leadership: Callable[[], Leadership] = lambda: ALONE,
        passed: PassedRequests | None = None,
    ) -> None:
        """Take the functions and settings that the hub works with.

        `keep_log` gets the output of nodes' setups, `keep_bundle` the stacks of jobs' tasks. `facts` returns a resumed
        job's past, which only the nodes in `nodes_of` are told. All of them are called in the loop's thread and must
        not block. `defaults` and `warning` are sent to every agent. `origins` knows the nodes' addresses, `addresses`
        is the rule for them. `examine` asks the second witness about an agent in doubt. `handshake_s` is the usual time
        limit of a handshake. `leadership` returns which head leads; `passed` serves other heads.
        """
        self._leadership, self._passed = leadership, passed or PassedRequests()
        self._sealer, self._clock, self._ring, self._tell = sealer, clock, ring, tell
        self._facts, self._nodes_of = facts, nodes_of
        self._heartbeat_s, self._nodes, self._defaults, self._warning = heartbeat_s, 0, defaults, warning
        self._roster = Roster()
        self._admission = AgentAdmission(origins or Origins(), addresses, tell)
        self._asks: Asks[Link] = Asks()
        self._opted = Opted()
        keep = Keep(log=keep_log, bundle=keep_bundle)
        self._questions = Questions(facts=facts, nodes_of=nodes_of, ring=ring)
        self._hearing = Hearing(
            roster=self._roster,
            asks=self._asks,
            opted=self._opted,
            clock=clock,
            ring=ring,
            keep=keep,
            questions=self._questions,
        )
        self._links: dict[NodeName, Link] = {}
        self._greeting: Greeting[Link] = Greeting(most=_MAX_GREETING, freely=_MAX_FREELY)
        self._watch = Watch(roster=self._roster, clock=clock, ring=ring, links=self._links, examine=examine)
        self._gate = HandshakeGate(usual_s=handshake_s)
        self._server: asyncio.Server | None = None
        self._turning: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._since = clock.now()
        self.beats = 0
        """Heartbeats answered since the start."""

    async def start(self, listener: socket.socket) -> int:
        """Take agents' connections; return the port."""
        self._loop = asyncio.get_running_loop()
        self._server = await self._loop.create_server(lambda: Link(self._greet), sock=listener, backlog=AT_ONCE)
        lengthen(self._server.sockets, _BACKLOG)
        self._turning = self._loop.create_task(self._watch.run())
        self._since = self._clock.now()
        return int(listener.getsockname()[1])

    def lead(self) -> None:
        """Note that this head leads from now on: agents had no reason to connect to it before."""
        self._since = self._clock.now()

    async def close(self) -> None:
        """Close all connections; agents come back when a head listens again."""
        if self._turning is not None:
            self._turning.cancel()
        log.info("hanging up on %d agents", len(self._links))
        if self._server is not None:
            self._server.close()
        links = list(self._links.values())
        self._links.clear()
        for link in [*links, *self._greeting.links]:
            link.close("the head stops")

    def expect(self, nodes: int) -> None:
        """Note the size of the cluster, which sets the heartbeat of later connections."""
        self._nodes = nodes

    def details(self) -> Mapping[NodeName, AgentDetail]:
        return self._roster.details()

    def nodes_at(self, origin: Origin) -> frozenset[NodeName]:
        """Return the nodes whose agents spoke last from an address of this origin."""
        return self._admission.nodes_at(origin)

    def forget_jobs(self, known: Collection[JobId]) -> None:
        """Forget opted-in jobs that Slurm does not know any more."""
        self._opted.forget(known, self._clock.now())

    # AgentPort

    def views(self) -> Mapping[NodeName, AgentView]:
        return self._roster.views()

    def asks(self) -> tuple[Ask, ...]:
        return self._asks.all()

    def opted_in(self) -> tuple[OptedIn, ...]:
        return self._opted.all()

    def since(self) -> float:
        return self._since

    def answer(self, ask: AskId, answer: Answer, exclude: frozenset[NodeName]) -> None:
        job = self._asks.job_of(ask)
        link = self._asks.take(ask)
        self._in_loop(lambda: link.send(answer_frame(ask, answer, exclude)))
        if answer is Answer.RETRY and job is not None:
            self._in_loop(lambda: self._tell_past(job, exclude))

    def _tell_past(self, job: JobId, exclude: frozenset[NodeName]) -> None:
        """Send the job's past to the nodes on which it runs again, before its tasks ask for it."""
        facts = self._facts(job)
        if facts is not None:
            self._send_all(frozenset(self._nodes_of(job)) - exclude, facts_frame(job, facts))

    def check_now(self, nodes: frozenset[NodeName], budget_s: float) -> None:
        frame = check_now_frame(self._clock.now(), budget_s)
        self._in_loop(lambda: self._send_all(nodes, frame))

    def order(self, action: AgentAction | AgentsAction) -> None:
        nodes, frames = action.nodes if isinstance(action, AgentsAction) else {action.node}, order_frames(action)
        if isinstance(action, AgentAction):
            view = self._roster.view(action.node)
            if view is None or not view.connected:
                raise Stale(f"the agent of {action.node} is not connected")
        self._in_loop(lambda: self._send_all(nodes, *frames))

    def have_looked_at(self, node: NodeName, slurmd: Address, peers: frozenset[NodeName]) -> None:
        frame = look_frame(LookOrder(node=node, address=slurmd.host, port=slurmd.port))
        self._in_loop(lambda: self._send_all(peers, frame))

    def keep_witness(self, seen: Mapping[NodeName, WitnessSeen]) -> None:
        self._roster.take_witness(seen)
        self._ring()

    # The links call these, in the loop's thread

    def beat(self, link: Link, sent: float) -> float:
        """Note a heartbeat; return our time for the answer."""
        self.beats += 1
        now = self._clock.now()
        link.skew_s = sent - now
        self._watch.heard(link)
        return now

    def frame(self, link: Link, frame: Frame) -> None:
        """Take a frame; ignore an unreadable one."""
        self._watch.heard(link)
        try:
            # Closing the connection would not help: the agent would send the same frame on the next one, and all users
            # of the node would wait.
            self._hearing.take(link, frame)
        except Malformed as error:
            self._hearing.leave_out(link, frame, str(error))

    def ended(self, link: Link, why: str) -> None:
        """Note that a connection ended."""
        self._asks.drop(link)
        self._questions.drop(link)
        lost, heard = self._watch.ended(link)
        if self._links.get(link.node) is not link:
            return
        del self._links[link.node]
        self._roster.lost(
            link.node,
            why,
            lost,
            heard=heard,
            leaves=link.leaves,
            host_ends=link.host_ends,
            fell_silent=link.fell_silent,
            is_sent_away=link.is_sent_away,
        )
        log.info("agent gone: %s", why, extra={"node": link.node})
        self._ring()

    # New connections

    async def _greet(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Do the handshake with a new connection and admit its agent, or answer the other head that it is from."""
        if not (lead := self._leadership()).is_mine:
            again_s = again_after_s(self._nodes, has_leader=bool(lead.leader))
            writer.write(pack(follower_greeting_frame(FollowerGreeting(leader=lead.leader, again_s=again_s))))
            link.close("this head follows")
            return
        place, other_head = place_of(writer), None
        if len(self._links) >= _MAX_LINKS or not self._greeting.enter(link, place.address):
            link.close("too many connections")
            return
        try:
            seals, hello, terms = await accept_agent(
                reader,
                writer,
                self._sealer,
                self._terms,
                first=lambda hello: self._prepare(link, hello, place),
                misread=lambda node: self._note_unreadable_hello(node, place),
                apart=lambda node, behind_s: self._note_clock(node, place, behind_s),
                gate=self._gate,
                address=place.address,
                wait_s=WAIT_S if len(self._greeting) > _CROWD else 0.0,
            )
            if hello.is_head:
                other_head = Channel(reader, writer, seals)
            else:
                self._admit(link, hello, terms, place)
                link.set_owner(self, seals)
        except (PortError, ArrivalRefused, Superseded) as error:
            peer = writer.get_extra_info("peername")
            log.warning("a connection from %s was refused: %s", place.address, str(error), extra={"peer": peer})
            link.close(str(error))
        finally:
            self._greeting.leave(link)
        if other_head is not None:
            await self._passed.serve(other_head)
            link.close("its request is answered")

    async def _prepare(self, link: Link, hello: Hello, place: PeerAddress) -> None:
        """Prepare for a peer that proved itself.

        Raises ArrivalRefused for a head at an address of none, and for an agent at another head's address.
        """
        if hello.is_head:
            await self._passed.admit(place)
            link.to_stream()
        else:
            await self._admission.prepare(hello, place)
            if await self._passed.is_other_heads(place):
                self._admission.refuse_relayed(hello, place, self._clock.now())

    def _note_unreadable_hello(self, node: NodeName, place: PeerAddress) -> None:
        """Note that an agent is alive and will connect again: it proved itself, but its hello was unreadable."""
        if _NODE.match(node) and self._admission.may_be(node, place):
            self._roster.note_dialled(node, self._clock.now())
            self._ring()

    def _note_clock(self, node: NodeName, place: PeerAddress, behind_s: float) -> None:
        """Note that an agent is alive, but its clock is so wrong that MUNGE refuses its credential."""
        if _NODE.match(node) and self._admission.may_be(node, place):
            now = self._clock.now()
            self._admission.note_clock(node, place, behind_s, now)
            self._roster.note_dialled(node, now)
            self._ring()

    def _terms(self) -> Terms:
        """Return the terms for a welcome. Raises Gone if this head does not lead any more."""
        lead = self._leadership()
        if not lead.is_mine:
            raise Gone("this head does not lead any more")
        interval_s = max(self._heartbeat_s, self._nodes / _BEATS_PER_S)
        return Terms(
            interval_s=interval_s,
            late_after_s=gone_after(interval_s),
            now=self._clock.now(),
            defaults=self._defaults,
            warning=self._warning,
            epoch=lead.epoch,
        )

    def _admit(self, link: Link, hello: Hello, terms: Terms, place: PeerAddress) -> None:
        """Admit the agent under its node's name. Raises if it is refused."""
        if not _NODE.match(hello.node):
            raise Malformed(f"'{printable(hello.node, 64)}' is not a node's name")
        now, before = self._clock.now(), self._links.get(hello.node)
        alive = self._roster.view(hello.node) if before is not None and self._watch.is_in_time(before) else None
        claim = self._admission.judge(hello, place, alive, now)
        other = self._roster.joined(
            hello.node,
            hello.incarnation,
            hello.version,
            now,
            address=place.address,
            restored=claim.is_restored,
        )
        self._admission.admitted(claim, other, now)
        if alive is not None and other is None:
            self._admission.again(claim, now)
        link.node, link.incarnation = hello.node, hello.incarnation
        self._links[hello.node] = link
        if before is not None:
            before.close("its agent connected again")
        self._watch.begin(link, terms.interval_s)
        self._hearing.note_opted(link, hello.opted)
        log.info("agent connected", extra={"node": hello.node, "instance": hello.incarnation.instance})
        self._ring()

    def _send_all(self, nodes: Collection[NodeName], *frames: Frame) -> None:
        """Send frames to the connected agents of these nodes."""
        for link in [self._links[node] for node in nodes if node in self._links]:
            for frame in frames:
                link.send(frame)

    def _in_loop(self, what: Callable[[], object]) -> None:
        """Run a call in the loop's thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(what)


def again_after_s(nodes: int, *, has_leader: bool) -> float:
    """Return after how many seconds an agent is to ask a follower again, at random: sooner while no head leads."""
    low, high = (0.5, 1.0) if has_leader else (0.2, 0.5)
    return random.uniform(low, high) * max(1.0, nodes / _ASKING_AGAIN)


# Greeting: a bound on the connections that are not proved yet, in which no address can keep others out.


class Greeted(Protocol):
    """A connection in its handshake."""

    @property
    def has_spoken(self) -> bool:
        """Return whether the peer's whole hello came; an agent sends it at once."""

    def close(self, why: str) -> None: ...


L = TypeVar("L", bound=Greeted)


class Greeting(Generic[L]):
    """The connections in their handshake.

    There are at most `most` of them. Once there are `freely`, one address may have `few`. If there is no place for a
    newcomer, the first rule that fits is used:
    - drop the oldest silent connection from its own address (any user of a node can hold connections from there, and
      the node's agent must come through)
    - if another address holds two more connections, drop the newest of that address
    - refuse the newcomer, which costs next to nothing
    """

    def __init__(self, *, most: int, freely: int | None = None, few: int = 16) -> None:
        self._most, self._freely, self._few = most, most if freely is None else freely, few
        self._hosts: dict[L, str] = {}
        self._of: dict[str, dict[L, None]] = {}
        self._sizes: Counter[int] = Counter()
        """How many addresses have each number of connections."""

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def links(self) -> tuple[L, ...]:
        """Return all connections in their handshake."""
        return tuple(self._hosts)

    def enter(self, link: L, host: str) -> bool:
        """Return whether the connection may stay."""
        if not self._has_place(host) and not self._make_room(host):
            return False
        self._hosts[link] = host
        its = self._of.setdefault(host, {})
        its[link] = None
        self._resized(len(its) - 1, len(its))
        return True

    def leave(self, link: L) -> None:
        """Remove a connection."""
        host = self._hosts.pop(link, None)
        if host is None:
            return
        its = self._of[host]
        del its[link]
        self._resized(len(its) + 1, len(its))
        if not its:
            del self._of[host]

    def _resized(self, before: int, after: int) -> None:
        """Note that an address now has `after` connections instead of `before`."""
        self._sizes[after] += 1
        self._sizes[before] -= 1
        if self._sizes[before] <= 0:
            del self._sizes[before]
        self._sizes.pop(0, None)

    def _has_place(self, host: str) -> bool:
        """Return whether there is a free place for this address."""
        return len(self) < self._freely or (len(self) < self._most and len(self._of.get(host, ())) < self._few)

    def _make_room(self, host: str) -> bool:
        """Drop a connection for a newcomer from this address; return whether that was possible."""
        one = next((link for link in self._of.get(host, ()) if not link.has_spoken), None) or self._surplus(host)
        if one is None:
            return False
        self.leave(one)
        one.close("too many connections from its address")
        return True

    def _surplus(self, host: str) -> L | None:
        """Return the newest connection of the fullest address, if that holds two more than `host` does; else None."""
        size = max(self._sizes, default=0)
        if len(self._of.get(host, ())) + 1 >= size:
            return None
        return next(reversed(next(its for its in self._of.values() if len(its) == size)))
