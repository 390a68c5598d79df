"""What a training script tells of itself: little, whole, and never at its own cost."""

import json
from pathlib import Path

import pytest

from tests.fakes.training import printed_by


def run(body: str, **env: str) -> str:
    return printed_by(f"from steward import job\n{body}", ("pydantic", "click", "requests"), **env)


def test_outside_steward_every_call_does_nothing(tmp_path: Path) -> None:
    calls = "job.progress(1); job.checkpoint_saved('/c', 1); print(job.allow_stacks(), job.resume_info().is_resumed)"
    assert run(calls) == "False False\n"


def test_a_step_and_a_checkpoint_are_one_json_line(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    run("job.progress(10); job.checkpoint_saved('/ckpt/../ckpt/step-10', 10)", STEWARD_PROGRESS_FILE=str(file))
    assert json.loads(file.read_text()) == {
        "step": 10,
        "first": 10,
        "checkpoint": "/ckpt/step-10",
        "checkpoint_step": 10,
    }


def test_the_first_step_stays_told_and_is_not_known_where_a_checkpoint_came_before_it(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    run("job.progress(10); job.checkpoint_saved('/ckpt/step-12', 12)", STEWARD_PROGRESS_FILE=str(file))
    assert json.loads(file.read_text())["first"] == 10
    run("job.checkpoint_saved('/ckpt/step-12', 12)", STEWARD_PROGRESS_FILE=str(file))
    assert json.loads(file.read_text())["first"] is None
    assert [each.name for each in tmp_path.iterdir()] == ["progress"]


def test_fast_steps_are_not_told_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    run("for step in range(100000): job.progress(step)", STEWARD_PROGRESS_FILE=str(file))
    assert json.loads(file.read_text())["step"] < 99999


def test_a_checkpoint_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    run("for step in range(50): job.checkpoint_saved('/c', step)", STEWARD_PROGRESS_FILE=str(file))
    assert json.loads(file.read_text())["checkpoint_step"] == 49


@pytest.mark.parametrize("step", ["'no number'", "None", "float('nan')", "[1]"])
def test_nonsense_costs_the_training_nothing(tmp_path: Path, step: str) -> None:
    run(f"job.progress({step}); job.checkpoint_saved({step}, {step})", STEWARD_PROGRESS_FILE=str(tmp_path / "progress"))
    assert not (tmp_path / "progress").exists()


def test_a_folder_that_is_gone_costs_the_training_nothing(tmp_path: Path) -> None:
    run("job.progress(1)", STEWARD_PROGRESS_FILE=str(tmp_path / "gone" / "progress"))


def test_a_resumed_run_knows_its_past() -> None:
    told = run(
        "print(job.resume_info())",
        STEWARD_RESUME_COUNT="2",
        STEWARD_RESUME_REASON="n3 fell silent",
        STEWARD_CULPRITS="n3",
        STEWARD_EXCLUDED_NODES="n3,rack[1,4-5]",
        STEWARD_LAST_CHECKPOINT="/ckpt/step-100",
        STEWARD_LAST_STEP="104",
    )
    assert "resumes=2" in told
    assert "culprits=('n3',), excluded=('n3', 'rack[1,4-5]')" in told
    assert "checkpoint=PosixPath('/ckpt/step-100'), step=104" in told


def test_a_count_that_is_no_number_is_a_first_run() -> None:
    assert "resumes=0" in run("print(job.resume_info())", STEWARD_RESUME_COUNT="-1; rm", STEWARD_LAST_STEP="x")


def test_at_the_signal_each_thread_writes_where_it_is_and_goes_on(tmp_path: Path) -> None:
    body = """
import os, signal, threading
done = threading.Event()
threading.Thread(target=done.wait, name="waits").start()
assert job.allow_stacks("SIGUSR2")
def stands_still():
    os.kill(os.getpid(), signal.SIGUSR2)
stands_still()
done.set()
print("went on", os.getpid())
"""
    pid = run(body, STEWARD_STACKS_FILE=str(tmp_path / "stacks")).split()[-1]
    written = (tmp_path / f"stacks.{pid}").read_text()
    assert "stands_still" in written
    assert written.count("hread 0x") == 2


@pytest.mark.parametrize("name", ["KILL", "NOSUCH", "DFL"])
def test_a_signal_that_cannot_be_used_is_told_and_no_error(tmp_path: Path, name: str) -> None:
    assert run(f"print(job.allow_stacks({name!r}))", STEWARD_STACKS_FILE=str(tmp_path / "stacks")) == "False\n"
