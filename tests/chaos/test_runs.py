"""An elastic run goes on, and no replica job is there twice, whoever dies while it changes its size."""

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
FAULTS = (
    *(column for column in COLUMNS if column.is_kill or column.name in OTHERS),
    Column(name="coordinator killed", begin=coordinator_dies, lasts_s=0.0),
)
STEPS = [(flow, step) for flow in RUNS for step in flow.steps]
ALL = [(flow, step, fault) for flow, step in STEPS for fault in FAULTS]


def cell(at: int) -> object:
    """Each step and each fault is told every time; all pairs of them where there is time."""
    flow, step, fault = ALL[at]
    is_told = at % len(FAULTS) == at // len(FAULTS) % len(FAULTS)
    name = f"{flow.name}, {step}, {fault.name}"
    return pytest.param(flow, step, fault, id=name, marks=() if is_told else pytest.mark.long)


@pytest.mark.parametrize(("flow", "step", "fault"), [cell(at) for at in range(len(ALL))])
def test_whoever_dies_while_a_run_changes_its_size_it_ends_as_if_nobody_had(
    flow: Flow, step: str, fault: Column
) -> None:
    found = run_cell(flow, step, fault, undisturbed(flow.name))
    assert found.broken == ()
