"""A list of node names that we write is read as these names by every Slurm."""

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steward.adapters.slurm.words import expand, node_list, node_lists
from steward.model.ids import NodeName
from steward.model.node_names import fold, unfold
from steward.ports import Permanent

_TERM = re.compile(r"(?P<prefix>[^\[\],]+)(?:\[(?P<ranges>[0-9,-]+)\])?(?:,|$)")
LONGEST = 128 * 1024 - len("nodename=") - 1
"""MAX_ARG_STRLEN of Linux."""

numbers = st.integers(0, 120).map(str) | st.integers(0, 120).map(lambda n: f"{n:03}") | st.text("0189", max_size=12)
prefixes = st.sampled_from(("n", "gpu-", "ip-10-0-", "ip-10-0-1-", "7", "rack1-n", "x.y", "_"))
suffixes = st.sampled_from(("", "", "", "-ib", ".rack2", "a"))
names = st.builds(lambda *parts: NodeName("".join(parts)), prefixes, numbers, suffixes)


def as_slurm_22_05(text: str) -> Iterator[str]:
    """hostlist.c: a bracket stands at the end of a term, and the width of a range is that of its first number."""
    at = 0
    while at < len(text):
        term = _TERM.match(text, at)
        assert term is not None, f"Slurm 22.05 does not read {text[at:]!r}"
        at = term.end()
        for one in term["ranges"].split(",") if term["ranges"] else [""]:
            first, _, last = one.partition("-")
            for number in range(int(first), int(last or first) + 1) if first else [None]:
                yield term["prefix"] + ("" if number is None else str(number).zfill(len(first)))


@given(st.sets(names, max_size=30))
@example({NodeName("ip-10-0-1-5"), NodeName("ip-10-0-2-5")})
@example({NodeName("gpu1-ib"), NodeName("gpu2-ib")})
@example({NodeName(name) for name in ("n8", "n9", "n10", "n08", "n09", "n010", "n0", "n00")})
def test_what_is_folded_is_read_as_the_same_names_by_old_slurms_and_by_us(many: set[NodeName]) -> None:
    text = node_list(many)

    assert sorted(as_slurm_22_05(text)) == sorted(many)
    assert expand(text) == many
    assert re.search(r"\](?!,|$)", text) is None


@pytest.mark.parametrize(
    ("many", "text"),
    [
        (["n3", "n1", "n2", "n7", "n9", "n10"], "n[1-3,7,9-10]"),
        (["n08", "n09", "n10"], "n10,n[08-09]"),
        (["ip-10-0-1-5", "ip-10-0-2-5", "ip-10-0-2-6"], "ip-10-0-1-5,ip-10-0-2-[5-6]"),
        (["gpu1-ib", "gpu2-ib"], "gpu1-ib,gpu2-ib"),
        (["17", "18"], "17,18"),
        ([], ""),
    ],
)
def test_only_digits_at_the_end_of_a_name_are_folded(many: list[str], text: str) -> None:
    assert fold(many) == text


@pytest.mark.parametrize("shape", ["gpu{}-ib.cluster.example.com", "n{}", "ip-10-0-{}-77"])
def test_ten_thousand_names_of_any_shape_are_lists_of_one_argument_each(shape: str) -> None:
    many = {NodeName(shape.format(number)) for number in range(10_000)}
    lists = node_lists(many)

    assert frozenset().union(*map(expand, lists)) == many
    assert all(len(text) <= LONGEST for text in lists)
    assert len(lists) <= 4


def test_ten_thousand_names_that_cannot_be_folded_fit_into_one_list() -> None:
    many = {NodeName(f"gpu{number}-ib") for number in range(10_000)}

    assert expand(node_list(many)) == many


def test_more_names_than_one_argument_can_have_are_no_list() -> None:
    many = [NodeName(f"gpu{number}-ib.cluster.example.com") for number in range(10_000)]

    with pytest.raises(Permanent, match="10000 nodes is too long"):
        node_list(many)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("b1[9-11]", "b19 b110 b111"),
        ("gpu0[8-11]", "gpu08 gpu09 gpu010 gpu011"),
        ("n[08-11]", "n08 n09 n10 n11"),
        ("n[8-011]", "n8 n9 n10 n11"),
        ("a[1-2][3-4]", "a13 a14 a23 a24"),
        ("n[1-2]x[3-4]", "n1x3 n1x4 n2x3 n2x4"),
        ("7[1-2]", "71 72"),
        ("n1,", "n1"),
        (",n1,,n2 n3\tn4\nn5", "n1 n2 n3 n4 n5"),
        ("n[1-]", "n1"),
        ("n[1-2],n[2-3]", "n1 n2 n3"),
    ],
)
def test_a_list_is_read_as_slurm_reads_it(text: str, names: str) -> None:
    assert list(unfold(text)) == names.split()


@pytest.mark.parametrize(
    "text", ["n[3-1]", "n[9-08]", "n[a-b]", "n[]", "n[2,]", "n[1-3:2]", "n[1,-2]", "n[1-2]]", "n["]
)
def test_what_slurm_refuses_is_no_list(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        unfold(text)


@given(st.text("n01,-[] \n", max_size=20) | st.text(max_size=20))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert all(unfold(text))
