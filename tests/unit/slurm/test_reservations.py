"""What `scontrol show reservations` tells of nodes that others may not use."""

import pytest

from steward.adapters.slurm.reservations import reservations
from steward.model.ids import NodeName

TIMES = "StartTime=2026-01-01T00:00:00 EndTime=2026-01-02T00:00:00 Duration=1-00:00:00"


@pytest.mark.parametrize(
    ("words", "cpus", "is_magnetic"),
    [
        ("CoreCnt=96 Features=(null) Flags=MAINT,SPEC_NODES TRES=cpu=96", 96, False),
        ("CoreCnt=4 Features=(null) Flags=MAGNETIC TRES=cpu=8,gres/gpu=2 Users=ann", 8, True),
        ("CoreCnt=4 Features=(null) Flags= TRES=(null)", 0, False),
        ("CoreCnt=4", 0, False),
    ],
)
def test_how_much_of_its_nodes_a_reservation_has_and_for_whom(words: str, cpus: int, is_magnetic: bool) -> None:
    found = reservations(f"ReservationName=course {TIMES} Nodes=n[1-2] NodeCnt=2 {words}\n")["course"]
    assert found.nodes == {NodeName("n1"), NodeName("n2")}
    assert (found.cpus, found.is_magnetic) == (cpus, is_magnetic)
