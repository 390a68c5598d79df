"""A node whose network is slow, found by a deep check on a real Slurm and replaced (local bed: one runner is told to be
slow)."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward_bed.bed import Bed
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story

SLOW = "n3"


@pytest.fixture(scope="module")
def slow_bed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """n1..n4; the first machine of n3 sends and takes 20 Mbit/s."""
    runner = tmp_path_factory.mktemp("deep") / "runner"
    runner.write_text(
        f'#!/bin/sh\n[ "$SLURMD_NODENAME" = {SLOW} ] && set -- "$@" --throttle-mbps 20\n'
        f'exec {sys.executable} -m steward.deep "$@"\n'
    )
    runner.chmod(0o755)
    deep = {"budget_s": 25.0, "gather_s": 1.0, "at_once_percent": 100.0, "command": [str(Path(runner))]}
    yield from brought_up(request, nodes=4, steward=True, settings={"deep": deep})


@pytest.fixture
def slow_story(slow_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    with own_place(slow_bed, request) as place:
        yield Story(slow_bed, place)


def test_a_node_with_a_slow_network_is_blamed_alone_and_its_machine_replaced(slow_story: Story) -> None:
    story = slow_story
    story.bed.run(["steward", "check", "deep", "n[1-4]", "--kind", "InstanceConnectivity", "--wait"], check=False)

    run = story.get("/v1/checks/deep")[0]
    found = {name: node["result"] for name, node in run["nodes"].items()}
    assert found == {name: "Failed" if name == SLOW else "Passed" for name in ("n1", "n2", "n3", "n4")}
    seen = [float(rate) for rate in re.findall(r"([\d.]+) Mbit/s", run["nodes"][SLOW]["why"])]
    assert 15 < min(seen) < 25, run["nodes"][SLOW]["why"]
    story.wait_case(SLOW, "closed", 60.0)
