"""More nodes break than a breaker lets be out: the rest is only reported, users see it, and a person lets it go on."""

import json
import time
from typing import Any

from steward_bed.faults import FaultKind
from tests.e2e.story import XID_79, Story

MCE = "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: be00000000800400"
OUT, SPARED, WELL = ("n1", "n2"), "n3", {"n4", "n5", "n6"}


def breakers(story: Story) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(story.bed.run(["steward", "breaker", "list", "--json"]).text)
    return listed


def features(story: Story) -> dict[str, str]:
    shown = story.bed.run(["sinfo", "--noheader", "--Node", "--format=%N %b"]).text
    return dict(line.split() for line in shown.splitlines())


def test_a_breaker_spares_the_third_node_until_a_person_resets_it_and_users_can_avoid_it(story: Story) -> None:
    began = time.time()
    instance = story.instance(SPARED)
    story.hurt(FaultKind.REFUSE_LAUNCH)  # the first two stay out
    story.hurt(FaultKind.KERNEL_LOG, "n1", MCE)
    story.hurt(FaultKind.FAIL_CHECK, "n2", "broken in its own way")
    story.wait("two are out", lambda: all("DRAIN" in story.node_state(node) for node in OUT))
    story.hurt(FaultKind.KERNEL_LOG, SPARED, XID_79)
    story.wait("a breaker is tripped", lambda: breakers(story))

    assert {one["scope"] for one in breakers(story)} <= {"all", "group:main"}
    assert "steward breaker reset" in story.bed.run(["steward", "--json", "breaker", "list"]).text
    assert any(event["kind"] == "breaker.tripped" for event in story.events(since=began))
    users_choose(story)
    assert story.node_state(SPARED) == "IDLE"
    assert story.instance(SPARED) == instance

    story.hurt(FaultKind.ALLOW_LAUNCH)
    story.bed.run(["steward", "breaker", "reset", "--yes"])
    for node in (*OUT, SPARED):
        story.wait_case(node, "closed", 90.0, since=began)
    assert breakers(story) == []


def users_choose(story: Story) -> None:
    """The spared node takes jobs, but none that wants a node whose checks passed."""
    story.wait("Slurm shows which failed", lambda: "HealthCheck:Failed" in features(story)[SPARED])
    assert {node for node, words in features(story).items() if "HealthCheck:Passed" in words} - set(OUT) == WELL
    sleeps = story.script("job.sh", "sleep 600\n")
    picky = story.submit(sleeps, "-C", "HealthCheck:Passed", "-N3", "--exclusive")
    story.wait_state(picky, "RUNNING")
    another = story.submit(sleeps, "-C", "HealthCheck:Passed", "-N1")
    anyone = story.submit(story.script("short.sh", "echo $SLURMD_NODENAME >ran\n"), "-N1")
    assert story.wait_end(anyone).state == "COMPLETED"
    assert story.lines("ran") == [SPARED]
    assert story.job(another).state == "PENDING"
    story.bed.run(["scancel", str(picky), str(another)])
