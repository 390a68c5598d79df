"""An elastic run goes on, and no replica job is there twice, whoever dies while it changes its size."""

from collections.abc import Iterator

import pytest

from tests.chaos.bench import Bench
from tests.chaos.cell import run_cell
from tests.chaos.columns import COLUMNS, Column
from tests.chaos.flow import Flow
from tests.chaos.matrix import undisturbed
from tests.chaos.run_flows import RUNS
from tests.fakes.run_world import RunWorld


def coordinator_dies(bench: Bench, node: str) -> None:
    assert isinstance(bench.world, RunWorld)
    bench.world.kill_coordinator()


OTHERS = ("agent killed", "slurmctld killed, started again", "slurmctld hung", "store locked")
COORDINATOR = Column(name="coordinator killed", begin=coordinator_dies, lasts_s=0.0)
FAULTS = (*(column for column in COLUMNS if column.is_kill or column.name in OTHERS), COORDINATOR)
STEPS = [(flow, step) for flow in RUNS for step in flow.steps]
ALL = [(flow, step, fault) for flow, step in STEPS for fault in FAULTS]


FURTHER = 3
"""Where there is time each step has so many faults more. All pairs are in `make chaos`, but for the
coordinator's."""


def cells() -> Iterator[object]:
    """Each step with a fault of its own, so that each fault is told every time."""
    for at, (flow, step, fault) in enumerate(ALL):
        after = (at - at // len(FAULTS)) % len(FAULTS)
        if after <= FURTHER or fault is COORDINATOR:
            marks = pytest.mark.long if after else ()
            yield pytest.param(flow, step, fault, id=f"{flow.name}, {step}, {fault.name}", marks=marks)


@pytest.mark.parametrize(("flow", "step", "fault"), list(cells()))
def test_whoever_dies_while_a_run_changes_its_size_it_ends_as_if_nobody_had(
    flow: Flow, step: str, fault: Column
) -> None:
    found = run_cell(flow, step, fault, undisturbed(flow.name))
    assert found.broken == ()
