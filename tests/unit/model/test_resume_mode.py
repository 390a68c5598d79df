"""The words of `--auto-resume=`: the shim's table of good and bad values holds for Python's reader too."""

from pathlib import Path

import pytest

from steward.model.resume_mode import USAGE, ResumeMode

SPANK = Path(__file__).parents[3] / "spank"
ROWS = [line.partition(" ") for line in (SPANK / "tests" / "modes.txt").read_text().split("\n")]
GOOD = [text for verdict, _, text in ROWS if verdict == "good"]
BAD = [text for verdict, _, text in ROWS if verdict == "bad"]


@pytest.mark.parametrize("text", GOOD)
def test_a_good_value_is_taken_as_it_is(text: str) -> None:
    assert ResumeMode.parse(text).text == text


@pytest.mark.parametrize("text", BAD)
def test_a_bad_value_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="--auto-resume") as refusal:
        ResumeMode.parse(text)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("text", ["1\n", "any:5\n", "1,checkpoint=/a\n", "1,max=3\n", "1\0"])
def test_a_value_with_a_second_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--auto-resume"):
        ResumeMode.parse(text)


def test_every_option_is_read() -> None:
    text = "any:5,max=10,stalls=3,age=60,backoff=0,codes=2:3,timeout=1,hang=600,stacks=USR2,checkpoint=/scratch/run1"
    assert ResumeMode.parse(text) == ResumeMode(
        text=text,
        on=True,
        without_evidence=5,
        max_resumes=10,
        stalls=3,
        age_s=60.0,
        backoff=False,
        codes=frozenset({2, 3}),
        timeout=True,
        hang=True,
        hang_s=600.0,
        stacks="USR2",
        checkpoint="/scratch/run1",
    )


def test_the_shim_and_python_tell_the_same_good_words() -> None:
    words = (SPANK / "mode.h").read_text().replace('" \\', '"').split("RESUME_USAGE")[1]
    told = "".join(words.split('"')[1:8:2])
    assert told == USAGE
