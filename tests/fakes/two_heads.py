"""Two heads, of which one leads: each with its port for agents and its HTTP, in one loop of a thread of its own."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import uvicorn
from starlette.types import ASGIApp

from steward.adapters.wire.passing import HeadWay
from steward.api.auth import Gatekeeper
from steward.api.operations import handlers
from steward.api.server import build
from steward.client import Client
from steward.head.follow import HTTP, USERS, Passing
from steward.head.hub import Hub
from steward.head.origin import Origins
from steward.head.passed import PassedRequests
from steward.model.leadership import Leadership
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import ApiBench
from tests.fakes.aws_bench import AwsBench
from tests.fakes.munge import FakeMunge, FakeMunged
from tests.fakes.until import FACT_S, until
from tests.fakes.wires import sealer

T = TypeVar("T")
OTHERS_NAME = "head2.example"
"""A name of the second head that the first one does not know."""


@dataclass
class BenchHead:
    """One of the heads. `leads` is what it knows of the lead; `doors` are its pages."""

    api: ApiBench
    aws: AwsBench
    wait_s: float
    hosts: tuple[str, ...] = ("localhost",)
    name: str = ""
    url: str = ""
    leads: Leadership = field(default_factory=Leadership)
    doors: dict[str, ASGIApp] = field(default_factory=dict)
    hub: Hub | None = None
    server: uvicorn.Server | None = None
    opened: int = 0
    """How many requests it has passed on."""

    def start_listening(self, munged: FakeMunged) -> tuple[socket.socket, socket.socket]:
        agents, http = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        self.name = f"127.0.0.1:{agents.getsockname()[1]}"
        self.url = self.aws.url = f"http://127.0.0.1:{http.getsockname()[1]}"
        self.api.url = self.url
        way = HeadWay(sealer(munged), "1.0")

        async def opened(head: str) -> Any:
            channel = await way.open(head)
            self.opened += 1
            return channel

        gatekeeper = Gatekeeper(FakeMunge(munged), frozenset({0, 900}))
        passing = Passing(
            leadership=lambda: self.leads,
            open=opened,
            has_looked=lambda: self.api.latest is not None,
            wait_s=self.wait_s,
        )
        source = self.api.source()
        self.aws.handlers |= handlers(source)
        app = build(source, gatekeeper, self.api.news, self.aws.endpoint(), self.hosts, passing.at(HTTP))
        self.doors = {HTTP: app, USERS: app}
        passed = PassedRequests([self.name])
        passed.doors = self.doors
        self.hub = Hub(
            sealer=sealer(munged),
            clock=self.api.clock,
            ring=lambda: None,
            tell=lambda _event: None,
            origins=Origins(),
            handshake_s=FACT_S,
            leadership=lambda: self.leads,
            passed=passed,
        )
        return agents, http


@dataclass
class TwoHeads:
    """`first` leads and `other` follows, until `lead` says something else."""

    first: BenchHead
    other: BenchHead
    munged: FakeMunged
    loop: asyncio.AbstractEventLoop | None = None

    def lead(self, leader: BenchHead | None, epoch: int) -> None:
        """All heads know at once that this one leads; None: no head leads."""
        for head in (self.first, self.other):
            name = "" if leader is None else leader.name
            head.leads = Leadership(leader=name, epoch=epoch, is_mine=head is leader)

    def client(self, *heads: BenchHead, uid: int = 0) -> Client:
        return Client(",".join(head.url for head in heads), FakeMunge(self.munged, uid).encode)

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        """Do something in the heads' loop."""
        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(FACT_S)

    async def run(self, told: asyncio.Event) -> None:
        serving = []
        for head in (self.first, self.other):
            agents, http = head.start_listening(self.munged)
            assert head.hub is not None
            await head.hub.start(agents)
            config = uvicorn.Config(head.doors[HTTP], log_config=None, access_log=False, lifespan="off")
            head.server = uvicorn.Server(config)
            serving.append(asyncio.create_task(head.server.serve([http])))
        self.lead(self.first, epoch=7)
        await told.wait()
        for head in (self.first, self.other):
            assert head.hub is not None
            assert head.server is not None
            head.server.should_exit = head.server.force_exit = True
            await head.hub.close()
        await asyncio.gather(*serving)


@contextlib.contextmanager
def two_heads(wait_s: float = FACT_S) -> Iterator[TwoHeads]:
    """`wait_s`: how long a request waits for a head that leads."""
    munged = FakeMunged()
    apis = [ApiBench(munged=munged) for _ in range(2)]
    for api in apis:
        api.show(a_cluster())
    first, other = (BenchHead(api, AwsBench(munged=munged), wait_s) for api in apis)
    other.hosts = (*other.hosts, OTHERS_NAME)
    heads = TwoHeads(first, other, munged)

    async def main() -> None:
        heads.loop, told = asyncio.get_running_loop(), asyncio.Event()
        ends.append(told)
        await heads.run(told)

    ends: list[asyncio.Event] = []
    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    until("both serve", lambda: all(head.server is not None and head.server.started for head in (first, other)))
    try:
        yield heads
    finally:
        assert heads.loop is not None
        heads.loop.call_soon_threadsafe(ends[0].set)
        thread.join(FACT_S)
