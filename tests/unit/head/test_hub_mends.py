"""Light repairs as the head orders them and hears how they ended."""

import asyncio
from dataclasses import replace

import pytest

from steward.adapters.wire.order_messages import mend_of, mended_frame
from steward.model.agent_action import MendNode
from steward.model.health import Advice
from steward.model.ids import Key, NodeName
from steward.model.mend import MendReport
from steward.model.why import Why
from steward.ports import Permanent, Stale
from tests.fakes.hub_bench import a_hub
from tests.fakes.until import comes_true

N1 = NodeName("n1")


def an_order(target: str = "munge") -> MendNode:
    why = Why(rule="test", text="munge is down")
    return MendNode(
        key=Key("mend:c1"), why=why, node=N1, rung=Advice.RESTART_SERVICE, target=target, token="c1-restart_service"
    )


def test_the_order_reaches_its_agent_and_the_report_its_view() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.hub.order(an_order())
            order = mend_of(await channel.receive(), N1)
            assert order == replace(an_order(), key=order.key, why=order.why)
            for _ in range(2):
                await channel.send(mended_frame(MendReport(token=order.token, error="no systemd", at=1.0)))
            await comes_true("it is there", lambda: bench.view().mend is not None)
            report = bench.hub.views()[N1].mend
            assert report is not None
            assert (report.token, report.error, report.is_done) == (order.token, "no systemd", False)

    asyncio.run(story())


def test_without_its_agent_the_order_is_stale() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            with pytest.raises(Stale, match="n1"):
                bench.hub.order(an_order())

    asyncio.run(story())


def test_an_order_that_no_agent_would_take_is_refused() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            with pytest.raises(Permanent):
                bench.hub.order(an_order("munge; reboot"))

    asyncio.run(story())
