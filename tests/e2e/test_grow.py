"""A run grows into idle nodes, gives way and loses a node: on each bed and each Slurm, without torch."""

import sys

import pytest

from steward.testbed.bed import Backend
from steward.testbed.faults import FaultKind
from tests.e2e.elastic_processes import PLAIN, Line, told
from tests.e2e.story import Story

IN_CONTAINERS = "/opt/steward/bin/python3"
KEPT_AWAY = "--exclude=n4,n5,n6"


def begun(story: Story) -> list[Line]:
    """Generations that made a step, oldest first."""
    lines = told(story.dir / "run")
    stepped = {line["generation"] for line in lines if line["what"] == "step"}
    return [line for line in lines if line["what"] == "begun" and line["generation"] in stepped]


def step_lines(lines: list[Line], generation: int) -> list[int]:
    """The steps that it made."""
    return [int(line["step"]) for line in lines if line["what"] == "step" and line["generation"] == generation]


def trains_at(story: Story, size: int, after: int) -> None:
    """A generation of that size has made a step, begun after so many others."""

    def is_there() -> bool:
        return size in [line["world"] for line in begun(story)[after:]]

    story.wait(f"the run trains on {size} nodes", is_there, 90.0)


@pytest.mark.timeout(400)
def test_a_run_grows_gives_way_grows_again_and_goes_on_when_a_node_is_lost(story: Story) -> None:
    story.dir.chmod(0o777)
    story.script("train.py", PLAIN.read_text())
    train = story.script("train.sh", PLAIN.with_name("train.sh").read_text())
    python = IN_CONTAINERS if story.bed.spec.backend is Backend.DOCKER else sys.executable
    options = ("-N2", KEPT_AWAY, "--elastic=3,grace=15,settle=0,faulty=1,snooze=1,backoff=1")
    words = (str(story.dir / "run"), "--steps=100000", "--sample-s=0.003")
    base = story.submit(train, *options, f"--export=ALL,PYTHON={python},TRAIN_DIR={story.dir}", arguments=words)
    trains_at(story, 2, after=0)
    trains_at(story, 3, after=1)

    other = story.submit(story.script("other.sh", "sleep 5"), "-N1", "--exclusive", KEPT_AWAY)
    story.wait_state(other, ("RUNNING", "COMPLETED"), 60.0)
    story.wait_end(other, 60.0)
    trains_at(story, 2, after=2)
    trains_at(story, 3, after=len(begun(story)))
    lines, formed = told(story.dir / "run"), begun(story)
    lasts = [max(step_lines(lines, one["generation"])) for one in formed[:-1]]
    assert [one["step"] for one in formed[1:]] == lasts, "no step is lost"

    grown = len(begun(story))
    story.hurt(FaultKind.KILL_NODE, "n3")
    trains_at(story, 2, after=grown)
    story.bed.run(["scancel", str(base)])
    story.wait_end(base, 60.0)
