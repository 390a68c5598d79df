"""A node's InfiniBand port, as its sysfs shows it: real slurmctld and slurmds, a tree of files in the place of /sys."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward_bed.bed import Bed, Overrides
from tests.builders.sysfs import infiniband, write
from tests.e2e.conftest import brought_up
from tests.e2e.story import Story

DOWN = infiniband(state="1: DOWN", phys_state="2: Polling")
DOWN_S = 10.0


@pytest.fixture(scope="module")
def cabled(request: pytest.FixtureRequest) -> Iterator[tuple[Bed, Path]]:
    """n1 and n2 with a port each that is up."""
    with tempfile.TemporaryDirectory() as root:
        for node in ("n1", "n2"):
            write(Path(root, node), infiniband())
        settings: Overrides = {
            "agent": {"sys_dir": f"{root}/%n", "check_interval_s": 2.0},
            "checks.ib.drop": {"down_s": DOWN_S},
        }
        for bed in brought_up(request, nodes=2, steward=True, settings=settings):
            yield bed, Path(root)


def test_a_port_that_stays_down_drains_its_node_and_names_itself(cabled: tuple[Bed, Path], tmp_path: Path) -> None:
    bed, root = cabled
    story = Story(bed, tmp_path)
    notes = Path(bed.env["SLURM_CONF"]).parents[1] / "nodes/n1/run/checks-n1.json"
    write(root / "n1", infiniband())
    story.wait("the agent saw the port up", lambda: notes.exists() and "mlx5_0/1" in notes.read_text(), 30.0)
    assert "ib.drop" in json.loads(notes.read_text())["notes"]
    write(root / "n1", DOWN)
    story.wait("the node is drained", lambda: "ib.drop" in story.node_field("n1", "Reason"), DOWN_S + 30.0)
    assert "mlx5_0/1" in story.explain("n1")
    assert story.node_field("n2", "Reason") == ""
