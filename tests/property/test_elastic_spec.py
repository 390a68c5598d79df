"""The shim's reader of `--elastic=` and Python's take and refuse the same values, for the same reason."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.adapters.process import run
from steward.model.elastic_spec import BadSpec, ElasticWords
from tests.fakes.until import FACT_S

SPANK = Path(__file__).parents[2] / "spank"

NUMBERS = st.integers(-2, 12).map(str) | st.sampled_from(["0", "07", "64", "4096", "4097", "86400", "86401", "999999"])
KEYS = st.sampled_from(["grace", "settle", "faulty", "snooze", "backoff", "batch", "uneven", "GRACE", ""])
LOOSE = st.text(alphabet="0128:=,/grace \té", max_size=10)
SIZES = NUMBERS | st.tuples(NUMBERS, st.just(":"), NUMBERS).map("".join) | LOOSE
OPTIONS = st.tuples(KEYS, st.sampled_from(["=", "=", "=", "==", ""]), NUMBERS | LOOSE).map("".join)
RISING = st.sets(st.integers(1, 16), min_size=1, max_size=5).map(lambda sizes: [str(size) for size in sorted(sizes)])
TEXTS = st.tuples(RISING | st.lists(SIZES, max_size=3), st.lists(OPTIONS | SIZES, max_size=4)).map(
    lambda parts: ",".join([*parts[0], *parts[1]])
)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shim's own reader, as a program."""
    program = tmp_path_factory.mktemp("shim") / "elastic_reader"
    sources = [str(SPANK / "tests" / "elastic_reader.c"), str(SPANK / "elastic_spec.c"), str(SPANK / "piece.c")]
    run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-o", str(program), *sources], timeout_s=60.0)
    return program


def pythons(text: str) -> str:
    """As the program says it."""
    try:
        words = ElasticWords.parse(text)
    except BadSpec as refusal:
        return f"bad {refusal.why}"
    return f"good {words.sizes[-1]} {words.step}"


@settings(max_examples=60)
@given(texts=st.lists(TEXTS, min_size=20, max_size=60))
def test_both_readers_agree(reader: Path, texts: list[str]) -> None:
    given_lines = "".join(f"{text}\n" for text in texts).encode()
    done = subprocess.run([reader], input=given_lines, capture_output=True, timeout=FACT_S, check=True)
    assert done.stdout.decode().splitlines() == [pythons(text) for text in texts]
