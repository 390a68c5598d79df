"""The process that asks Slurm's library is believed only in its own words, and costs nobody more than a moment."""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from steward.adapters.slurm.fits import FitAsker, fit_of
from steward.model.fit import UNKNOWN, Fit, FitState, Question
from steward.model.ids import JobId, NodeName

N1, N2 = NodeName("n1"), NodeName("n2")
Q = Question(job=JobId(7), nodes=2, without=frozenset({N1, N2}), reservation="steward-keep-7")


def program(tmp_path: Path, body: str) -> Sequence[str]:
    """Answers each line by `body`, which sees `line`; `count` says how often it was started."""
    path = tmp_path / "reader.py"
    head = f"import sys, time\nopen({str(tmp_path / 'starts')!r}, 'a').write('x')\n"
    path.write_text(f"{head}for line in sys.stdin:\n    {body}\n    sys.stdout.flush()\n")
    return (sys.executable, str(path))


def starts(tmp_path: Path) -> int:
    path = tmp_path / "starts"
    return len(path.read_text()) if path.exists() else 0


def test_it_is_asked_in_one_line(tmp_path: Path) -> None:
    body = f"open({str(tmp_path / 'asked')!r}, 'a').write(line); print('fits later 60 features n[1-2]')"
    with closing(FitAsker(argv=program(tmp_path, body), clock=lambda: 5.0)) as asker:
        found = asker.ask(Q)
        assert found == Fit(state=FitState.LATER, at=5.0, in_s=60.0, nodes=frozenset({N1, N2}), missing="features")
        assert asker.ask(Question(job=JobId(8))) == found
    assert (tmp_path / "asked").read_text() == "fits 7 2 steward-keep-7 n[1-2]\nfits 8 0 - -\n"
    assert starts(tmp_path) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "fits now 0 -",
        "fits soon 0 - -",
        "fits now -1 - -",
        "fits now 0 magic n1",
        "fits now 0 - n1 n2",
        "fits now 0 - n[1-99999999]",
        "fits now 0 - n1;x",
        "fits now " + "9" * 30 + " - -",
        "fits now 0 - " + "n" * 70_000,
    ],
)
def test_an_answer_of_another_form_is_none_and_the_process_is_not_asked_again_for_a_while(
    answer: str, tmp_path: Path
) -> None:
    now = 100.0
    with closing(FitAsker(argv=program(tmp_path, f"print({answer!r})"), monotonic=lambda: now)) as asker:
        assert asker.ask(Q) == UNKNOWN == asker.ask(Q)
        assert starts(tmp_path) == 1
        now += 6.0
        assert asker.ask(Q) == UNKNOWN
        assert starts(tmp_path) == 2


def test_a_question_that_names_a_bad_node_or_is_not_taken_costs_itself_alone(tmp_path: Path) -> None:
    body = "print('no' if line.startswith('fits 9 ') else 'fits now 0 - n1')"
    with closing(FitAsker(argv=program(tmp_path, body))) as asker:
        assert asker.ask(Question(job=JobId(7), without=frozenset({NodeName("a b")}))) == UNKNOWN
        assert asker.ask(Question(job=JobId(9))) == UNKNOWN
        assert asker.ask(Q).state is FitState.NOW
    assert starts(tmp_path) == 1


@pytest.mark.parametrize("body", ["time.sleep(60)", "sys.exit(3)", "sys.stdout.write('fits now')", "pass"])
def test_a_process_that_hangs_or_dies_costs_a_moment(body: str, tmp_path: Path) -> None:
    with closing(FitAsker(argv=program(tmp_path, body), patience_s=0.3)) as asker:
        assert asker.ask(Q) == UNKNOWN


def test_a_program_that_cannot_run_is_no_answer(tmp_path: Path) -> None:
    assert FitAsker(argv=(str(tmp_path / "none"),)).ask(Q) == UNKNOWN


def test_unknown_words_of_slurm_are_no_reservation(tmp_path: Path) -> None:
    with closing(FitAsker(argv=program(tmp_path, "print('fits now 0 - n1')"))) as asker:
        assert asker.ask(Question(job=JobId(7), reservation="a b")) == UNKNOWN
    assert fit_of("fits unknown 0 - -\n", 1.0) == Fit(state=FitState.UNKNOWN, at=1.0)
