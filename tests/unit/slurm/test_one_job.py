"""A write looks at its own job alone; that Slurm has none such squeue must say."""

from pathlib import Path

import pytest

from steward.adapters.process import Completed, Failed
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.commands import meaning
from steward.model.ids import JobId
from steward.ports import Retryable, Stale, Unsent


def slurm(folder: Path, monkeypatch: pytest.MonkeyPatch, squeue: str) -> CommandLineSlurm:
    for name, does in (("scontrol", 'echo "slurm 24.11.5"'), ("squeue", squeue)):
        (folder / name).write_text(f"#!/bin/sh\n{does}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return CommandLineSlurm()


def test_a_job_that_slurm_does_not_hold_any_more_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = 'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1'

    with pytest.raises(Stale, match="77"):
        slurm(tmp_path, monkeypatch, gone).job(JobId(77))


def test_without_a_controller_nothing_is_known_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = 'echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1'

    with pytest.raises(Retryable):
        slurm(tmp_path, monkeypatch, away).job(JobId(1))


def test_without_a_controller_no_signal_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = 'echo "slurm_load_jobs error: Socket timed out on send/recv operation" >&2; exit 1'

    with pytest.raises(Unsent):
        slurm(tmp_path, monkeypatch, slow).signal(JobId(1), "USR1")


@pytest.mark.parametrize(("told", "kind"), [("connect failure", Unsent), ("receive failure", Retryable)])
def test_a_command_that_found_no_controller_did_nothing(told: str, kind: type[Retryable]) -> None:
    text = f"scontrol: error: Unable to contact slurm controller ({told})".encode()
    done = Completed(argv=("scontrol",), returncode=1, stdout=b"", stderr=text, seconds=0.1)
    found = meaning(Failed("it failed", done))
    assert issubclass(found, Retryable)
    assert issubclass(found, Unsent) == (kind is Unsent)
