"""What a fault takes, said clearly when it is wrong."""

import pytest

from steward_bed.bed import BedError
from steward_bed.docker_faults import rate_of
from steward_bed.faults import SHAPES, FaultKind, fault


def test_a_fault_of_a_node_needs_one() -> None:
    with pytest.raises(ValueError, match="kill-node needs a node, for example: inject kill-node n1"):
        fault(FaultKind.KILL_NODE)


def test_a_fault_of_the_bed_takes_no_node() -> None:
    with pytest.raises(ValueError, match="kill-head takes no node, but 'n1' was given"):
        fault(FaultKind.KILL_HEAD, "n1")


def test_a_kernel_log_line_needs_its_text() -> None:
    with pytest.raises(ValueError, match="kernel-log needs a text"):
        fault(FaultKind.KERNEL_LOG, "n1")


def test_a_fault_without_text_refuses_one() -> None:
    with pytest.raises(ValueError, match="freeze-node takes no text, but 'hard' was given"):
        fault(FaultKind.FREEZE_NODE, "n1", "hard")


def test_every_fault_has_a_shape_and_what_undoes_one_takes_the_same_node() -> None:
    assert set(SHAPES) == set(FaultKind)
    for shape in SHAPES.values():
        assert shape.undo is None or SHAPES[shape.undo].node is shape.node


def test_a_fault_is_shown_as_it_is_typed() -> None:
    assert str(fault(FaultKind.KILL_NODE, "n3")) == "kill-node n3"
    assert str(fault(FaultKind.KILL_HEAD)) == "kill-head"


@pytest.mark.parametrize("text", ["fast", "0", "-3", "nan"])
def test_what_is_no_speed_of_a_link_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BedError, match=r"slow-link takes Mbit/s from 0\.1 to 100000, for example 20"):
        rate_of(text)


def test_a_slow_link_has_a_usual_speed() -> None:
    assert (rate_of(""), rate_of("2.5")) == (20.0, 2.5)
