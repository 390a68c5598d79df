"""What the runner of a deep check tells its node's agent, and what the head hears of it."""

import asyncio
import math
from dataclasses import replace
from pathlib import Path

import pytest

from steward.adapters.wire.deep_messages import DeepLine, deep_frame, deep_of, measure_line, progress_line
from steward.adapters.wire.shimline import MAX_LINE, BadLine, parse_request
from steward.agent.reception import MAX_RUNS, DeepDesk
from steward.model.deep import MAX_MEASURES, DeepReport, Measure
from steward.model.health import Outcome
from steward.model.ids import BootId, NodeName
from tests.fakes.agent_parts import FakeHead
from tests.fakes.clock import FakeClock
from tests.fakes.hub_bench import a_hub
from tests.fakes.until import comes_true
from tests.fakes.wires import WHO

N1, N2 = NodeName("n1"), NodeName("n2")
SPEED = Measure(
    check="tcp.bandwidth", node=N1, partner=N2, outcome=Outcome.PASSED, value=941.5, unit="Mbit/s", seconds=2.0
)
FORGETS = Measure(
    check="memory.keep",
    node=N1,
    outcome=Outcome.FAILED,
    value=math.nan,
    unit="MiB",
    text="3 blocks = 0x55; 100 % \n\u00e9",
)


def desk(folder: Path, head: FakeHead, boot: str = "b-1") -> DeepDesk:
    return DeepDesk(
        node=N1,
        incarnation=replace(WHO, boot=BootId(boot)),
        clock=FakeClock(),
        head=head,
        trusted=frozenset({0, 64030}),
        path=folder / "deep.json",
    )


def line(raw: bytes) -> DeepLine:
    parsed = parse_request(raw)
    assert isinstance(parsed, DeepLine)
    return parsed


def say(to: DeepDesk, raw: bytes, peer: int = 0) -> bytes | None:
    return asyncio.run(to.serve(line(raw), peer))


def test_a_measure_comes_out_of_its_line_as_it_went_in() -> None:
    assert line(measure_line("r-1", N1, SPEED)).measure == SPEED


def test_text_of_any_kind_makes_one_printable_line() -> None:
    raw = measure_line("r-1", N1, replace(FORGETS, text=FORGETS.text * 50))
    assert len(raw) <= MAX_LINE
    told = line(raw).measure
    assert told is not None
    assert told.text.startswith("3 blocks = 0x55; 100 %  ?")
    assert math.isnan(told.value)


@pytest.mark.parametrize(
    "raw",
    [
        b"steward/1 deep run=../x here=n1 progress=a done=0\n",
        b"steward/1 deep run=r here=n1 check=tcp node=n2 outcome=failed seconds=0\n",
        b"steward/1 deep run=r here=n1 check=tcp node=n1 outcome=failed value=nan seconds=0\n",
        b"steward/1 deep run=r here=n1 check=tcp node=n1 outcome=dead seconds=0\n",
        b"steward/1 deep run=r here=n1 check=tcp node=n1 outcome=passed\n",
        b"steward/1 deep run=r here=n1 progress=%FF done=0\n",
        b"steward/1 deep run=r here=n1 progress=%0A done=0\n",
    ],
)
def test_a_line_that_is_not_of_this_protocol_is_refused(raw: bytes) -> None:
    with pytest.raises(BadLine):
        parse_request(raw)


def test_another_node_may_only_be_called_unmeasured(tmp_path: Path) -> None:
    absent = replace(SPEED, check="pair.presence", node=N2, partner=None, outcome=Outcome.UNKNOWN)
    to = desk(tmp_path, FakeHead())
    assert say(to, measure_line("r-1", N1, absent)) == b"steward/1 ok\n"
    with pytest.raises(BadLine):
        line(measure_line("r-1", N1, replace(SPEED, node=N2, partner=N1)))


def test_each_line_goes_to_the_head_with_all_that_was_told_before(tmp_path: Path) -> None:
    head = FakeHead()
    to = desk(tmp_path, head)
    say(to, measure_line("r-1", N1, SPEED))
    say(to, measure_line("r-1", N1, FORGETS), peer=64030)
    say(to, progress_line("r-1", N1, "pass 2", is_done=True))
    reports = [deep_of(frame, N1) for frame in head.told]
    assert [len(one.measures) for one in reports] == [1, 2, 2]
    assert (reports[-1].progress, reports[-1].is_done) == ("pass 2", True)


def test_a_user_is_hung_up_on_and_so_is_a_runner_of_another_node(tmp_path: Path) -> None:
    head = FakeHead()
    to = desk(tmp_path, head)
    assert say(to, measure_line("r-1", N1, SPEED), peer=1000) is None
    assert say(to, progress_line("r-1", N2, "here")) is None
    assert head.told == []


def test_what_was_told_while_the_head_was_away_is_among_the_greetings(tmp_path: Path) -> None:
    to = desk(tmp_path, FakeHead(away_since=1.0))
    say(to, measure_line("r-1", N1, SPEED))
    assert [deep_of(frame, N1).measures for frame in to.frames()] == [(SPEED,)]


def test_an_agent_that_starts_again_in_the_same_boot_still_knows_and_in_another_boot_does_not(tmp_path: Path) -> None:
    say(desk(tmp_path, FakeHead()), measure_line("r-1", N1, SPEED))
    assert [frame["run"] for frame in desk(tmp_path, FakeHead()).frames()] == ["r-1"]
    assert desk(tmp_path, FakeHead(), boot="b-2").frames() == ()


def test_a_few_runs_and_a_bounded_number_of_measures_are_kept(tmp_path: Path) -> None:
    to = desk(tmp_path, FakeHead())
    for run in range(MAX_RUNS + 2):
        say(to, progress_line(f"r-{run}", N1, "begins"))
    assert len(to.frames()) == MAX_RUNS
    say(to, measure_line("r-9", N1, FORGETS))
    for at in range(MAX_MEASURES + 5):
        say(to, measure_line("r-9", N1, replace(SPEED, partner=NodeName(f"p{at}"))))
    report = deep_of(to.frames()[-1], N1)
    assert len(report.measures) == MAX_MEASURES
    assert any(one.check == "memory.keep" for one in report.measures)


def test_the_head_shows_what_a_node_measured_and_rings_for_news_only() -> None:
    report = DeepReport(run="r-1", node=N1, measures=(SPEED,), progress="pass 1")

    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            await channel.send(deep_frame(report))
            await comes_true("it is shown", lambda: bench.view().deep)
            assert bench.view().deep[0].measures == (SPEED,)
            rings = bench.rings
            await channel.send(deep_frame(replace(report, progress="pass 2")))
            await comes_true("progress is shown", lambda: bench.view().deep[0].progress == "pass 2")
            assert bench.rings == rings
            await channel.send(deep_frame(replace(report, is_done=True)))
            await comes_true("its end is shown", lambda: bench.view().deep[0].is_done)
            assert bench.rings > rings

    asyncio.run(story())
