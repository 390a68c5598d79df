"""A silent agent is given up before its time only where a ping, other agents and slurmd's port agree."""

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from steward.adapters.wire.frames import Channel
from steward.head.link import Link
from steward.head.roster import Roster
from steward.head.watch import LATE_S, Awake, Watch
from steward.model.ids import NodeName
from steward.model.observed import AgentView
from steward.model.witness import Witness
from steward.ports import PortError
from tests.fakes.hub_bench import a_hub, hello
from tests.fakes.until import comes_true


class _Leaping(selectors.SelectSelector):
    """The loop's clock leaps to its next timer: a story without sockets and threads takes no time, and each time the
    same."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            assert timeout is not None, "the story waits for what cannot come"
            self.now += timeout
        return found


def instantly(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `story` to its end."""

    def loop() -> asyncio.AbstractEventLoop:
        leaping = _Leaping()
        made = asyncio.SelectorEventLoop(leaping)
        made.time = lambda: leaping.now  # type: ignore[method-assign]
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(story())


BEAT_S = 0.2
GONE_S = 3.0
TRAVEL_S = 0.001
BY_PING = "no answer to a ping"


class Agent(Link):
    """One with its connection. It answers pings and `beats`, until it is `frozen`."""

    def __init__(self, site: "Site", node: str) -> None:
        super().__init__(self._greet)
        self._site = site
        self.node = NodeName(node)
        self.frozen, self.beats, self.pings = False, True, 0

    async def _greet(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def live(self) -> None:
        while self.is_open:
            if self.beats and not self.frozen:
                self._site.watch.heard(self)
            await asyncio.sleep(BEAT_S)

    def ping(self, now: float) -> None:
        self.pings += 1
        asyncio.get_running_loop().call_later(TRAVEL_S, self._pong)

    def _pong(self) -> None:
        if self.is_open and not self.frozen:
            self._site.watch.heard(self)

    def close(self, why: str) -> None:
        if self.is_open:
            super().close(why)
            self._site.ended(self, why)


@dataclass
class Site:
    """A head's watch over agents; its clock is the loop's."""

    seen: Witness | None
    agents: dict[str, Agent] = field(default_factory=dict)
    looked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.roster = Roster()
        self.links: dict[NodeName, Link] = {}
        self.watch = Watch(
            roster=self.roster,
            clock=self,
            ring=lambda: None,
            links=self.links,
            examine=self._examine,
            awake=Awake(self.now),
        )

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _examine(self, node: NodeName) -> Witness | None:
        self.looked.append(node)
        return self.seen

    def connect(self, node: str) -> Agent:
        agent = self.agents[node] = Agent(self, node)
        self.roster.joined(agent.node, hello(node).incarnation, "1.0", self.now())
        self.links[agent.node] = agent
        self.watch.begin(agent, BEAT_S)
        return agent

    def ended(self, agent: Agent, why: str) -> None:
        lost, heard = self.watch.ended(agent)
        del self.links[agent.node]
        self.roster.lost(agent.node, why, lost, heard=heard)

    def view(self, node: str) -> AgentView:
        return self.roster.views()[NodeName(node)]

    async def lost(self, node: str) -> str:
        """Why, once it is."""
        await comes_true(f"{node} is lost", lambda: not self.view(node).connected)
        return self.view(node).lost_why


def tell(
    story: Callable[[Site], Coroutine[None, None, None]],
    *nodes: str,
    seen: Witness | None = Witness.SILENT,
) -> None:
    async def within() -> None:
        site = Site(seen)
        running = [asyncio.ensure_future(site.watch.run())]
        for node in nodes:
            running.append(asyncio.ensure_future(site.connect(node).live()))
        await asyncio.sleep(5 * BEAT_S)
        await story(site)
        for task in running:
            task.cancel()

    instantly(within)


def test_a_frozen_node_is_given_up_when_its_ping_stays_unanswered_and_others_answer_theirs() -> None:
    async def story(site: Site) -> None:
        site.agents["n2"].frozen = True
        assert BY_PING in await site.lost("n2")
        assert site.looked == ["n2"]
        assert site.agents["n1"].pings == site.agents["n3"].pings == 1
        assert site.view("n1").connected
        assert site.view("n3").connected

    tell(story, "n1", "n2", "n3")


@pytest.mark.parametrize("seen", [Witness.ALIVE, None])
def test_an_agent_whose_slurmd_lives_or_is_not_known_has_its_three_beats(seen: Witness | None) -> None:
    async def story(site: Site) -> None:
        site.agents["n2"].frozen = True
        assert BY_PING not in await site.lost("n2")

    tell(story, "n1", "n2", seen=seen)


def test_while_another_does_not_answer_either_nobody_is_given_up_before_his_time() -> None:
    async def story(site: Site) -> None:
        for node in ("n1", "n2"):
            site.agents[node].frozen = True
        for node in ("n1", "n2"):
            assert BY_PING not in await site.lost(node)

    tell(story, "n1", "n2", "n3")


def test_agents_that_fall_silent_together_have_their_three_beats() -> None:
    async def story(site: Site) -> None:
        for node in ("n1", "n2", "n3"):
            site.agents[node].frozen = True
        for node in ("n1", "n2", "n3"):
            assert BY_PING not in await site.lost(node)

    tell(story, "n1", "n2", "n3", "n4")


def test_where_nobody_else_is_there_to_compare_with_an_agent_has_its_three_beats() -> None:
    async def story(site: Site) -> None:
        site.agents["n1"].frozen = True
        assert BY_PING not in await site.lost("n1")

    tell(story, "n1")


def test_an_agent_that_answers_its_pings_stays() -> None:
    async def story(site: Site) -> None:
        site.agents["n2"].beats = False
        await asyncio.sleep(10 * GONE_S)
        assert site.agents["n2"].pings > 4
        assert site.view("n2").connected

    tell(story, "n1", "n2")


def test_it_is_lost_since_it_was_pinged() -> None:
    async def story(site: Site) -> None:
        site.agents["n2"].frozen = True
        await site.lost("n2")
        view = site.view("n2")
        assert view.lost_at is not None
        assert view.last_heard < view.lost_at < site.now()

    tell(story, "n1", "n2")


def test_a_silent_agent_is_late_and_then_gone_in_its_time() -> None:
    async def story(site: Site) -> None:
        site.agents["n1"].frozen = True
        began = site.view("n1").last_heard
        await comes_true("it is late", lambda: site.view("n1").late)
        heard = site.view("n1").last_heard
        assert began <= heard
        assert LATE_S <= site.now() - heard < LATE_S + 0.5
        assert "silent" in await site.lost("n1")
        assert GONE_S <= site.now() - heard < GONE_S + 0.5

    tell(story, "n1")


def test_a_ping_reaches_its_agent_on_the_wire_and_an_answer_keeps_it() -> None:
    async def examine(node: NodeName) -> Witness | None:
        return Witness.SILENT

    async def answers(channel: Channel, pings: list[float]) -> None:
        with contextlib.suppress(PortError):
            while True:
                frame = await channel.receive()
                if "echo" not in frame:
                    pings.append(frame["now"])
                    await channel.beat(sent=1.0)

    async def story() -> None:
        async with a_hub(heartbeat_s=BEAT_S, examine=examine) as bench:
            channel, _ = await bench.connect(hello())
            pings = list[float]()
            answering = asyncio.ensure_future(answers(channel, pings))
            await comes_true("it was pinged and its answer came", lambda: pings and bench.hub.beats)
            assert bench.view().connected
            answering.cancel()

    asyncio.run(story())


def test_time_in_which_the_head_itself_stood_still_does_not_count() -> None:
    now = 100.0
    awake = Awake(lambda: now)
    before = awake.now()
    now += 7.0
    awake.note(6.75)
    assert awake.now() - before == pytest.approx(0.25)
    assert awake.lag == 6.75
    now += 61.0
    assert awake.lag == 0.0


def test_a_small_lag_is_no_standstill() -> None:
    awake = Awake(lambda: 100.0)
    awake.note(0.05)
    assert (awake.now(), awake.lag) == (100.0, 0.0)
