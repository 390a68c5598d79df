"""The shim's reader of `--auto-resume=` and Python's take and refuse the same values."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.adapters.process import run
from steward.model.resume_mode import ResumeMode
from tests.fakes.until import FACT_S

SPANK = Path(__file__).parents[2] / "spank"

KEYS = st.sampled_from(
    ["max", "stalls", "age", "backoff", "codes", "timeout", "hang", "stacks", "checkpoint", "MAX", ""]
)
NUMBERS = st.integers(-2, 100_000).map(str) | st.sampled_from(
    ["0", "1", "10", "255", "256", "1000", "1001", "86400", "07"]
)
CODES = st.lists(NUMBERS, max_size=40).map(":".join)
WORDS = st.sampled_from(["USR1", "URG", "KILL", "/a", "/a/b=c:d", "", "/" + "x" * 254, "/" + "x" * 255, "yes"])
LOOSE = st.text(alphabet="01any:=,/maxcodes \té", max_size=12)
VALUES = NUMBERS | CODES | WORDS | LOOSE
OPTIONS = st.tuples(KEYS, st.sampled_from(["=", "=", "=", "==", ""]), VALUES).map("".join) | LOOSE
MODES = st.sampled_from(["0", "1", "any:1", "any:1000"]) | st.tuples(st.just("any:"), NUMBERS).map("".join) | LOOSE
TEXTS = st.tuples(MODES, st.lists(OPTIONS, max_size=5)).map(lambda parts: ",".join((parts[0], *parts[1])))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shim's own reader, as a program."""
    program = tmp_path_factory.mktemp("shim") / "mode_reader"
    sources = [str(SPANK / "tests" / "mode_reader.c"), str(SPANK / "mode.c"), str(SPANK / "piece.c")]
    run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-o", str(program), *sources], timeout_s=60.0)
    return program


def pythons(text: str) -> str:
    """As the program says it, without the word that is wrong."""
    try:
        mode = ResumeMode.parse(text)
    except ValueError:
        return "bad"
    return f"{'any' if mode.without_evidence else int(mode.on)} {text}"


@settings(max_examples=60)
@given(texts=st.lists(TEXTS, min_size=20, max_size=60))
def test_both_readers_agree(reader: Path, texts: list[str]) -> None:
    given_lines = "".join(f"{text}\n" for text in texts).encode()
    done = subprocess.run([reader], input=given_lines, capture_output=True, timeout=FACT_S, check=True)
    shims = [line if not line.startswith("bad ") else "bad" for line in done.stdout.decode().splitlines()]
    assert shims == [pythons(text) for text in texts]
