"""What an admin asks for through Slurm is done, to the letter; what an admin did to nodes is left alone.

Every node has its own story and all begin at the same moment: each test waits for the end of one of them.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from steward_bed.bed import Bed
from steward_bed.beds import reset
from steward_bed.faults import FaultKind
from tests.e2e.conftest import own_place
from tests.e2e.story import XID_79, Story

RESERVED, OURS, ANNS = "n2", "anns", "disk swap, Ann"
REPAIR_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """`at` is Unix time; `job` runs on n6 until the file `go` is there; `before` is each node's instance."""

    at: float
    job: int
    before: dict[str, str]
    reservation: str


@pytest.fixture(scope="module")
def story(bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    reset(bed)
    with own_place(bed, request) as place:
        yield Story(bed, place)
    bed.run(["scontrol", "delete", f"reservationname={OURS}"], check=False)


@pytest.fixture(scope="module")
def begun(story: Story) -> Begun:
    """n6 busy and to be replaced, n5 to be rebooted, n4 nearly, n3 drained by Ann, n2 in a reservation and broken."""
    job = story.submit(story.script("job.sh", f"while [ ! -e {story.dir}/go ]; do sleep 0.1; done\n"), "-w", "n6")
    story.wait_state(job, "RUNNING")
    words = ["starttime=now", "duration=60", f"nodes={RESERVED},n3", "users=root", "flags=ignore_jobs"]
    story.bed.run(["scontrol", "create", "reservation", f"reservationname={OURS}", *words])
    begun = Begun(
        at=time.time(),
        job=job,
        before={each.name: each.instance for each in story.bed.status().nodes},
        reservation=reservation(story),
    )
    take_out(story, "n6", "fail", "Action:Replace")
    take_out(story, "n5", "down", "Action:Reboot : Not responding")
    take_out(story, "n4", "drain", "action:replace ")
    take_out(story, "n3", "drain", ANNS)
    story.hurt(FaultKind.FAIL_CHECK, "n3", "broken while Ann has it")
    story.hurt(FaultKind.KERNEL_LOG, "n3", XID_79)
    story.hurt(FaultKind.FAIL_CHECK, RESERVED, "broken in a reservation")
    return begun


def take_out(story: Story, node: str, state: str, reason: str) -> None:
    story.bed.run(["scontrol", "update", f"nodename={node}", f"state={state}", f"reason={reason}"])


def reservation(story: Story) -> str:
    shown = story.bed.run(["scontrol", "-o", "show", "reservation", OURS]).text
    return " ".join(word for word in shown.split() if not word.startswith("State="))


def test_action_reboot_is_acted_on_with_the_words_that_slurm_appends(story: Story, begun: Begun) -> None:
    case = story.wait_case("n5", "closed", REPAIR_S, since=begun.at)
    assert (case["trigger"], case["rung"]) == ("admin", "reboot")
    assert story.instance("n5") == begun.before["n5"]
    story.wait("it takes jobs again", lambda: story.node_state("n5") == "IDLE")


def test_a_broken_node_in_a_reservation_of_others_is_repaired_and_the_reservation_stays(
    story: Story, begun: Begun
) -> None:
    story.wait_case(RESERVED, "closed", REPAIR_S, since=begun.at)
    assert story.instance(RESERVED) != begun.before[RESERVED]
    assert reservation(story) == begun.reservation


def test_a_drain_of_others_stays_while_that_very_node_breaks(story: Story, begun: Begun) -> None:
    story.wait("the faults are known", lambda: "xid79" in story.explain("n3") and "Ann" in story.explain("n3"))
    story.wait_case("n5", "closed", REPAIR_S, since=begun.at)
    assert story.node_field("n3", "Reason").startswith(ANNS)
    assert "DRAIN" in story.node_state("n3")
    assert [case for case in story.cases("n3", since=begun.at) if case["marked"]] == []
    assert story.instance("n3") == begun.before["n3"]


def test_action_replace_waits_for_the_job_of_a_busy_node(story: Story, begun: Begun) -> None:
    story.wait_case("n6", "release", since=begun.at)
    assert story.job(begun.job).state == "RUNNING"
    assert story.instance("n6") == begun.before["n6"]
    (story.dir / "go").touch()
    assert story.wait_end(begun.job).state == "COMPLETED"
    assert story.job(begun.job).restarts == 0
    assert story.wait_case("n6", "closed", REPAIR_S, since=begun.at)["rung"] == "replace"
    assert story.instance("n6") != begun.before["n6"]
    story.wait("it takes jobs again", lambda: story.node_state("n6") == "IDLE")


def test_a_near_miss_is_answered_by_a_warning_and_by_nothing_else(story: Story, begun: Begun) -> None:
    def warned() -> list[str]:
        return [str(e["text"]) for e in story.events(since=begun.at) if e["node"] == "n4" and "Action:" in e["text"]]

    story.wait("a warning says what to write", warned)
    assert len(warned()) == 1
    assert story.cases("n4", since=begun.at) == []
    assert story.instance("n4") == begun.before["n4"]
    assert story.node_field("n4", "Reason").startswith("action:replace")
