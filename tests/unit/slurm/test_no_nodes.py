"""A cluster without a node is a real one where nodes register by themselves; an empty answer alone is not."""

import json
from pathlib import Path

import pytest

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.ports import Retryable

_EMPTY = json.dumps({"nodes": [], "last_update": {"set": True, "infinite": False, "number": 7}})


def commands(folder: Path, monkeypatch: pytest.MonkeyPatch, *, text: str) -> CommandLineSlurm:
    """A Slurm whose JSON has no node in it and whose text says this."""
    script = folder / "scontrol"
    script.write_text(
        f"""#!/bin/sh
case "$*" in
    --version) echo "slurm 24.11.5" ;;
    *--json*) echo '{_EMPTY}' ;;
    *) echo '{text}' ;;
esac
"""
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return CommandLineSlurm()


def test_no_node_is_believed_when_slurm_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert commands(tmp_path, monkeypatch, text="No nodes in the system").nodes() == {}


def test_an_empty_answer_alone_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Retryable, match="not believed"):
        commands(tmp_path, monkeypatch, text="NodeName=n1 State=IDLE").nodes()
