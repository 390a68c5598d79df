"""The dashboard that we ship has the structure that Grafana imports. No Grafana is asked (docs/operations.md)."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[3] / "monitoring/grafana-dashboard.json"
BOARD: dict[str, Any] = json.loads(FILE.read_text())
PANELS: list[dict[str, Any]] = BOARD["panels"]
DRAWN = [panel for panel in PANELS if panel["type"] != "row"]
VARIABLES = [variable["name"] for variable in BOARD["templating"]["list"]]
WIDTH = 24
_USED = re.compile(r"\$\{?([A-Za-z_]\w*)")


def texts(value: Any) -> list[str]:
    """Every text in it."""
    if isinstance(value, dict | list):
        return [text for one in (value.values() if isinstance(value, dict) else value) for text in texts(one)]
    return [value] if isinstance(value, str) else []


def test_it_is_of_a_schema_with_a_title_and_an_id_of_its_own() -> None:
    assert BOARD["schemaVersion"] >= 36, "data sources by type and uid"
    assert BOARD["title"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", BOARD["uid"])
    assert "id" not in BOARD, "Grafana gives the number at the import"


def test_each_panel_has_a_number_of_its_own() -> None:
    numbers = Counter(panel["id"] for panel in PANELS)
    assert [number for number, count in numbers.items() if count > 1] == []
    assert all(isinstance(number, int) and number > 0 for number in numbers)


def test_each_variable_that_is_used_is_declared_once_and_each_declared_one_is_used() -> None:
    used = {name for text in texts(BOARD) for name in _USED.findall(text) if not name.startswith("__")}
    assert sorted(VARIABLES) == sorted(used)
    assert len(VARIABLES) == len(set(VARIABLES))


@pytest.mark.parametrize("panel", DRAWN, ids=lambda panel: panel["title"])
def test_each_target_of_a_panel_has_a_query_and_a_letter_of_its_own(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    assert all(target["expr"].strip() for target in panel["targets"])
    letters = [target["refId"] for target in panel["targets"]]
    assert len(letters) == len(set(letters))
    assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}


def test_no_panel_covers_another() -> None:
    cells = Counter[tuple[int, int]]()
    for panel in PANELS:
        x, y, width, height = (panel["gridPos"][side] for side in "xywh")
        assert x + width <= WIDTH, panel["title"]
        cells.update((column, line) for column in range(x, x + width) for line in range(y, y + height))
    assert [cell for cell, count in cells.items() if count > 1] == []
