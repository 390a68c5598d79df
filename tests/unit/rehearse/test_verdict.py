"""What is made of the runs of a rehearsal."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from steward.rehearse.advice import CHANGE
from steward.rehearse.own_job import JobLook
from steward.rehearse.rehearsal import RunEnding, RunSeen
from steward.rehearse.saves import SaveSeen
from steward.rehearse.signs import StepPlace
from steward.rehearse.verdict import ResumeFinding, Weight, can_be_resumed, judge

SCRIPT = "#!/bin/bash\n#SBATCH --open-mode=append\nsrun python train.py\n"


def lines(steps: Iterable[int], *, loss: float = 0.0, rate: float = 0.1) -> list[str]:
    return [f"step {step} loss {loss or 100 / step:.5f} lr {rate}" for step in steps]


def a_run(
    printed: Iterable[str],
    saved: Iterable[int] = (),
    ending: RunEnding = RunEnding.GOES_ON,
    state: str = "",
    torn: Iterable[str] = (),
    term_s: float | None = None,
    watched_s: float = 0.0,
) -> RunSeen:
    run = RunSeen(began=100.0, watched_s=watched_s, ending=ending, torn=[Path(each) for each in torn], term_s=term_s)
    run.signs.read("".join(f"{line}\n" for line in printed))
    run.first_sign = 101.0 if run.signs.first else None
    for step in saved:
        run.saves.append(SaveSeen(path=Path(f"/ckpt/step-{step}.pt"), began=102.0, ended=103.0))
        run.saved_at.append(StepPlace(0, step))
    if state:
        run.ended = JobLook(state=state, fields={"ExitCode": "1:0"})
    return run


def killed(*, printed: Iterable[str] = lines(range(1, 46)), torn: Iterable[str] = ()) -> RunSeen:
    return a_run(printed, (20, 40), RunEnding.KILLED, torn=torn)


def failed(*printed: str) -> RunSeen:
    return a_run(printed, ending=RunEnding.BY_ITSELF, state="FAILED")


def told(steps: Iterable[int] = range(41, 70), term_s: float = 1.0) -> RunSeen:
    return a_run(lines(steps), (60,), RunEnding.TOLD, term_s=term_s)


def names(found: list[ResumeFinding], *weights: Weight) -> list[str]:
    return [each.name for each in found if each.weight in weights]


def test_a_script_that_goes_on_from_its_save_each_time_can_be_resumed() -> None:
    found = judge([killed(), told(), a_run(lines(range(61, 63)))], SCRIPT, 30.0)
    assert names(found, *Weight) == ["resumes", "resumes", "ends"]
    assert can_be_resumed(found) is True


@pytest.mark.parametrize(
    ("runs", "name"),
    [
        ([a_run(["Traceback", "ValueError: no such column"], ending=RunEnding.BY_ITSELF, state="FAILED")], "fails"),
        ([a_run(lines(range(1, 90)))], "no_save"),
        ([killed(), a_run(lines(range(1, 4)))], "from_start"),
        ([killed(), a_run(lines(range(21, 24)))], "resumes"),
        ([killed(), a_run(lines(range(11, 14)))], "older_save"),
        ([killed(), a_run(lines(range(60, 64)))], "skips"),
        ([killed(printed=lines(range(20, 45, 20))), a_run(lines(range(60, 64, 20)))], "resumes"),
        ([killed(printed=["rank 0 begins at step 0"]), a_run(["rank 0 begins at step 40"])], "resumes"),
        ([killed(printed=["rank 0 begins at step 0"]), a_run(["rank 0 begins at step 0"])], "from_start"),
        (
            [
                killed(printed=["Last reported step: 1 (1 s ago, on n1)", "Last reported step: 20 (1 s ago, on n1)"]),
                a_run(["Last reported step: 41 (1 s ago, on n1)"]),
            ],
            "resumes",
        ),
        ([killed(), a_run(lines(range(41, 44), loss=70.0))], "loss_back"),
        ([killed(), a_run(lines(range(41, 44), rate=0.2))], "rate_jumps"),
        ([killed(), a_run(lines(range(41, 44), loss=2.9))], "other_numbers"),
        ([killed(), a_run(["loading"], watched_s=30.0)], "hangs"),
        ([killed(), a_run(["loading"], watched_s=1.5)], "not_yet"),
        ([killed(), failed("ValueError: shape")], "fails_again"),
        ([killed(), failed("EOFError: Ran out of input")], "broken_save"),
        ([killed(torn=["/ckpt/step-45.pt"]), failed("KeyError: 'model'")], "broken_save"),
        (
            [killed(), failed("RuntimeError: The server socket has failed to bind: address already in use")],
            "port_taken",
        ),
        ([killed(), failed("FileExistsError: [Errno 17] File exists: 'ckpt'")], "already_there"),
        ([killed(), failed("socket.gaierror: Name or service not known")], "old_address"),
        ([killed(), a_run((), ending=RunEnding.NEVER_BEGAN)], "not_started"),
        ([killed(printed=["hello"]), a_run(["hello"])], "no_steps"),
        ([killed(), told(), a_run(lines(range(41, 44)))], "resumes"),
        ([killed(), told(), a_run(lines(range(1, 4)))], "from_start"),
        ([killed(), told(term_s=31.0), a_run(lines(range(61, 64)))], "ignores_term"),
        ([killed(), a_run(lines(range(41, 50)))], "saves_once"),
    ],
)
def test_each_fault_of_a_script_has_its_name(runs: list[RunSeen], name: str) -> None:
    assert name in names(judge(runs, SCRIPT, 30.0), *Weight)


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([a_run((), ending=RunEnding.NEVER_BEGAN)], None),
        ([a_run(lines(range(1, 9)), ending=RunEnding.BY_ITSELF, state="COMPLETED")], None),
        ([killed(printed=["hello"]), a_run(["hello"])], None),
        ([killed(), a_run(lines(range(41, 44), loss=2.9), (60,))], True),
        ([killed(), told(term_s=31.0), a_run(lines(range(61, 64)))], True),
        ([killed(), a_run(lines(range(1, 4)))], False),
    ],
)
def test_what_cannot_be_told_is_neither_right_nor_wrong(runs: list[RunSeen], verdict: bool | None) -> None:
    assert can_be_resumed(judge(runs, SCRIPT, 30.0)) is verdict


def test_the_scripts_own_lines_may_forbid_it() -> None:
    found = judge([killed(), told(), a_run(lines(range(61, 63)))], "#!/bin/sh\n#SBATCH --no-requeue\n", 30.0)
    assert names(found, Weight.BAD, Weight.ADVICE) == ["no_requeue", "open_mode"]


def test_a_start_that_goes_on_from_a_checkpoint_of_another_day_is_compared_with_that() -> None:
    begun_late = a_run(lines(range(501, 546)), (520, 540), RunEnding.KILLED)
    assert names(judge([begun_late, a_run(lines(range(501, 504)))], SCRIPT, 30.0), Weight.BAD) == ["from_start"]
    assert names(judge([begun_late, a_run(lines(range(541, 544)))], SCRIPT, 30.0), Weight.BAD) == []


def test_each_finding_that_is_not_good_says_what_to_change() -> None:
    worst = [
        [killed(), a_run(lines(range(1, 4)))],
        [killed(), failed("x")],
        [a_run(lines(range(1, 90)))],
    ]
    for runs in worst:
        for each in judge(runs, "#SBATCH --no-requeue\n", 30.0):
            assert each.change == CHANGE[each.name]
            assert each.shown_by or each.name == "open_mode"
