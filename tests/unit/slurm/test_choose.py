"""Which adapter reads Slurm, and what the doctor says of it."""

import pytest

from steward.adapters.slurm.choose import choose
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.setting_types import SlurmAdapter


def test_the_site_may_have_the_commands_whatever_is_installed() -> None:
    choice = choose(SlurmAdapter.COMMANDS)
    assert type(choice.slurm) is CommandLineSlurm
    assert (choice.why, choice.is_second) == ("commands, because cluster.slurm_adapter says so", False)


def test_a_wish_for_pyslurm_that_cannot_be_met_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none for the Slurm that no scontrol tells of."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert choose(SlurmAdapter.PYSLURM).is_second
    assert not choose(SlurmAdapter.AUTO).is_second
