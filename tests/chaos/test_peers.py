"""What is known to go wrong elsewhere, told of ours."""

import pytest

from steward.model.ids import NodeName
from steward.model.instance import InstanceState
from tests.chaos.flows import REPAIRS
from tests.chaos.trouble import Point

N2 = NodeName("n2")
CASE = REPAIRS[0]


@pytest.mark.parametrize("point", [None, *Point], ids=lambda point: point.value if point else "while nothing is done")
@pytest.mark.parametrize("away_s", [1.0, 60.0])
def test_the_peers_known_failure_a_restart_during_a_replacement_does_not_end_the_booting_machine(
    point: Point | None, away_s: float
) -> None:
    """clustermgtd 3.11, restarted while a replacement boots, takes it for a broken node and ends it."""
    bench = CASE.make()
    try:
        CASE.begin(bench)
        bench.trouble.kill_at, bench.trouble.kills = point, 0
        while not any(i.node == N2 and i.state is InstanceState.PENDING for i in bench.provider.instances().values()):
            bench.run(0.1)
        booting = bench.world.machines.of(N2)
        assert booting is not None
        bench.trouble.kills = 3
        bench.restart(away_s)
        for _ in range(100):
            bench.run(1.0)
            if not CASE.unrest(bench):
                break
        assert CASE.unrest(bench) == []
        assert bench.watch.broken == []
        assert bench.world.machines.of(N2) is booting
        assert bench.world.machines.launched[booting.token] == 1
    finally:
        bench.close()
