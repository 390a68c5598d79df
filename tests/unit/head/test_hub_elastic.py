"""Orders for elastic runs as the head sends them, and what it hears of runs."""

import asyncio

import pytest

from steward.adapters.wire.elastic_messages import elastic_order_of
from steward.model.agent_action import ResizeRun, SubmitReplica
from steward.model.elastic import Activity
from steward.model.ids import JobId, Key, NodeName
from steward.model.why import Why
from steward.ports import Stale
from tests.builders.elastic import ELASTIC_FRAMES
from tests.fakes.hub_bench import a_hub
from tests.fakes.until import comes_true

N1 = NodeName("n1")
WHY = Why(rule="test", text="two nodes are idle")
RESIZE = ResizeRun(
    key=Key("r"), why=WHY, run=JobId(7), node=N1, generation=3, members=frozenset({N1, NodeName("n2")}), grace_s=20
)
SUBMIT = SubmitReplica(key=Key("s"), why=WHY, run=JobId(7), node=N1, token="r1", nodes=2, grace_s=20, minutes=60)


def test_orders_reach_the_agent_and_words_of_the_run_its_view() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.hub.order(RESIZE)
            bench.hub.order(SUBMIT)
            resize, submit = [elastic_order_of(await channel.receive(), N1) for _ in range(2)]
            assert isinstance(resize, ResizeRun)
            assert (resize.generation, resize.members, resize.why.text) == (3, RESIZE.members, "two nodes are idle")
            assert isinstance(submit, SubmitReplica)
            assert (submit.token, submit.nodes, submit.minutes) == ("r1", 2, 60)
            for state in ("forming", "running"):
                await channel.send({**ELASTIC_FRAMES["elastic_word"], "state": state})
            await comes_true("it runs", lambda: [one.state for one in bench.view().elastic] == [Activity.RUNNING])
            words = bench.view().elastic
            assert (words[0].run, words[0].node, words[0].generation) == (7, N1, 2)

    asyncio.run(story())


def test_without_its_agent_an_order_is_stale() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            with pytest.raises(Stale, match="n1"):
                bench.hub.order(RESIZE)

    asyncio.run(story())
