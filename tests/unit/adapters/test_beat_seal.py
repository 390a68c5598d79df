"""Heartbeats are proved like everything else: who only sits on the way cannot keep a dead node alive."""

import asyncio

import pytest

from steward.adapters.wire.frames import pack
from steward.adapters.wire.seal import Beats, PeerRole, times
from steward.ports import Permanent
from tests.fakes.hub_bench import a_hub
from tests.fakes.until import comes_true
from tests.fakes.wires import wire

KEY = bytes(range(32))
ONE, TWO = times(1.0), times(1.0, 2.0)


def ends(key: bytes = KEY) -> tuple[Beats, Beats]:
    return Beats(key, PeerRole.AGENT), Beats(key, PeerRole.HEAD)


def test_each_heartbeat_has_a_seal_of_its_own() -> None:
    agent, head = ends()
    for _ in range(3):
        head.check(agent.seal(ONE), ONE)
        agent.check(head.seal(TWO), TWO)


@pytest.mark.parametrize("seal", [None, "", 1, "0" * 32])
def test_a_heartbeat_without_its_seal_is_none(seal: object) -> None:
    _, head = ends()
    with pytest.raises(Permanent, match="no seal, or a wrong one"):
        head.check(seal, ONE)


def test_a_heartbeat_that_is_sent_again_changed_reflected_or_of_another_connection_is_none() -> None:
    agent, head = ends()
    first = agent.seal(ONE)
    head.check(first, ONE)
    for forged in (first, head.seal(ONE), ends(b"other")[0].seal(ONE), "\u00e9" * 32):
        with pytest.raises(Permanent):
            head.check(forged, ONE)
    sender, receiver = ends()
    with pytest.raises(Permanent):
        receiver.check(sender.seal(ONE), TWO)


@pytest.mark.parametrize("forged", [{}, {"seal": ""}, {"seal": "0" * 32}])
def test_the_head_hangs_up_on_who_beats_for_an_agent_without_its_key(forged: dict[str, str]) -> None:
    async def story() -> None:
        async with a_hub() as bench:
            await bench.connect()
            await bench.until_connected()
            (agent,) = bench.agents
            agent.write(pack({"t": "beat", "sent": 1.0, **forged}))
            await comes_true("it is lost", lambda: not bench.view().connected)
            assert "seal" in bench.view().lost_why
            assert bench.hub.beats == 0

    asyncio.run(story())


def test_an_agent_hangs_up_on_who_answers_for_the_head() -> None:
    async def story() -> None:
        async with wire() as both:
            both.head._writer.write(pack({"t": "beat", "echo": 1.0, "now": 2.0}))
            with pytest.raises(Permanent, match="no seal, or a wrong one"):
                await both.agent.receive()

    asyncio.run(story())


def test_the_key_can_be_read_by_the_agents_user_only() -> None:
    """Any user of the cluster can read any other credential."""

    async def story() -> None:
        async with a_hub() as bench:
            await bench.connect()
            assert list(bench.munged.readers.values()) == [0]

    asyncio.run(story())
