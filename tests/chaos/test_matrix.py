"""A diagonal through the matrix, each row and each column in it; the whole of it is `make chaos`."""

import re

import pytest

from tests.chaos import page
from tests.chaos.cell import run_cell
from tests.chaos.columns import COLUMNS, Column
from tests.chaos.flow import Flow
from tests.chaos.matrix import FLOWS, PAGE, flow_of, quiet, rows, sample, undisturbed

CELLS = sample()


@pytest.mark.long
@pytest.mark.parametrize(
    ("flow", "step", "column"),
    [pytest.param(*cell, id=f"{cell[0]}, {cell[1]}, {cell[2].name}") for cell in CELLS],
)
def test_whatever_fault_comes_at_a_step_all_is_well_in_the_end(flow: str, step: str, column: Column) -> None:
    """What a kill leaves is compared with what the same flow leaves undisturbed."""
    with quiet():
        control = undisturbed(flow) if column.is_kill else None
        result = run_cell(flow_of(flow), step, column, control)
    assert result.broken == ()


@pytest.mark.long
@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_where_no_fault_comes_all_is_well_too(flow: Flow) -> None:
    with quiet():
        assert undisturbed(flow.name).broken == ()


def test_the_sample_has_every_row_and_every_column() -> None:
    assert {(flow, step) for flow, step, _ in CELLS} == set(rows())
    assert {column.name for _, _, column in CELLS} == {column.name for column in COLUMNS}


def test_the_page_has_every_row_and_every_column_and_nothing_red() -> None:
    text = PAGE.read_text()
    assert [name for name in (page.told(column) for column in COLUMNS) if f". {name}\n" not in text] == []
    lines = re.findall(r"^\| (.*?): (.*?) \| \d", text, re.MULTILINE)
    assert lines == rows()
    assert "| **RED** |" not in text
