"""What agents and head say to each other through the hub: reports, asks, answers, and nonsense."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from steward.adapters.wire.frames import Frame, pack
from steward.adapters.wire.job_messages import ask_frame
from steward.adapters.wire.messages import answer_of, opted_frame, report_frame, withdraw_frame
from steward.adapters.wire.order_messages import LookOrder, let_go_of, look_of, looked_frame
from steward.adapters.wire.seal import times
from steward.model.agent_action import LetGo
from steward.model.ask import Answer, OptedIn
from steward.model.health import Finding, Outcome, Severity
from steward.model.ids import JobId, Key, NodeName
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from steward.model.witness import Address, PeerWord, Witness, WitnessSeen
from steward.ports import Stale
from tests.fakes.applier import an_ask
from tests.fakes.hub_bench import HubBench, a_hub, hello
from tests.fakes.until import comes_true

N1 = NodeName("n1")
BAD = Finding(check="disk", outcome=Outcome.FAILED, severity=Severity.FATAL, text="gone")


def test_a_report_is_in_the_view_and_the_same_one_again_does_not_ring() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await channel.send(report_frame([BAD], None))
            await comes_true("it is there", lambda: bench.hub.views() and bench.view().findings == (BAD,))
            rings = bench.rings
            fine = Finding(check="clock", outcome=Outcome.PASSED, at=3.0)
            again = replace(BAD, at=5.0, passed_at=4.0, good_since=4.0)
            await channel.send(report_frame([again, fine], None))
            await comes_true("its times are newer", lambda: bench.view().findings == (again,))
            assert bench.view().passes_since == {"clock": 3}
            assert bench.rings == rings

    asyncio.run(story())


def test_fresh_checks_are_asked_for_and_their_answer_noted() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.hub.check_now(frozenset({N1, NodeName("n9")}), 2.0)
            request = await channel.receive()
            assert (request["t"], request["budget_s"]) == ("check_now", 2.0)
            asked_at, bench.clock.at = bench.clock.at, 3000.0
            await channel.send(report_frame([], request["id"]))
            await comes_true("it is noted", lambda: bench.view().checked_at == asked_at)

    asyncio.run(story())


def reported_at(bench: HubBench, at: float) -> bool:
    return bench.view().reported_at == at


def test_the_answer_to_an_older_request_is_none_to_a_newer_one() -> None:
    """Its looks were over before what the newer one asks about."""

    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            requests = []
            for bench.clock.at in (3000.0, 3001.0):
                bench.hub.check_now(frozenset({N1}), 2.0)
                requests.append((await channel.receive())["id"])
            for n, (request, noted) in enumerate([(0, 3000.0), (1, 3001.0), (0, 3001.0)]):
                bench.clock.at = 3002.0 + n
                await channel.send(report_frame([BAD], requests[request]))
                await comes_true("it is there", partial(reported_at, bench, bench.clock.at))
                assert bench.view().checked_at == noted

    asyncio.run(story())


@pytest.mark.parametrize("answered", ["check-1", "nan", "inf", "1e999", ""])
def test_a_report_that_answers_no_request_of_ours_is_a_report_like_any_other(answered: str) -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await channel.send(report_frame([BAD], answered))
            await comes_true("it is there", lambda: bench.hub.views() and bench.view().findings == (BAD,))
            assert bench.view().checked_at == 0.0

    asyncio.run(story())


def test_the_order_to_let_go_reaches_the_agents_it_names() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.hub.order(an_order(N1, NodeName("n9")))
            order = let_go_of(await channel.receive(), N1)
            assert (order.job, order.restart, order.before) == (7, 2, 1000.5)
            assert order.why.text == "n2 died"

    asyncio.run(story())


def an_order(*nodes: NodeName) -> LetGo:
    why = Why(rule="test", text="n2 died")
    return LetGo(
        key=Key("letgo:7:2"), why=why, job=JobId(7), uid=1000, nodes=frozenset(nodes), restart=2, before=1000.5
    )


def test_an_agent_is_asked_about_another_node_and_its_word_is_kept_with_that_nodes_view() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            n9 = NodeName("n9")
            bench.hub.keep_witness({n9: WitnessSeen(result=Witness.SILENT, at=1.0)})
            bench.hub.have_looked_at(n9, Address(host="10.0.0.9", port=6818), frozenset({N1, NodeName("n8")}))
            assert look_of(await channel.receive()) == LookOrder(node=n9, address="10.0.0.9", port=6818)
            await channel.send(looked_frame(n9, Witness.REFUSED))
            await channel.send(looked_frame(NodeName("nobody"), Witness.ALIVE))
            await comes_true("its word is kept", lambda: bench.hub.views()[n9].peers)
            assert bench.hub.views()[n9].peers == (PeerWord(by=N1, result=Witness.REFUSED, at=bench.clock.at),)
            assert "nobody" not in bench.hub.views()

    asyncio.run(story())


def test_an_ask_waits_until_it_is_answered() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await channel.send(ask_frame(an_ask()))
            await comes_true("it waits", lambda: bench.hub.asks())
            (ask,) = bench.hub.asks()
            assert (ask.id, ask.node, ask.at) == ("a1", "n1", bench.clock.at)
            bench.hub.answer(ask.id, Answer.REQUEUE, frozenset())
            assert answer_of(await channel.receive()) == ("a1", Answer.REQUEUE, frozenset())
            assert bench.hub.asks() == ()
            with pytest.raises(Stale):
                bench.hub.answer(ask.id, Answer.STOP, frozenset())

    asyncio.run(story())


def test_an_ask_that_was_withdrawn_waits_no_longer() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await channel.send(ask_frame(an_ask()))
            await comes_true("it waits", lambda: bench.hub.asks())
            await channel.send(withdraw_frame(an_ask().id))
            await comes_true("nobody waits", lambda: not bench.hub.asks())

    asyncio.run(story())


def test_an_ask_moves_to_its_agents_new_connection() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            first, _ = await bench.connect()
            await first.send(ask_frame(an_ask()))
            await comes_true("it waits", lambda: bench.hub.asks())
            first.close()
            await comes_true("nobody waits", lambda: not bench.hub.asks())
            second, _ = await bench.connect()
            await second.send(ask_frame(an_ask()))
            await comes_true("it waits again", lambda: bench.hub.asks())
            bench.hub.answer(an_ask().id, Answer.STOP, frozenset())
            assert answer_of(await second.receive())[1] is Answer.STOP

    asyncio.run(story())


def test_one_node_cannot_fill_the_head_with_asks() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            for number in range(65):
                await channel.send({**ask_frame(an_ask()), "id": f"a-{number}"})
            assert answer_of(await channel.receive()) == ("a-64", Answer.STOP, frozenset())
            assert len(bench.hub.asks()) == 64

    asyncio.run(story())


@pytest.mark.parametrize("frame", [{"t": "ask", "id": 7}, {"t": "report", "findings": [{}] * 100}, {"t": "withdraw"}])
def test_a_word_that_cannot_be_read_costs_that_word_and_not_the_connection(frame: Frame) -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            await channel.send(frame)
            await channel.send(report_frame([BAD], None))
            await comes_true("its report is there", lambda: bench.view().findings == (BAD,))
            assert bench.view().connected


def test_a_shim_whose_ask_cannot_be_read_is_told_to_stop() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            await channel.send({"t": "ask", "id": "n1-7", "job": 0})
            while (frame := await channel.receive())["t"] == "beat":
                pass
            assert answer_of(frame)[:2] == ("n1-7", Answer.STOP)

    asyncio.run(story())


def test_what_an_agent_of_another_version_says_is_left_out_and_the_rest_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            for _ in range(3):
                await channel.send({"t": "of tomorrow", "what": [1, 2]})
            await channel.send(report_frame([BAD], None))
            await comes_true("its report is there", lambda: bench.view().findings == (BAD,))
            assert bench.view().connected
            assert sum("of tomorrow" in record.getMessage() for record in caplog.records) == 1

    asyncio.run(story())


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x02{]", b'\x00\x00\x00\x0b{"t":"ask"}'])
def test_bytes_that_are_no_sealed_frame_end_the_connection(data: bytes) -> None:
    async def story() -> None:
        async with a_hub() as bench:
            await bench.connect()
            await bench.until_connected()
            bench.agents[0].write(data)
            await comes_true("it is gone", lambda: not bench.view().connected)

    asyncio.run(story())


def test_a_beat_that_comes_in_pieces_is_a_beat() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            frame = pack({"t": "beat", "sent": 7.5, "seal": channel._seals.beats.seal(times(7.5))})
            for at in range(len(frame)):
                bench.agents[0].write(frame[at : at + 1])
                await asyncio.sleep(0)
            assert (await channel.receive())["echo"] == 7.5

    asyncio.run(story())


def test_jobs_that_opted_in_are_kept_until_slurm_forgot_them() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            opted = OptedIn(job=JobId(7), uid=1000, mode=ResumeMode.parse("1"), restart=0, at=1.0)
            channel, _ = await bench.connect(replace(hello(), opted=(opted,)))
            await channel.send(opted_frame([replace(opted, job=JobId(8))]))
            await comes_true("both are known", lambda: len(bench.hub.opted_in()) == 2)
            bench.clock.at += 601.0
            bench.hub.forget_jobs([JobId(8)])
            assert [one.job for one in bench.hub.opted_in()] == [8]

    asyncio.run(story())


def test_what_a_witness_saw_is_kept_also_of_a_node_without_an_agent() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            seen = WitnessSeen(result=Witness.SILENT, at=1.0)
            bench.hub.keep_witness({N1: seen})
            assert bench.view().witness == seen
            assert not bench.view().connected
            assert bench.rings == 1

    asyncio.run(story())
