"""A command that failed leaves nothing behind in memory: its error is over when who asked has dealt with it.

What asks holds a picture of the whole cluster, which must not wait until Python looks for cyclic garbage.
"""

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steward.adapters.slurm.commands import SlurmCommands
from steward.ports import Permanent, PortError, Retryable, Stale, Unsent
from tests.fakes.until import FACT_S


class Picture:
    pass


@pytest.fixture(autouse=True)
def nobody_looks_for_garbage() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_a_persons_own_view_of_slurm_does_not_change_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, word in (("SLURM_CLUSTERS", "other"), ("SLURM_TIME_FORMAT", "relative"), ("SQUEUE_USERS", "eve")):
        monkeypatch.setenv(name, word)
    told = scontrol(tmp_path, monkeypatch, "env").run("scontrol").text
    assert "SQUEUE_LOCAL=1\n" in told
    assert not {line for line in told.splitlines() if line.startswith(("SLURM_CLUSTERS", "SLURM_TIME", "SQUEUE_U"))}


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


MANY = 2500
"""More than two blocks of the commands that one scontrol reads from its input."""
OF_FIRST_JOB = """if [ $# -gt 0 ]; then line="$*"; else line=$(cat); fi
echo "$line" >>{log}
case "$line" in *"jobid=1 "*) echo "{said}" >&2; exit {status};; esac"""


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("words", ["starttime=now", "admincomment=two words"])
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Invalid job id specified", Stale),
        ("Access/permission denied", Permanent),
        ("Job update not available right now, the DB index is being set, try again in a bit", Retryable),
        ("nobody knows these words", Retryable),
    ],
)
def test_a_refused_change_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, kind: type[PortError], words: str, status: int
) -> None:
    """Whether scontrol reads them from its input, a block at a time, or is started for each."""
    many = 3 if " " in words else MANY
    log = tmp_path / "log"
    text = OF_FIRST_JOB.format(log=log, said=said, status=status if " " not in words else 1)
    commands = scontrol(tmp_path, monkeypatch, text)
    with pytest.raises(kind, match=said[:20]):
        commands.write_all([("update", f"jobid={number}", words) for number in range(1, many + 1)])
    assert len(log.read_text().splitlines()) == many


def test_where_no_slurmctld_answers_the_rest_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Unable to contact slurm controller (connect failure)"
    log = tmp_path / "log"
    commands = scontrol(tmp_path, monkeypatch, OF_FIRST_JOB.format(log=log, said=said, status=1))
    with pytest.raises(Unsent):
        commands.write_all([("update", f"jobid={number}", "starttime=now") for number in range(1, MANY)])
    assert len(log.read_text().splitlines()) == 1000
