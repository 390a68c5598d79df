"""What `--elastic` says, and how replica jobs are known."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.model.elastic import ElasticSpec, replica_comment, replica_of
from steward.model.elastic_spec import MAX_SIZES, USAGE, ElasticWords
from steward.model.ids import JobId


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4", (2, 3, 4)),
        ("8:2", (2, 4, 6, 8)),
        ("7:2", (2, 4, 6)),
        ("4,8", (2, 4, 8)),
        ("4,grace=30", (2, 3, 4)),
        ("4,8,grace=30", (2, 4, 8)),
        ("8,batch=24,uneven=0", (2, 3, 4, 6, 8)),
        ("8:2,batch=24", (2, 4, 6, 8)),
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
        ("3:2", "grow beyond its own 2 nodes"),
        ("2", "grow beyond its own 2 nodes"),
        ("1,4", "from the job's own 2 nodes"),
        ("8,wait=3", "'wait=3' is not known: use MAX, MAX:STEP or A,B,C"),
        ("8,grace=0", "'grace=0' is out of range"),
        ("8,grace=3,grace=4", "is given twice"),
        ("8,batch=7", "fewer samples in a batch than nodes"),
        ("2,6,batch=8,uneven=0", "does not share its batch out evenly"),
        ("4096", "name a step"),
        ("8," + "4," * 100 + "8", "longer than 200 characters"),
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


SPANK = Path(__file__).parents[3] / "spank"
ROWS = [line.partition(" ") for line in (SPANK / "tests" / "elastic.txt").read_text().split("\n")]


@pytest.mark.parametrize("text", [text for verdict, _, text in ROWS if verdict == "good"])
def test_the_shims_good_values_are_good(text: str) -> None:
    assert ElasticWords.parse(text).sizes


@pytest.mark.parametrize("text", [text for verdict, _, text in ROWS if verdict == "bad"])
def test_the_shims_bad_values_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="--elastic") as refusal:
        ElasticWords.parse(text)
    assert str(refusal.value).isprintable()


def test_the_shim_and_python_name_the_same_good_words() -> None:
    words = (SPANK / "elastic_spec.h").read_text().split("ELASTIC_USAGE")[1]
    assert "".join(words.split('"')[1:4:2]) == USAGE
