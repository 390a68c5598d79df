"""A silent agent is given up before its time only where a ping, other agents and slurmd's port agree."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from steward.adapters.wire.frames import Channel
from steward.head.watch import Awake
from steward.model.ids import NodeName
from steward.model.witness import Witness
from steward.ports import PortError
from tests.fakes.hub_bench import HubBench, a_hub, hello

BEAT_S = 0.2
SILENCE_S = 6.0
BY_PING = "no answer to a ping"


@dataclass(eq=False)
class Agent:
    """It answers pings and `beats`, until it is `frozen`."""

    channel: Channel
    frozen: bool = False
    beats: bool = True
    pings: int = 0

    async def live(self) -> None:
        with contextlib.suppress(PortError):
            await asyncio.gather(self._beat(), self._listen())

    async def _beat(self) -> None:
        while True:
            if self.beats and not self.frozen:
                await self.channel.beat(sent=1.0)
            await asyncio.sleep(BEAT_S)

    async def _listen(self) -> None:
        while True:
            frame = await self.channel.receive()
            if "echo" not in frame:
                self.pings += 1
                if not self.frozen:
                    await self.channel.beat(sent=1.0)


@dataclass
class Site:
    bench: HubBench
    agents: dict[str, Agent] = field(default_factory=dict)
    looked: list[str] = field(default_factory=list)

    async def lost(self, node: str) -> str:
        """Why, once it is."""
        await self.bench.until(f"{node} is lost", lambda: not self.bench.view(node).connected, SILENCE_S)
        return self.bench.view(node).lost_why


@contextlib.asynccontextmanager
async def a_site(*nodes: str, seen: Witness | None = Witness.SILENT, pongs: bool = True) -> AsyncIterator[Site]:
    looked: list[str] = []

    async def examine(node: NodeName) -> Witness | None:
        looked.append(node)
        return seen

    async with a_hub(heartbeat_s=BEAT_S, examine=examine) as bench:
        site = Site(bench, looked=looked)
        running = []
        for node in nodes:
            channel, _ = await bench.connect(replace(hello(node, f"i-{node}"), pongs=pongs))
            site.agents[node] = Agent(channel)
            running.append(asyncio.ensure_future(site.agents[node].live()))
            await bench.until_connected(node)
        try:
            yield site
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


def test_a_frozen_node_is_given_up_when_its_ping_stays_unanswered_and_others_answer_theirs() -> None:
    async def story() -> None:
        async with a_site("n1", "n2", "n3") as site:
            site.agents["n2"].frozen = True
            assert BY_PING in await site.lost("n2")
            assert site.looked == ["n2"]
            assert site.agents["n1"].pings == site.agents["n3"].pings == 1
            assert site.bench.view("n1").connected
            assert site.bench.view("n3").connected

    asyncio.run(story())


@pytest.mark.parametrize("seen", [Witness.ALIVE, None])
def test_an_agent_whose_slurmd_lives_or_is_not_known_has_its_three_beats(seen: Witness | None) -> None:
    async def story() -> None:
        async with a_site("n1", "n2", seen=seen) as site:
            site.agents["n2"].frozen = True
            assert BY_PING not in await site.lost("n2")

    asyncio.run(story())


def test_while_another_does_not_answer_either_nobody_is_given_up_before_his_time() -> None:
    async def story() -> None:
        async with a_site("n1", "n2", "n3") as site:
            for node in ("n1", "n2"):
                site.agents[node].frozen = True
            for node in ("n1", "n2"):
                assert BY_PING not in await site.lost(node)

    asyncio.run(story())


def test_agents_that_fall_silent_together_have_their_three_beats() -> None:
    async def story() -> None:
        async with a_site("n1", "n2", "n3", "n4") as site:
            for node in ("n1", "n2", "n3"):
                site.agents[node].frozen = True
            for node in ("n1", "n2", "n3"):
                assert BY_PING not in await site.lost(node)

    asyncio.run(story())


def test_where_nobody_else_is_there_to_compare_with_an_agent_has_its_three_beats() -> None:
    async def story() -> None:
        async with a_site("n1") as site:
            site.agents["n1"].frozen = True
            assert BY_PING not in await site.lost("n1")

    asyncio.run(story())


def test_an_agent_before_this_version_is_not_pinged_and_has_its_three_beats() -> None:
    async def story() -> None:
        async with a_site("n1", "n2", pongs=False) as site:
            site.agents["n2"].frozen = True
            assert BY_PING not in await site.lost("n2")
            assert site.agents["n1"].pings == 0

    asyncio.run(story())


def test_an_agent_that_answers_its_ping_stays() -> None:
    async def story() -> None:
        async with a_site("n1", "n2") as site:
            site.agents["n2"].beats = False
            await site.bench.until("it was pinged some times", lambda: site.agents["n2"].pings > 4)
            assert site.bench.view("n2").connected

    asyncio.run(story())


def test_it_is_lost_since_it_was_pinged() -> None:
    async def story() -> None:
        async with a_site("n1", "n2") as site:
            site.agents["n2"].frozen = True
            await site.lost("n2")
            view = site.bench.view("n2")
            assert view.lost_at is not None
            assert view.last_heard < view.lost_at < site.bench.clock.now()

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
