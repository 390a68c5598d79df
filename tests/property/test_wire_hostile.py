"""Nothing that a peer or a user sends makes a parser do anything but refuse it in its own words."""

import asyncio
import json
import math
from dataclasses import replace
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.wire.deep_messages import DeepLine, deep_frame, deep_of, measure_line
from steward.adapters.wire.frames import MAX_FRAME, Frame, pack, read_frame, unpack
from steward.adapters.wire.messages import finding_of, finding_record, report_frame, report_of
from steward.adapters.wire.shimline import (
    MAX_LINE,
    BadLine,
    EndedLine,
    ExitLine,
    LogLine,
    Request,
    answer_line,
    parse_request,
)
from steward.model.ask import Answer
from steward.model.deep import DeepReport, Measure
from steward.model.health import Advice, Finding, Outcome, Severity
from steward.model.ids import JobId, NodeName
from steward.ports import PortError

N1 = NodeName("n1")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
findings = st.builds(
    Finding,
    check=st.from_regex(r"[a-z0-9_.-]{1,40}", fullmatch=True),
    outcome=st.sampled_from(Outcome),
    severity=st.sampled_from(Severity),
    advice=st.sampled_from(Advice),
    text=st.text(max_size=2000),
    at=st.floats(min_value=0, max_value=1e12),
    event=st.booleans(),
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


async def _read_all(data: bytes) -> list[Frame]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    found = []
    while not reader.at_eof():
        found.append(await read_frame(reader))
    return found


@given(st.binary(max_size=400))
def test_any_bytes_are_frames_or_refused(data: bytes) -> None:
    try:
        asyncio.run(_read_all(data))
    except PortError:
        return


@given(st.lists(st.dictionaries(st.text(max_size=8), json_values, max_size=4), min_size=1, max_size=4))
def test_frames_come_out_as_they_went_in(bodies: list[dict[str, object]]) -> None:
    sent = [{**body, "t": "x"} for body in bodies]
    assert asyncio.run(_read_all(b"".join(map(pack, sent)))) == sent


@given(st.lists(findings, max_size=80))
def test_every_report_fits_a_frame_and_keeps_the_worst(found: list[Finding]) -> None:
    frame = report_frame(found, "check-1")
    body = pack(frame)[4:]
    assert len(body) <= MAX_FRAME
    report = report_of(unpack(body))
    assert report.checked == "check-1"
    fatal = sum(one.is_bad and one.severity is Severity.FATAL for one in found)
    assert sum(one.is_bad and one.severity is Severity.FATAL for one in report.findings) == min(fatal, 48)


@given(findings)
def test_a_findings_text_is_printable_on_the_other_side(finding: Finding) -> None:
    told = finding_of(json.loads(json.dumps(finding_record(finding))))
    assert told.text.isascii()
    assert told.text.isprintable()


words = st.sampled_from(
    ["steward/1", "ask", "opted", "job=1", "uid=0", "mode=1", "mode=any:2", "restart=0", "attempt=1"]
)
begins = st.sampled_from(["", *(f"steward/1 {verb} " for verb in ("ask", "opted", "deep"))])
deep = st.sampled_from(["run=r", "here=n1", "check=tcp", "value=1", "done=1", "node=n1"])
more = st.sampled_from(["kind=batch", "kind=step", "step=batch", "step=0", "status=256", "status=-1", "new=x", "=", ""])


@given(
    begins,
    st.lists(words | deep | more | st.text(max_size=6), max_size=12).map(" ".join),
    st.sampled_from(["\n", "", "\n\n"]),
)
def test_any_line_is_a_request_or_a_bad_line(begin: str, text: str, end: str) -> None:
    try:
        request = parse_request((begin + text + end).encode())
    except BadLine:
        return
    assert isinstance(request, Request)


files = st.lists(st.sampled_from(["8:0:9", "8:9", "-1:0:0", "9" * 20 + ":0:1", "8:0:" + "9" * 30]), max_size=3).map(
    ",".join
)
outs = st.text(max_size=60) | st.sampled_from(
    ["/a%00b", "/a%0ab", "%2f", "/%", "/%ff%fe", "a", "/home/u/%31.out", "/" + "x" * 900]
)
numbers = st.integers(-2, 2**33).map(str) | st.sampled_from(["", "0x1", "1e3", "\u0661", "9" * 5000, "+1", " 1", "1_0"])


@st.composite
def shim_lines(draw: st.DrawFn) -> bytes:
    """An `exit`, an `ended` or a `log` line of which each word may be wrong, absent, or there twice."""
    step = draw(st.sampled_from(["0", "batch", "../x", "", "a" * 33]) | st.text(max_size=5))
    words = {
        "job": draw(numbers),
        "step": step,
        "restart": draw(numbers),
        "task": draw(numbers),
        "status": draw(numbers),
    }
    words |= {"size": draw(numbers), "out": draw(outs), "log": draw(files)}
    keys = draw(st.lists(st.sampled_from(sorted(words)), max_size=8) | st.permutations(sorted(words)))
    verb = draw(st.sampled_from(["exit", "log", "ended"]))
    text = " ".join(("steward/1", verb, *(f"{key}={words[key]}" for key in keys)))
    return text.encode("utf-8", "surrogatepass") + b"\n"


@given(shim_lines())
def test_what_is_told_of_tasks_and_of_output_is_within_bounds_or_refused(line: bytes) -> None:
    try:
        request = parse_request(line)
    except BadLine:
        return
    match request:
        case ExitLine():
            assert 0 <= request.job < 2**32
            assert 0 <= request.status <= 0xFFFF
            assert 0 <= request.task < 2**32
            assert 0 <= request.restart <= 10**6
            assert "/" not in request.step
        case EndedLine():
            assert len(request.written) <= 2
            assert all(0 <= part.begin < 2**63 and 0 <= part.end < 2**63 for part in request.written)
        case LogLine():
            assert request.out.startswith("/")
            assert not {"\0", "\n"} & set(request.out)
            assert len(request.out) <= MAX_LINE
            assert 0 <= request.size < 2**63
        case _:
            raise AssertionError(request)


@given(
    st.integers(1, 2**32 - 1),
    st.integers(0, 10**6),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\n"), max_size=60),
)
def test_the_path_that_a_shim_encodes_comes_out_as_it_was(job: int, restart: int, path: str) -> None:
    encoded = quote(f"/{path}".encode(), safe="/")
    if len(encoded) > MAX_LINE - 100:
        return
    request = parse_request(f"steward/1 log job={job} restart={restart} size=0 out={encoded}\n".encode())
    assert request == LogLine(job=JobId(job), restart=restart, size=0, out=f"/{path}")


@given(st.sampled_from(Answer), st.frozensets(st.from_regex(r"[a-z0-9]{1,60}", fullmatch=True), max_size=64))
def test_every_answer_is_one_short_line(answer: Answer, names: frozenset[str]) -> None:
    line = answer_line(answer, frozenset(map(NodeName, names)))
    assert len(line) <= MAX_LINE
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")


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
