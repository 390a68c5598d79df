"""An agent looks at another node's slurmd when the head asks for it, and tells what it found."""

import asyncio
import threading
from dataclasses import dataclass, field

from steward.adapters.offload import Threads
from steward.adapters.wire.order_messages import LookOrder, looked_of
from steward.agent.looks import AT_ONCE, PeerLook
from steward.model.ids import NodeName
from steward.model.witness import Address, Witness, WitnessSeen
from tests.fakes.agent_parts import FakeHead
from tests.fakes.until import FACT_S


@dataclass
class FakeEyes:
    """`gate` holds up every look until it is set."""

    finds: Witness = Witness.SILENT
    looks: list[Address] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def look(self, address: Address) -> WitnessSeen | None:
        self.looks.append(address)
        self.gate.wait(FACT_S)
        return WitnessSeen(result=self.finds, at=1.0)


def an_order(number: int = 2) -> LookOrder:
    return LookOrder(node=NodeName(f"n{number}"), address=f"10.0.0.{number}", port=6818)


def told(eyes: FakeEyes, *orders: LookOrder) -> list[tuple[NodeName, Witness]]:
    """What the head heard when these orders came one upon the other."""
    head = FakeHead()

    async def story() -> None:
        peers = PeerLook(eyes.look, head=head, threads=Threads(AT_ONCE + 1))
        for order in orders:
            peers.obey(order)
        eyes.gate.set()
        async with asyncio.timeout(FACT_S):
            await peers.rest()

    asyncio.run(story())
    return [looked_of(frame) for frame in head.told]


def test_what_was_found_is_told_of_the_node_that_was_asked_about() -> None:
    eyes = FakeEyes(Witness.ALIVE)
    assert told(eyes, an_order()) == [("n2", Witness.ALIVE)]
    assert eyes.looks == [Address(host="10.0.0.2", port=6818)]


def test_a_node_that_is_looked_at_just_now_is_not_looked_at_twice_and_many_at_once_not_at_all() -> None:
    assert told(FakeEyes(), an_order(), an_order()) == [("n2", Witness.SILENT)]
    many = [an_order(number) for number in range(AT_ONCE + 4)]
    assert len(told(FakeEyes(), *many)) == AT_ONCE
