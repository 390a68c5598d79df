"""Thousands of connections that come at once to a port of the head leave the loop its other work: who floods a port
must not silence the agents that are connected."""

import asyncio
import gc
import os
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from starlette.applications import Starlette

from steward.adapters.socket_path import AT_ONCE
from steward.head.link import Link
from steward.head.serve import http_server
from steward.model.settings.sections import ApiSettings
from tests.fakes.hub_bench import HubBench
from tests.fakes.until import FACT_S

FLOOD = 300


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), FACT_S))


def flood(port: int) -> list[socket.socket]:
    """Connected while the loop takes none."""
    return [socket.create_connection(("127.0.0.1", port), timeout=FACT_S) for _ in range(FLOOD)]


async def taken_at_once(port: int) -> int:
    """The most connections that are taken between two turns of other work."""
    held, most = flood(port), 0
    before = first = len(os.listdir("/proc/self/fd"))
    while before < first + FLOOD // 2:
        await asyncio.sleep(0)
        now = len(os.listdir("/proc/self/fd"))
        most, before = max(most, now - before), max(now, before)
    for each in held:
        each.close()
    return most


def test_a_flood_of_the_agents_port_is_taken_in_by_and_by() -> None:
    async def story() -> None:
        bench = HubBench()
        await bench.listen(1.0)
        assert await taken_at_once(bench.port) <= AT_ONCE + 2
        await bench.hub.close()

    run(story)


RESET = struct.pack("ii", 1, 0)


@pytest.mark.parametrize("said", [b"", b"\0\0\0", b"\0\0\xff\0{" * 9, b"\0\0\0\x02{}"])
@pytest.mark.parametrize("is_reset", [False, True])
def test_a_connection_that_is_over_leaves_no_garbage_that_python_would_have_to_find(
    said: bytes, *, is_reset: bool
) -> None:
    """The head collects garbage rarely: a flood of connections would fill its memory for minutes."""

    async def story() -> None:
        bench = HubBench()
        await bench.listen(1.0)
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", bench.port), timeout=FACT_S) as one:
                    await asyncio.sleep(0.002)
                    one.sendall(said)
                    await asyncio.sleep(0.002)
                    if is_reset:
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            while any(isinstance(one, Link) for one in gc.get_objects()):
                await asyncio.sleep(0.05)
        finally:
            gc.enable()
        await bench.hub.close()

    run(story)


def test_a_flood_of_the_pages_port_is_taken_in_by_and_by() -> None:
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            http = http_server(Starlette(), ApiSettings())
            serving = asyncio.create_task(http.serve([listening]))
            while not http.started:
                await asyncio.sleep(0.01)
            assert await taken_at_once(listening.getsockname()[1]) <= AT_ONCE + 2
            http.should_exit = True
            await serving

    run(story)
