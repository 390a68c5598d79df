"""Whatever Slurm's commands print is read, or refused in one line: a broken answer is never a smaller cluster."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.adapters.slurm import partitions, reservations, versions
from steward.adapters.slurm.include import parse_partitions
from steward.adapters.slurm.words import expand, node_list
from steward.model.ids import NodeName
from steward.ports import PortError, Retryable

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
        partitions.slurmctld_started,
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
