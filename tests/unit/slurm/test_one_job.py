"""A write looks at its own job alone where Slurm tells of one; that it has none such squeue must say."""

import json
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.process import Completed, Failed
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.commands import refusal
from steward.model.ids import JobId
from steward.ports import Retryable, Stale, Unsent

RECORDING = Path(__file__).parents[2] / "recordings" / "24.11.5"
NEVER = {"set": True, "infinite": False, "number": 0}


def whole() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((RECORDING / "jobs.stdout").read_bytes().decode("utf-8", "replace"))
    return answer


def slurm(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    one: dict[str, Any],
    every: dict[str, Any],
    version: str = "24.11.5",
    squeue: str = "echo odd",
) -> CommandLineSlurm:
    """A Slurm that answers so for one job and for all, and notes its commands in `folder`/commands."""
    for name, answer in (("one", one), ("every", every)):
        (folder / name).write_text(json.dumps(answer))
    script = folder / "scontrol"
    script.write_text(
        f"""#!/bin/sh
echo "$*" >> {folder}/commands
case "$*" in
    --version) echo "slurm {version}" ;;
    *"show jobs "[0-9]*) cat {folder}/one ;;
    *"show jobs") cat {folder}/every ;;
esac
"""
    )
    script.chmod(0o755)
    (folder / "squeue").write_text(f"#!/bin/sh\n{squeue}\n")
    (folder / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return CommandLineSlurm()


def looks(folder: Path) -> list[str]:
    return [line for line in (folder / "commands").read_text().splitlines() if "show" in line]


def test_a_job_that_slurm_holds_is_looked_at_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {**whole(), "jobs": whole()["jobs"][:1], "last_update": NEVER}
    port = slurm(tmp_path, monkeypatch, one=one, every={})

    assert port.job(JobId(1)).id == 1
    assert [line.split()[-1] for line in looks(tmp_path)] == ["1"]


def test_a_job_that_slurm_does_not_hold_any_more_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = 'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1'
    port = slurm(tmp_path, monkeypatch, one={"jobs": [], "last_update": NEVER}, every={}, squeue=gone)

    with pytest.raises(Stale, match="77"):
        port.job(JobId(77))


def test_without_a_controller_nothing_is_known_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"jobs": [], "last_update": NEVER}
    away = 'echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1'

    with pytest.raises(Retryable):
        slurm(tmp_path, monkeypatch, one=nothing, every=nothing, squeue=away).job(JobId(1))


def test_without_a_controller_no_signal_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"jobs": [], "last_update": NEVER}
    slow = 'echo "slurm_load_jobs error: Socket timed out on send/recv operation" >&2; exit 1'

    with pytest.raises(Unsent):
        slurm(tmp_path, monkeypatch, one=nothing, every=nothing, squeue=slow).signal(JobId(1), "USR1")


@pytest.mark.parametrize(("told", "kind"), [("connect failure", Unsent), ("receive failure", Retryable)])
def test_a_command_that_found_no_controller_did_nothing(told: str, kind: type[Retryable]) -> None:
    text = f"scontrol: error: Unable to contact slurm controller ({told})".encode()
    done = Completed(argv=("scontrol",), returncode=1, stdout=b"", stderr=text, seconds=0.1)
    found = refusal(Failed("it failed", done))
    assert isinstance(found, Retryable)
    assert isinstance(found, Unsent) == (kind is Unsent)


def test_where_one_cannot_be_asked_for_all_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = slurm(tmp_path, monkeypatch, one={}, every=whole(), version="23.02.7")

    assert port.job(JobId(1)).id == 1
    assert [line.split()[-1] for line in looks(tmp_path)] == ["jobs"]
