"""Nothing that a runner or an agent says of a deep check does anything but be understood or refused."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.wire.deep_messages import DeepLine, deep_frame, deep_of, measure_line
from steward.adapters.wire.frames import MAX_FRAME, Malformed, pack, unpack
from steward.adapters.wire.shimline import MAX_LINE, BadLine, parse_request
from steward.model.deep import DeepReport, Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName

N1 = NodeName("n1")
values: st.SearchStrategy[object] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70) | st.just([{}]) | st.just({})
)
record = st.dictionaries(
    st.sampled_from(["check", "node", "outcome", "value", "unit", "text", "partner", "seconds"]),
    values | st.sampled_from(["n1", "n2", "tcp.bandwidth", "passed", "failed", "unknown", 1.5]),
)
frames = st.dictionaries(
    st.sampled_from(["run", "measures", "progress", "done", "at"]),
    values | st.lists(record | values, max_size=3) | st.sampled_from(["r-1", True, 5.0]),
)
measures = st.builds(
    Measure,
    check=st.from_regex(r"[a-z][a-z0-9_.]{0,39}", fullmatch=True),
    node=st.just(N1),
    partner=st.none() | st.from_regex(r"[A-Za-z0-9]{1,64}", fullmatch=True).map(NodeName),
    outcome=st.sampled_from(Outcome),
    value=st.floats(min_value=-1e15, max_value=1e15) | st.just(math.nan) | st.just(math.inf),
    unit=st.text(max_size=40),
    text=st.text(max_size=800),
    seconds=st.floats(min_value=0, max_value=1e6),
)


@given(frames)
def test_any_frame_is_a_report_or_malformed(frame: dict[str, object]) -> None:
    try:
        report = deep_of({"t": "deep", **frame}, N1)
    except Malformed:
        return
    assert all(one.node == N1 or one.outcome is Outcome.UNKNOWN for one in report.measures)
    assert all(one.text.isascii() for one in report.measures)


@given(st.lists(measures, max_size=4), st.integers(min_value=1, max_value=100), st.text(max_size=300))
def test_every_report_fits_a_frame_and_is_understood(some: list[Measure], times: int, progress: str) -> None:
    report = DeepReport(run="r-1", node=N1, measures=tuple(some) * times, progress=progress)
    body = pack(deep_frame(report))[4:]
    assert len(body) <= MAX_FRAME
    told = deep_of(unpack(body), N1)
    failed = sum(one.outcome is Outcome.FAILED for one in report.measures)
    assert sum(one.outcome is Outcome.FAILED for one in told.measures) >= min(failed, 1)


@given(measures)
def test_every_measure_is_one_line_and_comes_out_alike(measure: Measure) -> None:
    raw = measure_line("r-1", N1, measure)
    assert len(raw) <= MAX_LINE
    assert raw.count(b"\n") == 1
    line = parse_request(raw)
    assert isinstance(line, DeepLine)
    assert line.measure is not None
    told = replace(line.measure, text="", unit="", value=0.0)
    assert told == replace(measure, text="", unit="", value=0.0)


@given(
    st.lists(st.sampled_from(["run=r", "here=n1", "check=tcp", "value=1", "done=1", "node=n1"]) | st.text(max_size=8))
)
def test_any_deep_line_is_understood_or_a_bad_line(words: list[str]) -> None:
    try:
        parse_request(f"steward/1 deep {' '.join(words)}\n".encode())
    except BadLine:
        return
