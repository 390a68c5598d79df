"""A setup's log reaches the head whole, whatever becomes of the connections."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from steward.adapters.offload import Threads
from steward.agent.setup import POLL_S
from tests.fakes.setup_bench import Bench, an_agent
from tests.fakes.setups import NodeDisk
from tests.fakes.until import comes_true

pytestmark = pytest.mark.timeout(300)

T = TypeVar("T")


@pytest.fixture
def disk(tmp_path: Path) -> NodeDisk:
    return NodeDisk(home=tmp_path)


def test_what_a_lost_connection_may_have_lost_of_the_log_is_sent_again(disk: NodeDisk) -> None:
    disk.script("echo hello\n")

    async def story() -> None:
        async with an_agent(disk) as agent:
            agent.order(disk.order())
            await comes_true("the log is there", lambda: "succeeded." in agent.log)
            whole = agent.log
            await asyncio.sleep(2 * POLL_S)
            agent.head.told.clear()
            agent.setups.frames()
            await comes_true("it comes again", lambda: agent.log == whole)

    asyncio.run(story())


def test_a_connection_that_is_made_during_a_look_begins_with_the_log_again(disk: NodeDisk) -> None:
    disk.script("echo hello\n")

    class Reconnecting(Threads):
        """The head comes back while the look that finds nothing more to send is under way."""

        lost = ""

        async def call(self, what: Callable[[], T], *, name: str, timeout_s: float) -> T:
            found = await super().call(what, name=name, timeout_s=timeout_s)
            if "succeeded." in agent.log and not self.lost:
                self.lost = agent.log
                agent.head.told.clear()
                agent.setups.frames()
            return found

    threads = Reconnecting(1)
    agent = Bench(disk, threads)

    async def story() -> None:
        running = asyncio.ensure_future(agent.setups.run())
        agent.order(disk.order())
        await comes_true("the connection is lost", lambda: threads.lost)
        await comes_true("the log comes again", lambda: agent.log == threads.lost)
        running.cancel()

    asyncio.run(story())
