"""A deep check on machines of their own: a link that the kernel makes slow, and memory that forgets (docker bed)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from steward_bed.bed import Bed
from steward_bed.beds import reset
from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.on_node import on_node
from tests.e2e.story import Story
from tests.e2e.test_deep import has_begun

SLOW, FORGETFUL, GOOD = "n3", "n2", ("n1", "n4")
_RUNNER = "/bed/shared/deep-runner"
_MARK = "/var/tmp/forgetful"
"""On the machine itself: a new one keeps what is written to its memory."""
_SIZES = ["--memory-mb", "128", "--disk-mb", "32"]
_SCRIPT = f"""import os, sys
from pathlib import Path
from steward.deep import __main__ as runner, memory

class Forgetful:
    def __init__(self, block):
        self.block = block
    def __setitem__(self, where, what):
        self.block[where] = what
    def __getitem__(self, where):
        got = bytearray(self.block[where])
        got[17] ^= 1
        return got

allocate = memory.allocate
if Path("{_MARK}").exists():
    memory.allocate = lambda size, budget: [Forgetful(block) for block in allocate(size, budget)]
sys.exit(runner.main(sys.argv[1:], os.environ))
"""


@pytest.fixture(scope="module")
def deep_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """n1..n4; the runner is Steward's own, but for the memory of a machine that has the mark."""
    command = ["/opt/steward/bin/python3", _RUNNER, *_SIZES]
    deep = {"budget_s": 24.0, "gather_s": 1.0, "at_once_percent": 100.0, "command": command}
    for bed in brought_up(request, nodes=4, steward=True, settings={"deep": deep}):
        (bed.shared / "deep-runner").write_text(_SCRIPT)
        yield bed


@pytest.fixture
def deep_story(deep_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    reset(deep_bed)
    with own_place(deep_bed, request) as place:
        yield Story(deep_bed, place)


def mark(bed: Bed, node: str) -> None:
    """The node's machine has memory that forgets."""
    on_node(bed, node, "touch", _MARK)


def the_run(story: Story, id: str) -> dict[str, Any]:
    return dict(story.get(f"/v1/checks/deep/{id}"))


def test_a_users_job_goes_first_and_then_exactly_the_slow_and_the_forgetful_node_are_blamed(deep_story: Story) -> None:
    story = deep_story
    story.hurt(FaultKind.SLOW_LINK, SLOW, "20")
    mark(story.bed, FORGETFUL)
    asked = json.loads(story.bed.run(["steward", "--json", "check", "deep", "n[1-4]"]).text)
    (id,) = asked["runs"]
    story.wait("it runs", lambda: has_begun(the_run(story, id)))
    job = story.submit(story.script("all.sh", "srun hostname\n"), "-N4", "--exclusive", user="alice")
    assert story.wait_end(job, 15.0).state == "COMPLETED"
    assert the_run(story, id)["state"] != "done"
    story.wait("it came after the job", lambda: the_run(story, id)["state"] == "done", 60.0)

    nodes = the_run(story, id)["nodes"]
    assert {name for name, node in nodes.items() if node["result"] == "Failed"} == {SLOW, FORGETFUL}, nodes
    assert "Mbit/s" in nodes[SLOW]["why"]
    assert "memory did not keep what was written" in nodes[FORGETFUL]["why"]
    # All four write to one disk at once: a slow one is no proof, and then a good node's check could not tell.
    assert all(node["result"] in ("Passed", "Inconclusive") for name, node in nodes.items() if name in GOOD), nodes
    for name in (SLOW, FORGETFUL):
        story.wait_case(name, "closed", 60.0)
    assert story.bed.status().faults == ()
    assert {case["node"] for case in story.cases()} == {SLOW, FORGETFUL}
