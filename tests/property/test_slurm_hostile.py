"""Whatever Slurm's commands print is read, or refused in one line: a broken answer is never a smaller cluster."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.adapters.slurm import partitions, records, reservations, versions
from steward.adapters.slurm.include import parse_partitions
from steward.adapters.slurm.words import expand, node_list
from steward.model.ids import NodeName
from steward.ports import PortError, Retryable

RECORDED = sorted((Path(__file__).parent.parent / "recordings").glob("*/nodes.stdout"))
NASTY = (
    *(
        "",
        "=",
        "n1=n2",
        "n1\nNodeName=evil State=IDLE",
        "\x1b[2J\x1b]0;x\x07",
        "\0",
        "\r",
        "\ud800",
        "\u202e",
        "a" * 9000,
    ),
    *(
        "n[1-3]",
        "n[1-999999999999]",
        "n[1-60000]x[1-60000]",
        "n[",
        "n[3-1]",
        "@all",
        "n1!n2",
        "n1&n2",
        "n1^n2",
        "(null)",
    ),
    *(
        "IDLE",
        "DOWN",
        "DRAIN",
        "NO_SUCH_FLAG",
        "IDLE*",
        "RUNNING",
        "2026-01-01T00:00:00",
        "9999-99-99",
        "Unknown",
        "-1",
    ),
)
nasty = st.sampled_from(NASTY) | st.text(max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | nasty,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("set", "number", "infinite", "return_code", "signal", "id")), inner)
    ),
    max_leaves=5,
)


def one_line(error: Exception) -> str:
    text = str(error)
    assert text.isprintable(), text
    assert len(text) < 2000
    return text


def read_or_refused(read: Callable[[str], object], text: str) -> Any:
    """What it read; None when it refused in its own words."""
    try:
        return read(text)
    except PortError as error:
        one_line(error)
        return None


def recorded(kind: str, release: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED[release].parent / f"{kind}.stdout").read_text(errors="replace"))
    return found


@pytest.mark.parametrize("release", range(len(RECORDED)), ids=[path.parent.name for path in RECORDED])
@pytest.mark.parametrize("kind", ["nodes", "jobs"])
@settings(max_examples=150, database=None)
@given(data=st.data())
def test_a_record_with_any_value_anywhere_is_read_or_refused(kind: str, release: int, data: st.DataObject) -> None:
    answer = recorded(kind, release)
    record = data.draw(st.sampled_from(answer[kind]))
    for key in data.draw(st.lists(st.sampled_from(sorted(record)), min_size=1, max_size=4)):
        record[key] = data.draw(values)
    read: Any = records.nodes if kind == "nodes" else records.jobs
    found = read_or_refused(read, json.dumps({**answer, kind: [record]}))
    if found:
        (name,) = found
        told = record["name"] if kind == "nodes" else record["job_id"]
        told = told["number"] if isinstance(told, dict) else told
        assert str(name) == str(told).encode("utf-8", "replace").decode() or int(told) == name
        json.dumps(str(found), ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("kind", ["nodes", "jobs"])
@settings(max_examples=60, database=None)
@given(data=st.data())
def test_an_answer_that_is_cut_off_is_never_a_smaller_one(kind: str, data: st.DataObject) -> None:
    text = json.dumps(recorded(kind, 0))
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(Retryable) as refused:
        (records.nodes if kind == "nodes" else records.jobs)(cut)
    one_line(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"nodes":' + "[" * 990 + "]" * 990 + "}",
        '{"nodes": [], "errors": [], "last_update": Infinity}',
        '{"nodes": [1e999]}',
        '{"nodes": {"n1": {}}}',
        '{"nodes": [], "nodes": 7}',
        "\x1b[31m" + "\0" * 5000,
        "9" * 5000,
    ],
    ids=range(8),
)
def test_nonsense_is_told_in_one_line(text: str) -> None:
    with pytest.raises(Retryable) as refused:
        records.nodes(text)
    one_line(refused.value)


@pytest.mark.parametrize("wrong", [True, 7.5, float("inf"), {"set": True, "number": 7.5}])
def test_a_job_id_that_is_no_whole_number_is_no_job(wrong: object) -> None:
    answer = recorded("jobs", 0)
    answer["jobs"] = [{**answer["jobs"][0], "job_id": wrong}]
    with pytest.raises(Retryable):
        records.jobs(json.dumps(answer))


lines = st.lists(
    st.builds(
        "=".join,
        st.tuples(
            st.sampled_from(
                (
                    "ReservationName",
                    "PartitionName",
                    "Nodes",
                    "State",
                    "StartTime",
                    "EndTime",
                    "NodeSet",
                    "Feature",
                    "MaxTime",
                )
            )
            | nasty,
            nasty,
        ),
    ),
    max_size=9,
).map(" ".join)


@settings(max_examples=300)
@given(st.lists(lines | nasty, max_size=4).map("\n".join))
def test_any_text_of_scontrol_is_read_or_refused(text: str) -> None:
    for read in (
        reservations.reservations,
        lambda text: partitions.partitions(text, 1.0),
        partitions.booted,
        parse_partitions,
        versions.parse,
        expand,
    ):
        read_or_refused(read, text)


def test_a_comment_does_not_change_what_a_reservation_is() -> None:
    line = (
        "ReservationName=maint StartTime=2026-01-01T00:00:00 EndTime=2026-01-02T00:00:00 Duration=1-00:00:00 "
        "Nodes=n1 NodeCnt=1 Comment=see ReservationName=steward-x Nodes=n[1-9] EndTime=2020-01-01T00:00:00"
    )
    (found,) = reservations.reservations(line).values()
    assert (found.name, found.nodes) == ("maint", frozenset({NodeName("n1")}))


@pytest.mark.parametrize("text", ["n[1-999999999999]", "n[1-60000]x[1-60000]", "n1,m[0-70000]"])
def test_a_node_list_that_no_cluster_has_is_refused_before_it_takes_our_memory(text: str) -> None:
    with pytest.raises(Retryable, match="more than"):
        expand(text)


def test_a_name_with_numbers_and_dashes_is_no_range() -> None:
    assert expand("ip-10-99999999,ip-10-[1-2]") == {"ip-10-99999999", "ip-10-1", "ip-10-2"}


@settings(max_examples=200)
@given(st.lists(nasty, min_size=1, max_size=4))
def test_no_name_becomes_another_argument_or_another_node(names: list[str]) -> None:
    """Whatever name gets into a command comes out of it as itself."""
    try:
        word = node_list(map(NodeName, names))
    except PortError as error:
        one_line(error)
        return
    assert expand(word) == frozenset(names)
    assert not set(word) & set(" =\n\"'\\")
