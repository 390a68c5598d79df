"""Watch whether agents still speak: overdue heartbeats, agents in doubt, late agents, lost agents.

An overdue heartbeat puts its agent in doubt: the agent and some others are pinged, and slurmd's port is looked at. If
all of that says that the node is gone, the agent is given up at once; otherwise after three beats
([0003](../../../docs/decisions/0003-two-witnesses.md)). Times are seconds in which this process was awake.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from steward.adapters.offload import Threads
from steward.head.link import Link
from steward.head.roster import Roster
from steward.model.ids import NodeName
from steward.model.node import Node
from steward.model.witness import Address, Witness, WitnessSeen
from steward.ports import Clock, Retryable

# The second witness for an agent in doubt is asked during the ping, so that both answers come together.

_AT_ONCE = 4
_LONGEST_S = 5.0


class SecondLook:
    """The look at a node's slurmd port. Any thread may call `learn`; all else is for the loop's thread."""

    def __init__(
        self, look: Callable[[Address], WitnessSeen | None], saw: Callable[[Mapping[NodeName, WitnessSeen]], None]
    ) -> None:
        """Take the look, which blocks for some seconds, and `saw`, which gets the result of every look."""
        self._look, self._saw = look, saw
        self._nodes: Mapping[NodeName, Node] = MappingProxyType({})
        self._threads = Threads(_AT_ONCE)

    def learn(self, nodes: Mapping[NodeName, Node]) -> None:
        """Take the addresses of slurmds from Slurm's nodes."""
        self._nodes = nodes

    async def __call__(self, name: NodeName) -> Witness | None:
        """Look at the node's slurmd port; return None if there is no result."""
        node = self._nodes.get(name)
        if node is None:
            return None
        try:
            seen = await self._threads.call(
                lambda: self._look(node.slurmd), name=f"look at {name}", timeout_s=_LONGEST_S
            )
        except Retryable as error:
            log.info("not looked at: %s", error, extra={"node": name})
            return None
        if seen is None:
            return None
        self._saw({name: seen})
        return seen.result


log = logging.getLogger(__name__)

LATE_BEATS, LATE_S = 1.75, 1.75
OVERDUE_S = 0.1
PATIENCE_S = 1.0
"""How long to wait at least for the answer to a ping."""
STALLS, LAGS, PONGS = 3.0, 3.0, 10.0
"""Wait for a ping's answer at least this many times the agent's worst stall, our worst lag, another's answer."""
MOST = 2
"""If more agents are overdue at once, their silence has a common cause: none of them is given up early."""
NEIGHBOURS, STRANGERS = 6, 6
"""How many others are pinged beside an agent in doubt: nearest by name (probably the same rack), and at random."""
_SLOT_S, _AFTER_BEATS_S = 0.25, 0.15
"""Look for overdue heartbeats every quarter of a second, a little after it: agents beat at quarters of our seconds."""
_MOST_REST_S = 1.0
_LAG_S = 0.1
"""A smaller lag is ignored: all limits allow for it."""
_LAG_KEPT_S = 60.0
_STALL_HALF_S = 300.0
_ORDER_KEPT_S = 10.0

GONE_BEATS, GONE_S = 3, 3.0


def gone_after(interval_s: float) -> float:
    """Return the silence after which an agent that beats at this interval is gone."""
    return max(GONE_BEATS * interval_s, GONE_S)


Examine = Callable[[NodeName], Awaitable[Witness | None]]
"""Asks the second witness about a node; None without a result. Takes some seconds, never raises."""


T = TypeVar("T", bound=Hashable)


class Wheel(Generic[T]):
    """Deadlines of very many things with one timer, in buckets of `tick_s` seconds.

    A thing is looked at when it may be due, not at each sign of life. Times are monotonic seconds.
    """

    def __init__(self, now: float, tick_s: float = 0.25) -> None:
        self.tick_s = tick_s
        self._turned = int(now / tick_s)
        self._buckets: dict[int, set[T]] = {}

    def add(self, thing: T, due: float) -> None:
        """Add a thing, which `turn` returns within a tick after `due`, or at the next turn if it is due already."""
        bucket = max(int(due / self.tick_s) + 1, self._turned + 1)
        self._buckets.setdefault(bucket, set()).add(thing)

    @property
    def next_due(self) -> float:
        """Return when the next bucket is due; infinity if there is none."""
        return min(self._buckets, default=math.inf) * self.tick_s

    def turn(self, now: float) -> list[T]:
        """Remove and return all things that became due since the last turn."""
        until = int(now / self.tick_s)
        due: list[T] = []
        for bucket in range(self._turned + 1, until + 1):
            due.extend(self._buckets.pop(bucket, ()))
        self._turned = max(until, self._turned)
        return due


class Awake:
    """A monotonic clock that stands still while this process does.

    While the machine or the loop stood still, no agent could be heard: that time must not count against agents.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lost = self._worst = 0.0
        self._worst_at = float("-inf")

    def now(self) -> float:
        """Return the seconds in which the process was awake."""
        return self._monotonic() - self._lost

    async def sleep(self, seconds: float) -> None:
        """Sleep, and note by how much the loop woke late."""
        began = self._monotonic()
        await asyncio.sleep(seconds)
        self.note(self._monotonic() - began - seconds)

    def note(self, lag: float) -> None:
        """Note that the loop woke `lag` seconds late."""
        if lag <= _LAG_S:
            return
        self._lost += lag
        if lag >= self.lag:
            self._worst, self._worst_at = lag, self._monotonic()

    @property
    def lag(self) -> float:
        """Return the worst recent lag."""
        return self._worst if self._monotonic() < self._worst_at + _LAG_KEPT_S else 0.0


class Watch:
    """The watch over all agent connections of a hub. In the loop's thread only."""

    def __init__(
        self,
        *,
        roster: Roster,
        clock: Clock,
        ring: Callable[[], None],
        links: Mapping[NodeName, Link],
        examine: Examine | None,
        awake: Awake | None = None,
    ) -> None:
        """Take the parts of the watch. Without `examine` no agent is given up early."""
        self._roster, self._clock, self._ring, self._links = roster, clock, ring, links
        self._examine, self._awake = examine, awake or Awake()
        self._wheel: Wheel[Link] = Wheel(self._awake.now(), tick_s=0.05)
        self._overdue: set[Link] = set()
        self._doubts: set[asyncio.Task[None]] = set()
        self._stalls: dict[NodeName, tuple[float, float]] = {}
        self._ordered_names: tuple[float, list[NodeName]] = (float("-inf"), [])

    def now(self) -> float:
        """Return the seconds in which this process was awake."""
        return self._awake.now()

    def begin(self, link: Link, interval_s: float) -> None:
        """Watch an accepted connection."""
        link.heard = link.told = self.now()
        link.interval_s, link.gone_after_s = interval_s, gone_after(interval_s)
        link.late_after_s = max(LATE_BEATS * interval_s, LATE_S)
        self._wheel.add(link, link.heard + self._overdue_after(link))

    def is_in_time(self, link: Link) -> bool:
        """Return whether the connection is open and no heartbeat is late."""
        return link.is_open and self.now() - link.heard < link.late_after_s

    def heard(self, link: Link) -> None:
        """Note a sign of life, as cheaply as possible."""
        # The roster is told at the next look, or now if the sign was waited for.
        now = self.now()
        if link.is_watched:
            self._heard_again(link, now)
        link.heard = now

    def ended(self, link: Link) -> tuple[float, float]:
        """Stop watching; return when the connection was lost, and last heard (Unix seconds)."""
        self._overdue.discard(link)
        now, here = self.now(), self._clock.now()
        lost = here if link.silent_since is None else here - (now - link.silent_since)
        return lost, here - (now - link.heard)

    async def run(self) -> None:
        """Look at the connections that may be due, for ever."""
        while True:
            await self._awake.sleep(self._rest_s())
            self.turn()

    def _rest_s(self) -> float:
        """Return the seconds until the next look."""
        # Never sleep long: only a sleep that ends late shows that this process stood still.
        slot_s = (_AFTER_BEATS_S - self._clock.now()) % _SLOT_S or _SLOT_S
        due_s = min(self._wheel.next_due - self.now(), _MOST_REST_S) - slot_s
        return slot_s + max(math.ceil(due_s / _SLOT_S), 0) * _SLOT_S

    def turn(self) -> None:
        """Look at the connections that may be due."""
        now = self.now()
        for link in self._wheel.turn(now):
            if link.is_open:
                self._look_at(link, now)

    def _look_at(self, link: Link, now: float) -> None:
        """Give up, mark late or doubt a silent connection; in any case, set when to look at it again."""
        silent = now - link.heard
        if silent >= link.gone_after_s:
            link.give_up(f"silent for {silent:.1f} s")
        elif silent >= link.late_after_s:
            link.is_late = link.is_watched = True
            self._roster.late(link.node, heard=self._last_heard(link))
            self._wheel.add(link, link.heard + link.gone_after_s)
            self._ring()
        elif silent >= self._overdue_after(link):
            self._begin_doubt(link)
            self._wheel.add(link, link.heard + link.late_after_s)
        else:
            if now - link.told >= link.late_after_s:
                self._tell_roster(link)
            self._wheel.add(link, link.heard + self._overdue_after(link))

    def _overdue_after(self, link: Link) -> float:
        """Return after how much silence a beat of this agent is overdue."""
        return min(link.interval_s + OVERDUE_S + self._awake.lag, link.late_after_s)

    def _heard_again(self, link: Link, now: float) -> None:
        """Note that a connection that was waited for spoke; if it was overdue or late, note its stall."""
        if link.pinged is not None:
            link.pong_s, link.pinged = now - link.pinged, None
        link.is_watched = False
        if link not in self._overdue and not link.is_late:
            return
        self._overdue.discard(link)
        self._stalls[link.node] = (max(now - link.heard - link.interval_s, self._stall(link.node, now)), now)
        was_late, link.is_late = link.is_late, False
        link.heard = now
        self._tell_roster(link)
        if was_late:
            self._ring()

    def _tell_roster(self, link: Link) -> None:
        """Tell the roster when the agent was last heard."""
        link.told = link.heard
        self._roster.heard(link.node, self._last_heard(link), link.skew_s)

    def _last_heard(self, link: Link) -> float:
        """Return when the agent was last heard (Unix seconds)."""
        return self._clock.now() - (self.now() - link.heard)

    def _stall(self, node: NodeName, now: float) -> float:
        """Return the node's worst recent stall in seconds, halved every `_STALL_HALF_S`."""
        worst, at = self._stalls.get(node, (0.0, now))
        return float(worst * 0.5 ** ((now - at) / _STALL_HALF_S))

    # Doubt

    def _begin_doubt(self, link: Link) -> None:
        """Note an overdue beat; begin to doubt its agent, unless it cannot be examined or many are overdue."""
        self._overdue.add(link)
        link.is_watched = True
        if self._examine is None or len(self._overdue) > MOST:
            return
        task = asyncio.get_running_loop().create_task(self._doubt(link, self._examine))
        self._doubts.add(task)
        task.add_done_callback(self._doubts.discard)

    async def _doubt(self, link: Link, examine: Examine) -> None:
        """Ping the agent and others, ask the second witness, and judge when both had their time."""
        asked, others = self.now(), self._others(link)
        for one in (link, *others):
            self._ping(one, asked)
        look = asyncio.ensure_future(examine(link.node))
        while link.is_open and link in self._overdue:
            left = asked + self._patience(link, others) - self.now()
            if left <= 0 and look.done():
                self._judge(link, others, asked, look.result())
                return
            await asyncio.sleep(min(max(left, 0.01), 0.1))

    def _judge(self, link: Link, others: list[Link], asked: float, seen: Witness | None) -> None:
        """Give the connection up if the node's slurmd is silent, too, and all others answered their ping."""
        if seen in (None, Witness.ALIVE) or len(self._overdue) > MOST or not others:
            return
        if not all(one.is_open and one.pong_s is not None for one in others):
            return
        link.silent_since = asked
        silent = self.now() - link.heard
        link.give_up(f"silent for {silent:.1f} s, and no answer to a ping that {len(others)} others answered")

    def _patience(self, link: Link, others: list[Link]) -> float:
        """Return how long to wait for the answer to a ping."""
        pongs = max((one.pong_s for one in others if one.pong_s is not None), default=0.0)
        known = (STALLS * self._stall(link.node, self.now()), LAGS * self._awake.lag, PONGS * pongs)
        return max(PATIENCE_S, *known)

    def _ping(self, link: Link, now: float) -> None:
        """Ping an agent."""
        link.pinged, link.pong_s, link.is_watched = now, None, True
        link.ping(self._clock.now())

    def _others(self, link: Link) -> list[Link]:
        """Return open connections of other agents: the nearest by name and some at random."""
        names = self._names()
        here = names.index(link.node) if link.node in names else 0
        near = names[max(here - NEIGHBOURS // 2, 0) : here + NEIGHBOURS // 2 + 1]
        chosen = dict.fromkeys([*near, *random.sample(names, min(STRANGERS + 1, len(names)))])
        found = (self._links.get(name) for name in chosen if name != link.node)
        return [one for one in found if one is not None and one.is_open]

    def _names(self) -> list[NodeName]:
        """Return the nodes' names as people count them: n2 before n10."""
        at, names = self._ordered_names
        if self.now() > at + _ORDER_KEPT_S or len(names) != len(self._links):
            names = sorted(self._links, key=lambda name: (len(name), name))
            self._ordered_names = (self.now(), names)
        return names
