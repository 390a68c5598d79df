"""What `--elastic` says, and how replica jobs are known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.model.elastic import MAX_SIZES, ElasticSpec, replica_comment, replica_of
from steward.model.ids import JobId


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4", (2, 3, 4)),
        ("8:2", (2, 4, 6, 8)),
        ("7:2", (2, 4, 6)),
        ("4,8", (2, 4, 8)),
        ("8,4,2", (2, 4, 8)),
        ("4,grace=30", (2, 3, 4)),
        ("grace=30,4,8", (2, 4, 8)),
    ],
)
def test_sizes_begin_with_the_jobs_own(text: str, sizes: tuple[int, ...]) -> None:
    assert ElasticSpec.parse(text, 2).sizes == sizes


def test_options_are_seconds() -> None:
    spec = ElasticSpec.parse("8,grace=30,settle=1,faulty=2,snooze=3,backoff=4", 2)
    assert (spec.grace_s, spec.settle_s, spec.faulty_s, spec.snooze_s, spec.backoff_s) == (30, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "sizes in nodes"),
        ("grace=30", "sizes from"),
        ("2", "grow beyond its own 2 nodes"),
        ("1", "grow beyond"),
        ("1,4", "from the job's own 2 nodes"),
        ("8:0", "sizes in nodes"),
        ("8:7", "grow beyond"),
        ("4:1,8", "sizes in nodes"),
        ("a", "sizes in nodes"),
        ("-4", "sizes in nodes"),
        ("\u0664", "sizes in nodes"),
        ("8,wait=3", "grace=, settle=, faulty="),
        ("8,grace=0", "from 1 to"),
        ("8,grace=1.5", "whole seconds"),
        ("8,grace=3,grace=4", "twice"),
        ("5000", "at most 4096 nodes"),
        ("4096", "name a step"),
        ("8," + "4," * 40 + "8", "at most 64 characters"),
    ],
)
def test_a_bad_word_is_refused_with_the_right_ones(text: str, word: str) -> None:
    with pytest.raises(ValueError, match="--elastic") as error:
        ElasticSpec.parse(text, 2)
    assert word in str(error.value)
    assert str(error.value).isprintable()


@given(text=st.text(max_size=80), base=st.integers(1, 100))
def test_any_text_is_understood_or_refused(text: str, base: int) -> None:
    try:
        spec = ElasticSpec.parse(text, base)
    except ValueError:
        return
    assert spec.base == base
    assert len(spec.sizes) in range(2, MAX_SIZES + 1)
    assert list(spec.sizes) == sorted(set(spec.sizes))


@given(most=st.integers(3, 40), nodes=st.integers(0, 60))
def test_the_size_that_fits_is_the_largest_that_may_be(most: int, nodes: int) -> None:
    spec = ElasticSpec.parse(f"{most}", 2)
    fits = spec.fitting(nodes)
    assert fits == (0 if nodes < 2 else min(nodes, most))


def test_a_replica_is_known_by_its_comment() -> None:
    assert replica_of(replica_comment(JobId(7), "r1")) == (7, "r1")
    for other in ("", "steward-elastic:7", "steward-elastic:0:a", "x steward-elastic:7:r1", "steward-elastic:7:R 1"):
        assert replica_of(other) is None
