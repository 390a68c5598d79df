"""A queue of ten thousand jobs is read: Slurm is asked for no more than needed, and its answer takes little memory."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steward.adapters import process
from steward.adapters.slurm import commands, records
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.ports import Retryable
from tests.fakes.until import FACT_S

RECORDING = Path(__file__).parents[2] / "recordings" / "24.11.5"
_MIB = 1 << 20


def whole() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((RECORDING / "jobs.stdout").read_bytes().decode("utf-8", "replace"))
    return answer


def with_cores(record: dict[str, Any], cores: int) -> dict[str, Any]:
    """A job as Slurm tells of it to those who want every detail: each core of its node, used or not."""
    each = [{"index": index, "status": ["UNALLOCATED"]} for index in range(cores)]
    sockets = [{"index": 0, "cores": each}]
    return {**record, "job_resources": {"nodes": {"allocation": [{"index": 0, "name": "n1", "sockets": sockets}]}}}


def slurm(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, body: str, max_bytes: int = 64 * _MIB, timeout_s: float = FACT_S
) -> CommandLineSlurm:
    """A Slurm whose scontrol does `body` with its options in $*, but for its version; its text cannot be read."""
    version = '[ "$*" = --version ] && exec echo "slurm 24.11.5"'
    for name, does in (("scontrol", f"{version}\n{body}"), ("squeue", "echo odd")):
        script = folder / name
        script.write_text(f"#!/bin/sh\n{does}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return CommandLineSlurm(max_bytes=max_bytes, timeout_s=timeout_s)


OPTIONS = """
for option; do
    case $option in  # in this order, as scontrol takes them
        --json) details=1 ;;
        --hide) details=0 all=0 ;;
        --all) all=1 ;;
    esac
done
[ $all = 1 ] || exit 1
"""


def test_no_job_is_asked_for_its_cores_and_none_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lean = tmp_path / "lean.json"
    lean.write_text(json.dumps(whole()))
    port = slurm(tmp_path, monkeypatch, body=f"{OPTIONS}[ $details = 0 ] || exit 1\ncat {lean}")

    assert len(port.jobs()) == 14


def test_an_answer_of_a_hundred_megabytes_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(whole()) + " " * 100 * _MIB)
    slurm(tmp_path, monkeypatch, body=f"cat {answer}")

    assert len(CommandLineSlurm().jobs()) == 14


def test_an_answer_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = slurm(tmp_path, monkeypatch, body="head -c 3000 /dev/zero", max_bytes=2000)

    with pytest.raises(Retryable, match="too long"):
        port.jobs()


@pytest.mark.parametrize(("bytes_", "told"), [(300_000, False), (600_000, True)])
def test_it_tells_of_an_answer_that_comes_near_to_what_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_: int, told: bool
) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps({**whole(), "jobs": []}).ljust(bytes_))
    port = slurm(tmp_path, monkeypatch, body=f"cat {answer}", max_bytes=1_000_000)
    port.jobs()

    assert ("jobs" in port.describe() and "0.6 MB of 1.0 MB" in port.describe()) is told
    assert "\n" not in port.describe()


def test_it_tells_of_an_answer_that_came_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps({**whole(), "jobs": []}))
    port = slurm(tmp_path, monkeypatch, body=f"cat {answer}")
    monkeypatch.setattr(commands, "run", lambda *argv, **how: replace(process.run(*argv, **how), seconds=FACT_S - 1))
    port.jobs()

    assert "59.0 s of 60 s" in port.describe()


def test_the_values_of_a_long_answer_are_never_held_all_at_once() -> None:
    answer = whole()
    text = json.dumps({**answer, "jobs": [with_cores(answer["jobs"][0], 128)] * 300})
    tracemalloc.start()
    try:
        assert len(records.jobs(text)) == 1
        assert tracemalloc.get_traced_memory()[1] < len(text) / 4
    finally:
        tracemalloc.stop()
