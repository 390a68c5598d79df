"""A command that failed leaves nothing behind in memory: its error is over when who asked has dealt with it.

What asks holds a picture of the whole cluster, which must not wait until Python looks for cyclic garbage.
"""

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steward.adapters.slurm.commands import SlurmCommands
from steward.ports import PortError
from tests.fakes.until import FACT_S


class Picture:
    pass


@pytest.fixture(autouse=True)
def nobody_looks_for_garbage() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def scontrol(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> SlurmCommands:
    script = folder / "scontrol"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return SlurmCommands(conf="", timeout_s=FACT_S, max_bytes=1 << 20)


def kept_by(call: Callable[[], object]) -> object:
    """The picture of whoever made the call, when it is still there after the error was dealt with."""

    def ask(picture: Picture) -> None:
        try:
            call()
        except PortError:
            return

    picture = Picture()
    seen = weakref.ref(picture)
    ask(picture)
    del picture
    return seen()


@pytest.mark.parametrize(
    "body",
    ["echo nobody knows >&2; exit 1", "echo Invalid job id specified >&2; exit 1", "sleep 60"],
    ids=["retryable", "stale", "too late"],
)
def test_a_failed_change_keeps_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    commands = scontrol(tmp_path, monkeypatch, body)
    assert kept_by(lambda: commands.write("update", "jobid=1", timeout_s=0.2 if "sleep" in body else None)) is None


@pytest.mark.parametrize("body", ["echo nobody knows >&2; exit 1", "echo Node n1 not found; exit 1"])
def test_nor_does_a_look_at_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    commands = scontrol(tmp_path, monkeypatch, body)
    assert kept_by(lambda: commands.some_nodes("scontrol", "show", "node", "n1", env={})) is None


def test_nor_do_several_changes_that_slurm_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that scontrol must not read from its input are tried one command after the other."""
    commands = scontrol(tmp_path, monkeypatch, "echo Invalid job id specified >&2; exit 1")
    changes = [("update", f"jobid={number}", "admincomment=two words") for number in (1, 2, 3)]
    assert kept_by(lambda: commands.write_all(changes)) is None
