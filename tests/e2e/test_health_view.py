"""What the administrator sees of a fault, and is told of it outside, over a kill of the head."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import XID_79, Story

TOLD = "told.jsonl"
CHANNEL = """
[[notify]]
name = "own"
kind = "command"
command = ["{program}"]
kinds = ["case.withheld"]
window_s = 0.0
"""


@pytest.fixture(scope="module")
def reporting(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """A cluster of n1..n3 whose head only reports."""
    yield from brought_up(request, nodes=3, steward=True, settings={"repair": {"mode": "report"}})


@pytest.fixture
def story(reporting: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    with own_place(reporting, request) as place:
        yield Story(reporting, place)


def listen(story: Story) -> None:
    """Have the head tell a program, which writes down what it is told."""
    program = story.dir / "tell"
    program.write_text(f"#!/bin/sh\ncat >>{story.dir}/{TOLD}\n")
    program.chmod(0o755)
    conf = story.bed.env["STEWARD_CONFIG"]
    story.bed.run(["sh", "-c", f"cat >>{conf} <<'END'\n{CHANNEL.format(program=program)}END"])
    restart(story)


def restart(story: Story) -> None:
    story.hurt(FaultKind.KILL_HEAD)
    story.hurt(FaultKind.START_HEAD)
    story.wait("the head is back", partial(asked, story, "status"), 30.0)


def asked(story: Story, *words: str) -> Any:
    """What the command says as JSON; None when the head is not there."""
    done = story.bed.run(["steward", "--json", *words], check=False)
    return json.loads(done.text) if done.returncode == 0 else None


def verdict(story: Story, node: str) -> str:
    return next((str(one["verdict"]) for one in asked(story, "nodes") or [] if one["name"] == node), "")


def is_only_reported(story: Story, node: str) -> bool:
    return verdict(story, node) == "report-only"


def told(story: Story) -> list[str]:
    return [json.loads(line)["node"] for line in story.lines(TOLD)]


def test_who_submits_a_job_reads_at_once_that_this_cluster_only_reports(story: Story) -> None:
    script, said = story.script("train.sh", "true\n"), f"{story.dir}/said"
    story.wait("the agents know", lambda: (story.bed.spec.dir / "run" / "warning").exists())
    for option, is_warned in (("--auto-resume=1", True), ("--auto-resume=0", False)):
        argv = f"sbatch --parsable --output={story.dir}/out {option} {script} 2>{said}"
        story.jobs.append(int(story.bed.run(["sh", "-c", argv]).text))
        told = "sbatch: steward: Steward only reports on this cluster" in Path(said).read_text()
        assert told is is_warned, Path(said).read_text()


def test_a_fault_is_seen_explained_and_told_once_over_a_kill_of_the_head(story: Story) -> None:
    listen(story)
    assert asked(story, "notify", "test")["channels"] == {"own": ""}
    story.wait("the test message came", partial(told, story))

    story.hurt(FaultKind.FAIL_CHECK, "n2", "the fan stands still")
    story.wait("the verdict says so", lambda: verdict(story, "n2") == "report-only", 45.0)
    first, second = story.explain("n2").splitlines()[:2]
    assert first.startswith("n2 is REPORT-ONLY (for ")
    assert "the fan stands still" in first
    assert second == "Next: nothing: reported only (repair.mode)."
    (failing,) = asked(story, "checks", "--failing")
    assert [one["node"] for one in failing["failing"]] == ["n2"]
    (on_node,) = asked(story, "checks", "n2", "--failing")
    assert on_node["outcome"] == "failed"
    story.wait("the program is told", lambda: told(story) == ["", "n2"])

    restart(story)
    story.hurt(FaultKind.KERNEL_LOG, "n3", XID_79)
    story.wait(
        "the program is told of the next one, and of nothing twice", lambda: told(story) == ["", "n2", "n3"], 45.0
    )
    story.wait("n1's agent is back", lambda: verdict(story, "n1") == "fine", 20.0)
    for node in ("n2", "n3"):
        story.wait(f"{node} is as before", partial(is_only_reported, story, node), 20.0)
    assert story.cases() == []
