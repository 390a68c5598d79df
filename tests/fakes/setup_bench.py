"""One life of an agent that sets up its node, and what its head was told."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from steward.adapters.offload import Threads
from steward.adapters.wire.order_messages import order_frames, setup_of
from steward.agent.setup import Setups
from steward.model.agent_action import SetUpNode
from steward.model.setup import SetupReport, SetupState
from tests.fakes.agent_parts import FakeHead
from tests.fakes.clock import FakeClock
from tests.fakes.setups import NodeDisk
from tests.fakes.until import comes_true

DONE, FAILED, RUNNING = SetupState.SUCCEEDED, SetupState.FAILED, SetupState.RUNNING


class Bench:
    """One life of an agent: what its head was told."""

    def __init__(self, disk: NodeDisk, threads: Threads | None = None) -> None:
        self.head = FakeHead()
        threads = threads or Threads(1)
        self.setups = Setups(disk.root, here=disk.here, head=self.head, start=disk, threads=threads, clock=FakeClock())

    def order(self, order: SetUpNode) -> None:
        for frame in order_frames(order):
            self.setups.hear(frame)

    def reports(self, token: str = "t1") -> list[SetupReport]:
        told = [setup_of(frame) for frame in self.head.told if frame["t"] == "setup"]
        return [report for report in told if report.token == token]

    def state(self, token: str = "t1") -> SetupState | None:
        found = self.reports(token)
        return found[-1].state if found else None

    @property
    def log(self) -> str:
        text = ""
        for frame in self.head.told:
            if frame["t"] == "setup_log":
                text = text[: frame["offset"]] + frame["text"]
        return text

    async def until_over(self, token: str = "t1") -> None:
        await comes_true(f"{token} is over", lambda: self.state(token) in (DONE, FAILED))


@contextlib.asynccontextmanager
async def an_agent(disk: NodeDisk) -> AsyncIterator[Bench]:
    bench = Bench(disk)
    task = asyncio.ensure_future(bench.setups.run())
    try:
        yield bench
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
