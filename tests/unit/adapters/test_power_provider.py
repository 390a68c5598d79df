"""Slurm is looked at under the lock of the records: two looks at once must not judge by the older picture."""

import fcntl
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from steward.adapters.providers.power import PowerProvider
from steward.adapters.slurm.power import PowerSwitch
from steward.model.ids import InstanceId, NodeName
from steward.model.node import Node
from steward.model.settings.clouds import PowerProviderSettings as Settings

N1 = NodeName("n1")


def is_locked(path: Path) -> bool:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@pytest.mark.parametrize(
    "act",
    [PowerProvider.instances, lambda provider: provider.terminate(InstanceId("power-n1"))],
    ids=["instances", "terminate"],
)
def test_no_picture_is_older_than_the_lock(tmp_path: Path, act: Callable[[PowerProvider], object]) -> None:
    held: list[bool] = []

    def read() -> Mapping[NodeName, Node]:
        held.append(is_locked(tmp_path / "power.lock"))
        return {}

    act(PowerProvider(Settings(), [N1], tmp_path / "power.json", read, PowerSwitch(conf="")))
    assert held == [True]
