"""Decide whether a newly connected agent is believed, and report what is odd about it."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from steward.adapters.wire.handshake import Hello
from steward.head.origin import Origin, Origins, plain
from steward.model.events import Event, Level
from steward.model.ids import NodeName
from steward.model.observed import AgentView
from steward.model.setting_types import AddressRule

_QUIET_S = 600.0
_RECONNECTS, _RECONNECTS_S = 5, 60.0
"""If the agent of one machine connects anew `_RECONNECTS` times within this time, two agents run there."""
_MAX_REFUSED = 1000


class ArrivalRefused(Exception):
    """The refusal of an agent that may not speak as the node it names."""


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """A connection's other end: its IP address (empty if the connection ended), and whether it is on this host."""

    address: str
    is_here: bool


def place_of(writer: asyncio.StreamWriter) -> PeerAddress:
    """Return the other end of a connection."""
    peer, own = (_address(writer, name) for name in ("peername", "sockname"))
    return PeerAddress(peer, peer in ("127.0.0.1", "::1", own) and bool(peer))


def _address(writer: asyncio.StreamWriter, name: str) -> str:
    """Return one end of a connection as an IP address; empty if the connection ended."""
    found = writer.get_extra_info(name)
    return plain(str(found[0])) if isinstance(found, tuple) and found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An agent's claim to be a node, with the agent's address."""

    hello: Hello
    place: PeerAddress
    origin: Origin
    before: Origin | None = None

    @property
    def is_restored(self) -> bool:
        """Return whether the agent speaks from its node's own address, and the last agent with the name did not."""
        return self.origin is Origin.OWN and self.before in (Origin.STRANGE, Origin.ANOTHERS)


class AgentAdmission:
    """The rule of which agent may have a node's name.

    Used in the loop's thread only. A name stays with the agent that has it as long as that agent is not late. The name
    passes only to the restarted agent of the same machine, to a machine that replaced the node's machine according to
    the provider, and to an agent on the node's own address if the present agent is not on one.
    """

    def __init__(self, origins: Origins, rule: AddressRule, tell: Callable[[Event], None]) -> None:
        self._origins, self._rule, self._tell = origins, rule, tell
        self._places: dict[NodeName, PeerAddress] = {}
        self._looking: set[asyncio.Future[None]] = set()
        self._refused: OrderedDict[tuple[NodeName, str, str], float] = OrderedDict()
        """When each refusal was last reported: a refused agent connects again every few seconds."""
        self._again: dict[NodeName, deque[float]] = {}
        """When the node's agent connected although its connection was not late."""

    async def prepare(self, hello: Hello, place: PeerAddress) -> None:
        """Look up the node's addresses."""
        if self._rule is AddressRule.OFF:
            return
        # An agent on a known address of its node is not kept waiting for a name server: the node's names are looked up
        # later.
        if place.is_here or self._origins.is_at_home(hello.node, place.address):
            self._origins.look_up_later(hello.node)
            return
        looking = asyncio.ensure_future(self._origins.look_up(hello.node))
        self._looking.add(looking)
        looking.add_done_callback(self._looking.discard)
        await looking

    def may_be(self, node: NodeName, place: PeerAddress) -> bool:
        """Return whether the address is not known to be another node's."""
        return self._origin(node, place) is not Origin.ANOTHERS

    def judge(self, hello: Hello, place: PeerAddress, alive: AgentView | None, now: float) -> Claim:
        """Return the claim if the agent is believed. Raises ArrivalRefused, after an event if that is news.

        `alive` is the view of the agent that has the name and is not late.
        """
        last = self._places.get(hello.node)
        origin, before = self._origin(hello.node, place), self._origin(hello.node, last) if last else None
        claim = Claim(hello=hello, place=place, origin=origin, before=before)
        if why := self._why_refused(claim, alive):
            self._refuse(claim, why, now)
        return claim

    def refuse_relayed(self, hello: Hello, place: PeerAddress, now: float) -> None:
        """Refuse an agent from another head's host. Raises ArrivalRefused, unless the node is known to be there.

        Any user of that host may hold the head's port while no head runs there, and pass on what agents send to it: he
        reads and changes nothing, but could hold it back, so that the node looks frozen.
        """
        origin = self._origin(hello.node, place)
        if origin is not Origin.OWN:
            why = f"{place.address} is another head's host, and no address of the node: it was passed on there"
            self._refuse(Claim(hello=hello, place=place, origin=origin, before=None), why, now)

    def _refuse(self, claim: Claim, why: str, now: float) -> NoReturn:
        """Refuse the agent, after an event if that is news. Raises ArrivalRefused."""
        if self._is_news(claim):
            self._tell(_refusal(claim, why, now))
        raise ArrivalRefused(f"{claim.hello.node}: {why}")

    def admitted(self, claim: Claim, other: AgentView | None, now: float) -> None:
        """Note the agent's address, and report a conflict or a move.

        `other` is the view of another machine's live agent that lost the name.
        """
        node, before = claim.hello.node, self._places.get(claim.hello.node)
        self._places[node] = claim.place
        if other is not None:
            self._tell(_conflict(claim, other, now))
        elif claim.origin is Origin.STRANGE and before is not None and before != claim.place:
            self._tell(_moved_address(claim, before, now))

    def again(self, claim: Claim, now: float) -> None:
        """Note that the same machine connected although its agent was not late; report two agents if that repeats."""
        # One such connection is a broken one; many are a second agent, and each agent takes the other's place.
        times = self._again.setdefault(claim.hello.node, deque(maxlen=_RECONNECTS))
        times.append(now)
        if len(times) == _RECONNECTS and now - times[0] <= _RECONNECTS_S:
            del self._again[claim.hello.node]
            self._tell(_two_agents(claim, now))

    def note_clock(self, node: NodeName, place: PeerAddress, behind_s: float, now: float) -> None:
        """Report that the node's agent is refused for its wrong clock, at most once in `_QUIET_S`."""
        if self._is_first_in_a_while((node, "clock", place.address)):
            self._tell(_wrong_clock(node, behind_s, now))

    def nodes_at(self, origin: Origin) -> frozenset[NodeName]:
        """Return the nodes whose agents spoke last from an address of this origin."""
        places = list(self._places.items())
        return frozenset(node for node, place in places if self._origin(node, place) is origin)

    def _origin(self, node: NodeName, place: PeerAddress) -> Origin:
        """Return the origin of an address for this node."""
        if self._rule is AddressRule.OFF:
            return Origin.UNKNOWN
        return self._origins.of(node, place.address, here=place.is_here)

    def _why_refused(self, claim: Claim, alive: AgentView | None) -> str:
        """Return why the agent is refused; empty if it is believed."""
        if claim.origin is Origin.ANOTHERS:
            owner = self._origins.other_owner(claim.hello.node, claim.place.address)
            return f"{claim.place.address} is the address of {owner} (is agent.node_name Slurm's name of that node?)"
        if self._rule is AddressRule.STRICT and claim.origin is Origin.STRANGE:
            return f"neither Slurm nor the provider knows {claim.place.address} as its address"
        if alive is None or self._is_same(claim, alive) or claim.is_restored or self._is_new_machine(claim, alive):
            return ""
        return f"its agent at {alive.address} is heard in time, and no provider knows of a newer machine"

    def _is_same(self, claim: Claim, view: AgentView) -> bool:
        """Return whether the claim comes from the view's machine and address: the agent or the machine restarted."""
        same = view.incarnation is not None and view.incarnation.instance == claim.hello.incarnation.instance
        return same and view.address == claim.place.address

    def _is_new_machine(self, claim: Claim, view: AgentView) -> bool:
        """Return whether the provider says that the claim's machine replaced the view's."""
        if view.incarnation is None:
            return True
        new, old = claim.hello.incarnation.instance, view.incarnation.instance
        return self._origins.is_new_machine(claim.hello.node, new, old)

    def _is_news(self, claim: Claim) -> bool:
        """Return whether this refusal was not reported within `_QUIET_S`."""
        return self._is_first_in_a_while((claim.hello.node, claim.hello.incarnation.instance, claim.place.address))

    def _is_first_in_a_while(self, key: tuple[NodeName, str, str]) -> bool:
        """Return whether this was not reported within `_QUIET_S`."""
        now = time.monotonic()
        if now < self._refused.get(key, float("-inf")) + _QUIET_S:
            return False
        self._refused[key] = now
        if len(self._refused) > _MAX_REFUSED:
            self._refused.popitem(last=False)
        return True


def _warning(kind: str, node: NodeName, text: str, now: float) -> Event:
    return Event(at=now, kind=kind, level=Level.WARNING, node=node, text=text)


def _refusal(claim: Claim, why: str, now: float) -> Event:
    who = f"{claim.hello.incarnation.instance} at {claim.place.address}"
    text = f"{who} claims to be {claim.hello.node} and is refused: {why}"
    return _warning("agent.refused", claim.hello.node, text, now)


def _conflict(claim: Claim, other: AgentView, now: float) -> Event:
    old = f"{other.incarnation.instance if other.incarnation else '?'} at {other.address}"
    new = f"{claim.hello.incarnation.instance} at {claim.place.address}"
    text = f"two machines claim to be {claim.hello.node}: {old} and {new}; the later one counts"
    return _warning("agent.conflict", claim.hello.node, text, now)


def _wrong_clock(node: NodeName, behind_s: float, now: float) -> Event:
    where = "behind" if behind_s > 0 else "ahead of"
    text = (
        f"the clock of {node} is {abs(behind_s):.0f} s {where} the controller's: MUNGE refuses its agent "
        "and its slurmd; set it (`chronyc makestep`)"
    )
    return _warning("agent.clock", node, text, now)


def _two_agents(claim: Claim, now: float) -> Event:
    node = claim.hello.node
    text = (
        f"two agents run as {node} at {claim.place.address} and take each other's connection: end one of them "
        f"(`pgrep -af steward-agent` there); until then jobs of {node} may be answered late"
    )
    return _warning("agent.twice", node, text, now)


def _moved_address(claim: Claim, before: PeerAddress, now: float) -> Event:
    text = (
        f"{claim.hello.node} connects from {claim.place.address}, before from {before.address}; neither Slurm nor the "
        "provider knows that address: see head.agent_addresses"
    )
    return _warning("agent.moved", claim.hello.node, text, now)
