"""Agents at the head, over real TCP: who is there, who is late, who is gone, and who may speak for a node."""

import asyncio
import contextlib

import pytest

from steward.adapters.wire.frames import ALONE, MAX_FRAME, WITH_ALL, WITH_HOST, Gone, pack
from steward.adapters.wire.messages import report_frame
from steward.model.health import Finding, Outcome, Severity
from steward.model.ids import NodeName
from steward.ports import Permanent, PortError
from tests.fakes.hub_bench import a_hub, a_machine, hello
from tests.fakes.until import FACT_S, comes_true
from tests.fakes.wires import sealer

N1 = NodeName("n1")
BAD = Finding(check="disk", outcome=Outcome.FAILED, severity=Severity.FATAL, text="gone")


def test_an_agent_that_proves_itself_is_there() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            await bench.connect(hello(version="9.9"))
            await bench.until_connected()
            assert bench.view().incarnation == hello().incarnation
            assert bench.hub.details()[N1].version == "9.9"
            assert bench.rings

    asyncio.run(story())


def test_an_agent_of_an_ordinary_user_is_refused() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            with pytest.raises(PortError):
                await bench.connect(by=sealer(bench.munged, uid=1000))
            assert bench.hub.views() == {}

    asyncio.run(story())


def test_a_name_that_no_node_can_have_is_refused() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect(hello(node="../n1"))
            with pytest.raises(Gone):
                await channel.receive()
            assert bench.hub.views() == {}

    asyncio.run(story())


def test_an_agent_whose_hello_cannot_be_read_is_known_to_be_alive() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            await bench.connect()
            await bench.until_connected()
            bench.agents[0].close()
            await comes_true("it is lost", lambda: not bench.view().connected)
            assert not bench.view().fell_silent
            assert not bench.view().dialled_at
            with pytest.raises(PortError):
                await bench.connect(hello(version="v" * 40))
            await comes_true("it is alive", lambda: bench.view().dialled_at > 0.0)
            with pytest.raises(PortError):
                await bench.connect(hello("n2", version="v" * 40), by=sealer(bench.munged, uid=1000))
            assert NodeName("n2") not in bench.hub.views(), "no agent's word"

    asyncio.run(story())


@pytest.mark.parametrize(("behind_s", "words"), [(600.0, "is 600 s behind"), (-900.0, "is 900 s ahead of")])
def test_an_agent_whose_clock_is_minutes_off_is_known_to_be_alive_and_told(behind_s: float, words: str) -> None:
    async def story() -> None:
        async with a_hub() as bench:
            for _ in range(2):
                with pytest.raises(PortError):
                    await bench.connect(by=sealer(bench.munged, behind_s=behind_s))
            await comes_true("it is alive", lambda: bench.view().dialled_at > 0.0)
            assert [(event.kind, event.node, words in event.text) for event in bench.events] == [
                ("agent.clock", "n1", True)
            ]
            with pytest.raises(PortError):
                await bench.connect(hello("n2"), by=sealer(bench.munged, uid=1000, behind_s=behind_s))
            assert NodeName("n2") not in bench.hub.views(), "no agent's word"

    asyncio.run(story())


def test_an_agent_that_the_head_hangs_up_on_is_known_to_be_alive() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            await bench.connect()
            await bench.until_connected()
            bench.agents[0].write(pack({"t": "report", "seq": 7}))
            await comes_true("it is sent away", lambda: not bench.view().connected)
            assert bench.view().dialled_at == bench.view().lost_at

    asyncio.run(story())


def test_an_agent_that_refuses_the_head_says_why_before_it_hangs_up() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            with pytest.raises(Permanent):
                await bench.connect(by=sealer(bench.munged, trusted=frozenset({4242})))
            await comes_true("it is lost", lambda: not bench.view().connected)
            why = "its agent refuses this head: a credential of uid 0 was refused; only uids [4242] are accepted"
            assert bench.view().lost_why == why
            assert bench.view().dialled_at == bench.view().lost_at, "it is alive"

    asyncio.run(story())


def test_the_beats_interval_grows_with_the_cluster() -> None:
    async def story() -> None:
        async with a_hub(heartbeat_s=1.0) as bench:
            _, small = await bench.connect()
            bench.hub.expect(10_000)
            _, large = await bench.connect(hello("n2"))
            assert (small.interval_s, small.late_after_s) == (1.0, 3.0)
            assert (large.interval_s, large.late_after_s) == (40.0, 120.0)

    asyncio.run(story())


def test_a_heartbeat_is_answered_with_the_heads_clock() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            bench.clock.at = 2000.0
            await channel.beat(sent=1999.5)
            assert await channel.receive() == {"t": "beat", "echo": 1999.5, "now": 2000.0}
            assert bench.hub.beats == 1

    asyncio.run(story())


def test_a_heartbeat_that_asks_for_no_answer_is_heard_and_not_answered() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            bench.clock.at = 2000.0
            for _ in range(3):
                await channel.beat(lives=1999.0)
            await channel.beat(sent=1999.5)
            assert await channel.receive() == {"t": "beat", "echo": 1999.5, "now": 2000.0}
            assert bench.hub.beats == 4

    asyncio.run(story())


def test_an_agent_that_hangs_up_is_lost_at_once() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.clock.at = 1234.0
            channel.close()
            await comes_true("it is lost", lambda: not bench.view().connected)
            assert bench.view().lost_at == 1234.0
            assert "connection" in bench.view().lost_why

    asyncio.run(story())


@pytest.mark.parametrize(
    ("word", "leaves", "host_ends"), [(ALONE, True, False), (WITH_HOST, False, True), (WITH_ALL, True, True)]
)
def test_an_agent_that_was_told_to_end_says_what_ends_with_it_and_is_missed_like_any_other(
    word: float, leaves: bool, host_ends: bool
) -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            await channel.beat(sent=1.0, leaves=word)
            await comes_true("it is lost", lambda: not bench.view().connected)
            assert (bench.view().leaves, bench.view().host_ends) == (leaves, host_ends)
            assert bench.view().lost_why == ("it was told to end" if leaves else "its host is being shut down")
            await bench.connect()
            await bench.until_connected()
            assert not bench.view().leaves
            assert not bench.view().host_ends

    asyncio.run(story())


def test_who_only_pretends_that_an_agent_was_told_to_end_ends_its_connection() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            await bench.connect()
            await bench.until_connected()
            bench.agents[0].write(pack({"t": "beat", "sent": 1.0, "leaves": 1.0, "seal": "0" * 32}))
            await comes_true("it is lost", lambda: not bench.view().connected)
            assert not bench.view().leaves
            assert "seal" in bench.view().lost_why

    asyncio.run(story())


def test_a_silent_agent_is_late_then_gone() -> None:
    async def story() -> None:
        async with a_hub(heartbeat_s=0.2) as bench:
            await bench.connect()
            await bench.until_connected()
            await comes_true("it is late", lambda: bench.view().late)
            assert bench.view().connected
            await comes_true("it is gone", lambda: not bench.view().connected)
            assert "silent" in bench.view().lost_why

    asyncio.run(story())


def test_a_late_agent_that_beats_again_is_not_late() -> None:
    async def story() -> None:
        async with a_hub(heartbeat_s=0.2) as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            await comes_true("it is late", lambda: bench.view().late)
            rings = bench.rings
            await channel.beat(sent=1.0)
            await comes_true("it is well", lambda: not bench.view().late)
            assert bench.rings == rings + 1

    asyncio.run(story())


def test_beats_alone_do_not_wake_the_cycle() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            rings = bench.rings
            for _ in range(20):
                await channel.beat(sent=1.0)
                await channel.receive()
            assert bench.rings == rings

    asyncio.run(story())


def test_a_new_machine_takes_over_the_name_and_the_old_one_does_not_get_it_back() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            machines = (a_machine("i-old", launched=1.0), a_machine("i-new", launched=2.0))
            bench.origins.learn({}, {machine.id: machine for machine in machines})
            old, _ = await bench.connect(hello(instance="i-old"))
            await old.send(report_frame([BAD], None))
            await comes_true("it reported", lambda: bench.hub.views() and bench.view().findings)
            await bench.connect(hello(instance="i-new", boot="b-2"))
            await comes_true(
                "the new one is there", lambda: bench.view().incarnation == hello("n1", "i-new", "b-2").incarnation
            )
            assert bench.view().findings == ()
            assert [event.kind for event in bench.events] == ["agent.conflict"]
            again, _ = await bench.connect(hello(instance="i-old"))
            with pytest.raises(Gone):
                await again.receive()
            assert bench.view().connected

    asyncio.run(story())


def test_a_machine_that_follows_a_lost_one_is_no_conflict() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            old, _ = await bench.connect(hello(instance="i-old"))
            await bench.until_connected()
            old.close()
            await comes_true("it is lost", lambda: not bench.view().connected)
            await bench.connect(hello(instance="i-new"))
            await bench.until_connected()
            assert bench.events == []

    asyncio.run(story())


def test_a_head_that_closes_hangs_up_on_its_agents() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            await bench.hub.close()
            with pytest.raises(Gone):
                await channel.receive()

    asyncio.run(story())


def test_who_has_not_proved_himself_is_not_listened_to_for_long() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
            bench.agents.append(writer)
            writer.write(pack({"t": "hello"}) + bytes(2 * MAX_FRAME))
            async with asyncio.timeout(FACT_S):
                with contextlib.suppress(ConnectionError):
                    while await reader.read(4096):
                        pass

    asyncio.run(story())
