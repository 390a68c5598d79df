"""What Slurm's power flags mean."""

import pytest

from steward.adapters.slurm.power import Power, power_of
from steward.model.ids import NodeName
from steward.model.node import Node, NodeBase


@pytest.mark.parametrize(
    ("flags", "power"),
    [
        ({"POWERED_DOWN"}, Power.OFF),
        ({"POWERED_DOWN", "POWER_UP"}, Power.ASKED),
        ({"POWERING_UP", "NOT_RESPONDING"}, Power.COMING),
        (set(), Power.ON),
        ({"POWER_DOWN"}, Power.GOING),
        ({"POWERING_DOWN", "POWER_UP"}, Power.GOING),
    ],
)
def test_flags_of_a_cloud_node(flags: set[str], power: Power) -> None:
    node = Node(name=NodeName("n1"), base=NodeBase.IDLE, flags=frozenset({"CLOUD"} | flags))
    assert power_of(node) is power


def test_a_node_told_twice_to_come_up_serves_though_slurm_keeps_the_flag() -> None:
    node = Node(name=NodeName("n1"), base=NodeBase.IDLE, flags=frozenset({"CLOUD", "POWER_UP"}))
    assert power_of(node) is Power.ON
    assert node.is_powered


def test_a_node_that_is_not_shown_is_off() -> None:
    assert power_of(None) is Power.OFF
