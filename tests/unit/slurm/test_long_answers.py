"""A long queue is read by the commands, too: an answer that is too long is refused, and one that comes near is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from steward.adapters import process
from steward.adapters.slurm import commands
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.ports import Retryable
from tests.fakes.until import FACT_S

_MIB = 1 << 20


def slurm(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, squeue: str, max_bytes: int = 64 * _MIB
) -> CommandLineSlurm:
    """A Slurm whose squeue does `squeue`."""
    for name, does in (("scontrol", 'echo "slurm 24.11.5"'), ("squeue", squeue)):
        script = folder / name
        script.write_text(f"#!/bin/sh\n{does}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return CommandLineSlurm(max_bytes=max_bytes, timeout_s=FACT_S)


@pytest.mark.parametrize(("squeue", "why"), [("head -c 3000 /dev/zero", "too long"), ("echo odd", "cannot read")])
def test_an_answer_that_is_too_long_or_odd_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, why: str
) -> None:
    with pytest.raises(Retryable, match=why):
        slurm(tmp_path, monkeypatch, squeue=squeue, max_bytes=2000).jobs()


@pytest.mark.parametrize(("bytes_", "told"), [(300_000, False), (600_000, True)])
def test_it_tells_of_an_answer_that_comes_near_to_what_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_: int, told: bool
) -> None:
    empty = f"head -c {bytes_} /dev/zero | tr '\\0' '\\n'"
    port = slurm(tmp_path, monkeypatch, squeue=empty, max_bytes=1_000_000)
    port.jobs()

    assert ("squeue" in port.describe() and "0.6 MB of 1.0 MB" in port.describe()) is told
    assert "\n" not in port.describe()


def test_it_tells_of_an_answer_that_came_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = slurm(tmp_path, monkeypatch, squeue="true")
    monkeypatch.setattr(commands, "run", lambda *argv, **how: replace(process.run(*argv, **how), seconds=FACT_S - 1))
    port.jobs()

    assert "59.0 s of 60 s" in port.describe()
