"""Where nodes are, asked of a name server that may be slow."""

import asyncio
import threading

from steward.head.origin import Origins
from steward.model.ids import NodeName
from steward.model.node import Node, NodeBase
from tests.fakes.until import FACT_S, comes_true

NODES = {
    name: Node(name=name, base=NodeBase.IDLE, address=f"10.0.0.{number}")
    for number, name in enumerate((NodeName(f"n{number}") for number in range(1, 21)), 1)
}


class Server:
    """Answers when `answers` is set, with an address for each name."""

    def __init__(self) -> None:
        self._lock, self.answers = threading.Lock(), threading.Event()
        self.asked: list[str] = []
        self.at_once = self.most = 0

    def __call__(self, name: str) -> frozenset[str]:
        with self._lock:
            self.asked.append(name)
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        self.answers.wait(FACT_S)
        with self._lock:
            self.at_once -= 1
        return frozenset({f"192.0.2.{name[1:]}"})


def origins_of(server: Server) -> Origins:
    origins = Origins(server)
    origins.learn(NODES, {})
    return origins


def test_what_nobody_waits_for_is_all_found_out_few_at_a_time() -> None:
    async def story() -> None:
        server = Server()
        origins = origins_of(server)
        server.answers.set()
        for name in NODES:
            origins.look_up_later(name)
            origins.look_up_later(name)
        await comes_true(
            "all are known", lambda: all(origins.is_at_home(name, f"192.0.2.{name[1:]}") for name in NODES)
        )
        assert sorted(server.asked) == sorted(NODES), "each was asked for once"
        assert server.most <= 4

    asyncio.run(story())


def test_who_waits_for_an_answer_does_not_wait_behind_what_nobody_waits_for() -> None:
    async def story() -> None:
        server = Server()
        origins = origins_of(server)
        for name in list(NODES)[:19]:
            origins.look_up_later(name)
        await comes_true("some are asked for", lambda: len(server.asked) == 4)
        waiting = asyncio.ensure_future(origins.look_up(NodeName("n20")))
        await comes_true("it is asked for beside them", lambda: "n20" in server.asked)
        assert len(server.asked) == 5
        server.answers.set()
        await waiting
        assert origins.is_at_home(NodeName("n20"), "192.0.2.20")

    asyncio.run(story())
