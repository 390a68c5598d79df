"""Setups of nodes as the head orders them, hears of them, and keeps their logs."""

import asyncio
import json
from pathlib import Path

import pytest

from steward.adapters.wire.frames import Channel, Malformed, pack
from steward.adapters.wire.order_messages import (
    CHUNK,
    MAX_LOG,
    LogChunk,
    SetUpParts,
    setup_frame,
    setup_log_frame,
    setup_log_of,
    setup_of,
)
from steward.head.piece_files import SetupLogs
from steward.model.agent_action import SetUpNode
from steward.model.ids import Key, NodeName
from steward.model.setup import Lifecycle, SetupReport, SetupState
from steward.model.why import Why
from steward.ports import Permanent
from tests.fakes.hub_bench import a_hub, hello
from tests.fakes.until import comes_true

N1 = NodeName("n1")
LIFECYCLE = Lifecycle(source="s3://b/p", on_create="on_create.sh", on_init_complete="late.sh", sha256="ab")
RUNNING = SetupReport(token="t-1", state=SetupState.RUNNING, step="OnCreate", at=5.0)


def an_order(*, token: str = "t-1", config: str = "{}") -> SetUpNode:
    return SetUpNode(
        key=Key(f"setup:{token}"),
        why=Why(rule="test", text="new"),
        node=N1,
        token=token,
        lifecycle=LIFECYCLE,
        timeout_s=60.0,
        resource_config=config,
        provisioning='{"version": "1"}',
        features=frozenset({"b", "a"}),
    )


async def heard(channel: Channel) -> SetUpNode:
    parts = SetUpParts()
    while True:
        frame = await channel.receive()
        assert len(pack(frame)) <= 65536
        if order := parts.take(frame, N1):
            return order


def test_the_order_reaches_its_agent_whole() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.hub.order(an_order())
            order = await heard(channel)
            assert (order.token, order.lifecycle, order.timeout_s) == ("t-1", LIFECYCLE, 60.0)
            assert (order.resource_config, order.provisioning, order.features) == (
                "{}",
                '{"version": "1"}',
                frozenset({"a", "b"}),
            )

    asyncio.run(story())


def test_a_config_of_thousands_of_instances_travels_in_parts() -> None:
    entries = [{"InstanceName": f"n{n}", "InstanceId": f"i-{n * 0x9E3779B97F4A7C15 % 2**68:017x}"} for n in range(6758)]
    config = json.dumps(entries)

    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.hub.order(an_order(config=config))
            assert (await heard(channel)).resource_config == config

    asyncio.run(story())


def test_a_token_that_is_no_file_name_is_refused() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            with pytest.raises(Permanent):
                bench.hub.order(an_order(token="../x"))

    asyncio.run(story())


def test_a_report_is_in_the_view_with_our_time_and_rings_once() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.clock.at = 2000.0
            await channel.send(setup_frame(RUNNING))
            await comes_true("it is there", lambda: bench.view().setup is not None)
            setup = bench.view().setup
            assert setup is not None
            assert (setup.token, setup.state, setup.at) == ("t-1", SetupState.RUNNING, 2000.0)
            rings = bench.rings
            bench.clock.at = 3000.0
            await channel.send(setup_frame(RUNNING))
            await channel.send(setup_log_frame(LogChunk(token="t-1", offset=0, text="x")))
            await comes_true("the log came", lambda: bench.logs)
            assert bench.rings == rings
            assert bench.view().setup == setup

    asyncio.run(story())


def test_the_report_stays_over_a_lost_connection_and_goes_with_the_incarnation() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await channel.send(setup_frame(RUNNING))
            await comes_true("it is there", lambda: bench.hub.views() and bench.view().setup is not None)
            await bench.connect()
            await bench.until_connected()
            assert bench.view().setup is not None
            await bench.connect(hello(boot="b-2"))
            await comes_true("it is another", lambda: bench.view().setup is None)

    asyncio.run(story())


def test_the_view_tells_where_the_agent_speaks_from() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            await bench.connect()
            await bench.until_connected()
            assert bench.view().address == "127.0.0.1"

    asyncio.run(story())


def test_hostile_lines_of_a_report_are_made_harmless_by_the_agent_and_refused_from_others() -> None:
    report = SetupReport(token="t", state=SetupState.FAILED, lines=("\033[31m" + "x" * 500,) * 40)
    assert all(line.isprintable() and len(line) <= 200 for line in setup_of(setup_frame(report)).lines)
    with pytest.raises(Malformed):
        setup_of({**setup_frame(report), "lines": ["\033[31m"]})


@pytest.mark.parametrize(
    "wrong", [{"token": "a/b"}, {"offset": -1}, {"offset": MAX_LOG}, {"text": "\033c"}, {"text": "x" * (CHUNK + 1)}]
)
def test_a_piece_of_log_that_no_agent_sends_is_refused(wrong: dict[str, object]) -> None:
    frame = setup_log_frame(LogChunk(token="t", offset=0, text="fine\n"))
    assert setup_log_of(frame).text == "fine\n"
    with pytest.raises(Malformed):
        setup_log_of({**frame, **wrong})


# The logs


def test_pieces_of_a_log_become_one_file_also_when_they_come_twice(tmp_path: Path) -> None:
    logs = SetupLogs(tmp_path / "logs", keep_days=1)
    for offset, text in ((0, "one\n"), (4, "two\n"), (0, "one\ntwo\nthree\n"), (8, "three\n")):
        logs.take(N1, LogChunk(token="t", offset=offset, text=text))
    logs.settle()
    assert (tmp_path / "logs/n1/t.log").read_text() == "one\ntwo\nthree\n"


def test_a_gap_in_a_log_is_told(tmp_path: Path) -> None:
    logs = SetupLogs(tmp_path, keep_days=1)
    logs.take(N1, LogChunk(token="t", offset=100, text="end\n"))
    logs.settle()
    text = logs.path(N1, "t").read_text()
    assert text.startswith("[a part of this log did not reach the head]")
    assert text[100:] == "end\n"


def test_old_logs_are_thrown_away(tmp_path: Path) -> None:
    now = [1e9]
    logs = SetupLogs(tmp_path, keep_days=2, now=lambda: now[0])
    logs.take(N1, LogChunk(token="old", offset=0, text="x"))
    logs.settle()
    now[0] = logs.path(N1, "old").stat().st_mtime + 3 * 86400
    logs.take(N1, LogChunk(token="new", offset=0, text="x"))
    logs.settle()
    assert not logs.path(N1, "old").exists()


def test_a_node_has_no_more_than_twenty_logs(tmp_path: Path) -> None:
    logs = SetupLogs(tmp_path, keep_days=30)
    for number in range(25):
        logs.take(N1, LogChunk(token=f"t{number}", offset=0, text="x"))
        logs.settle()
    assert len(list((tmp_path / "n1").iterdir())) == 20
    assert logs.path(N1, "t24").exists()


def test_a_folder_that_cannot_be_written_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    logs = SetupLogs(tmp_path / "logs", keep_days=1)
    logs.take(N1, LogChunk(token="t", offset=0, text="x"))
    logs.settle()
    assert (tmp_path / "logs").read_text() == "a file"
