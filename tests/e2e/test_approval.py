"""`repair.mode = "ask"`: the job of a dead node runs on elsewhere; the machine is replaced when a person says yes."""

from collections.abc import Iterator

import pytest
import requests

from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story, task_script


@pytest.fixture(scope="module")
def asking(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """A cluster of n1..n4 whose head asks before each repair."""
    yield from brought_up(request, nodes=4, steward=True, settings={"repair": {"mode": "ask"}})


@pytest.fixture
def story(asking: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    with own_place(asking, request) as place:
        yield Story(asking, place)


def test_the_job_runs_on_and_the_dead_node_is_replaced_only_after_a_yes(story: Story) -> None:
    task = task_script(story)
    script = story.script("train.sh", f"srun -N2 -n2 bash {task}\n")
    job = story.submit(script, "--auto-resume=1", "-N2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    victim = story.lines("started")[0].split()[0].split(":")[1]
    before = story.instance(victim)
    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)

    story.wait("both tasks run again elsewhere", lambda: len(story.lines("started")) == 4, 60.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait(
        "people are asked", lambda: [one["node"] for one in story.events("case.asked", since=hurt_at)] == [victim]
    )
    assert "DOWN" in story.node_state(victim)

    story.hurt(FaultKind.KILL_HEAD)
    story.hurt(FaultKind.START_HEAD)
    case = story.wait_case(victim, "release", since=hurt_at)
    said = f"{victim} waits for your approval to replace its machine: `steward approve {case['number']}`."
    story.wait("the head says what it waits for, also after its death", lambda: said in story.explain(victim))
    assert story.instance(victim) == before
    assert (
        f"{victim} waits for your approval: steward approve {case['number']}"
        in story.bed.run(["steward", "status"]).text
    )
    assert f"steward approve {case['number']}" in requests.get(story.bed.env["STEWARD_URL"], timeout=10).text

    wrong = story.bed.run(["steward", "approve", "c999"], check=False)
    assert (
        f"c999 is neither a case nor a node with a case. These wait for approval: {case['number']} ({victim})."
        in wrong.stderr.decode()
    )
    story.bed.run(["steward", "approve", case["number"]])
    closed = story.wait_case(victim, "closed", since=hurt_at)
    assert closed["approved_by"]
    assert story.instance(victim) != before
    story.wait("it takes jobs again", lambda: story.node_state(victim) == "IDLE")
