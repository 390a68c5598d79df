"""A node that goes DOWN without DRAIN comes back by itself: so it is drained first, and DOWN only then."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.ids import NodeName
from steward.model.mark import Mark
from steward.ports import Retryable, Stale
from tests.fakes.reader_lines import scontrol_line

REFUSAL = "Invalid node state specified"
N1, MARK = NodeName("n1"), Mark(check="lost", action="replace", id="7")
NODES = "\n".join(scontrol_line(name) for name in ("n1", "n2"))


def slurm(folder: Path, monkeypatch: pytest.MonkeyPatch, *, refused: str, says: str) -> CommandLineSlurm:
    """A Slurm that refuses to set that state, by argument or by line; what it takes is in
    `folder`/states."""
    script = folder / "scontrol"
    script.write_text(
        f"""#!/bin/sh
take() {{
    case "$*" in
        *state={refused}*) echo "slurm_update error: {says}" >&2; return 1 ;;
        *state=*) echo "$*" >> {folder}/states ;;
    esac
}}
failed=0
case "$*" in
    --version) echo "slurm 24.11.5" ;;
    *config*) echo "SlurmdPort = 6818" ;;
    *show*) echo "{NODES}" ;;
    "") while read -r line; do take "$line" || failed=1; done ;;
    *) take "$@" || failed=1 ;;
esac
exit $failed
"""
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    (folder / "states").touch()
    return CommandLineSlurm()


@pytest.mark.parametrize(
    ("says", "error"), [("Socket timed out on send/recv", Retryable), ("Invalid node state specified", Stale)]
)
def test_a_node_that_slurm_does_not_drain_is_not_set_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, error: type[Exception]
) -> None:
    port = slurm(tmp_path, monkeypatch, refused="drain", says=says)

    with pytest.raises(error, match=re.escape(says)):
        port.down(dict.fromkeys([N1], MARK))
    assert (tmp_path / "states").read_text() == ""


def test_of_many_with_marks_of_their_own_none_is_set_down_when_slurm_does_not_drain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = slurm(
        tmp_path, monkeypatch, refused="drain?reason=steward:lost:replace:8", says="Invalid node state specified"
    )

    with pytest.raises(Stale, match="Invalid node state"):
        port.down({N1: MARK, NodeName("n2"): replace(MARK, id="8")})
    assert re.findall(r"state=(\w+)", (tmp_path / "states").read_text()) == ["drain"]


def test_a_mark_that_is_no_plain_word_goes_by_a_command_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = slurm(tmp_path, monkeypatch, refused="nothing", says="")
    port.drain({N1: replace(MARK, check="x\nupdate nodename=n3"), NodeName("n2"): MARK})

    told = (tmp_path / "states").read_text()
    assert re.findall(r"^update nodename=(\w+)", told, re.MULTILINE) == ["n1", "n2"]


def test_a_node_is_drained_before_it_is_set_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = slurm(tmp_path, monkeypatch, refused="nothing", says="")
    port.down(dict.fromkeys([N1], MARK))

    assert re.findall(r"state=(\w+)", (tmp_path / "states").read_text()) == ["drain", "down"]
