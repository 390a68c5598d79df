"""Two heads on one MariaDB: the leader dies, is stopped and woken, hands over; the database stands still or is killed;
both are upgraded, one after the other."""

import re
import signal
import time
from collections.abc import Iterator

import pytest

from steward_bed.beds import reset
from steward_bed.faults import FaultKind
from tests.contract.mariadb import missing
from tests.e2e.conftest import a_bed, own_place
from tests.e2e.pair import Pair, a_pair
from tests.e2e.story import Story, task_script

AWAY_S = 15.0
"""Longer than a lease, and than it takes to find a dead node."""


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    if absent := missing():
        pytest.skip(f"no MariaDB: {', '.join(absent)} not installed (mariadb-server-core)")
    with a_pair(lambda settings: a_bed(request, nodes=4, steward=True, settings=settings), {}) as found:
        yield found


@pytest.fixture
def story(pair: Pair, request: pytest.FixtureRequest) -> Iterator[Story]:
    """The first head leads, and the second could take over."""
    pair.let_first_lead()
    reset(pair.bed)
    pair.start_both()
    with own_place(pair.bed, request) as place:
        yield Story(pair.bed, place)


def test_the_leader_dies_with_a_node_and_the_job_runs_again(story: Story, pair: Pair) -> None:
    before = pair.leader()
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    story.hurt(FaultKind.KILL_HEAD)
    story.hurt(FaultKind.KILL_NODE, story.job(job).batch_host)

    story.wait("the job runs again", lambda: len(story.lines("started")) == 4, 60.0)
    assert pair.leader() != before
    assert story.job(job).restarts == 1
    story.hurt(FaultKind.START_HEAD)
    story.wait("the first head follows", pair.is_ready, 40.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"


def test_a_leader_that_is_stopped_and_woken_does_nothing_and_the_other_repairs_its_node(
    story: Story, pair: Pair
) -> None:
    """Its timer ends it while it is stopped."""
    began = story.hurt(FaultKind.KILL_NODE, "n2")
    story.wait("a case is open", lambda: story.cases("n2", since=began), 20.0)
    story.hurt(FaultKind.STOP_HEAD)

    story.wait("the second head has repaired the node", lambda: pair.steps_of("n2", began) == ["closed"], 90.0)
    assert pair.bed.status().services["stewardd"] is False
    story.hurt(FaultKind.START_HEAD)
    story.wait("the first head follows", pair.is_ready, 40.0)
    assert len(story.cases("n2", since=began)) == 1


def test_a_handover_lets_the_other_head_lead(story: Story, pair: Pair) -> None:
    before = pair.leader()
    pair.bed.run(["steward", "head", "handover"])

    story.wait("the other head leads", lambda: pair.leader() not in ("", before), 20.0)


def test_while_the_database_stands_still_no_head_acts_and_the_repair_goes_on_after_it(story: Story, pair: Pair) -> None:
    pair.database.send(signal.SIGSTOP)
    try:
        began = story.hurt(FaultKind.KILL_NODE, "n3")
        story.wait("Slurm has noticed", lambda: story.node_state("n3"), 5.0)
        reason = story.node_field("n3", "Reason")
    finally:
        pair.database.send(signal.SIGCONT)
    assert "steward:" not in reason
    story.wait("a case is closed", lambda: [c["step"] for c in story.cases("n3", since=began)] == ["closed"], 120.0)


def test_mariadb_is_killed_and_comes_back_and_nothing_is_lost_or_done_twice(story: Story, pair: Pair) -> None:
    """Its death finds a job at work, and meets that of a node of the job."""
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    node = story.job(job).batch_host
    said = _said(pair)
    pair.database.send(signal.SIGKILL)
    try:
        began = story.hurt(FaultKind.KILL_NODE, node)
        time.sleep(AWAY_S)
        reason = story.node_field(node, "Reason")
    finally:
        pair.database.start()
    assert "steward:" not in reason
    story.wait("a case is closed", lambda: pair.steps_of(node, began) == ["closed"], 120.0)
    story.wait("the job runs again", lambda: len(story.lines("started")) == 4, 60.0)
    assert story.job(job).restarts == 1
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert len(pair.events("head.leads", began)) <= 1, "the one that led goes on, or the other one leads"
    assert len(pair.cases(node, began)) == 1
    for name, lines in _said(pair).items():
        new = [line for line in lines[len(said[name]) :] if re.search(r"\blease\b|\bdatabase\b", line)]
        assert 1 <= len(new) <= 6, new  # one for each reason, and its end


def _said(pair: Pair) -> dict[str, list[str]]:
    """What each head has logged, by its name."""
    logs = {"first": pair.bed.logs()["stewardd"], "second": pair.second.folder / "stewardd.log"}
    return {name: path.read_text(errors="replace").splitlines() for name, path in logs.items()}


def test_both_heads_are_upgraded_one_after_the_other_while_a_node_is_repaired(story: Story, pair: Pair) -> None:
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    pair.install("0.1.1")
    try:
        pair.second.stop()
        pair.second.start()
        story.wait("the newer build follows", lambda: _versions(pair) == ["0.1.1"] and pair.is_ready(), 40.0)
        began = story.hurt(FaultKind.KILL_NODE, story.job(job).batch_host)
        story.bed.run(["steward", "head", "handover"])
        story.wait("the newer build leads", lambda: pair.leader() == pair.second.name, 20.0)
        pair.start_both()
        assert _versions(pair) == ["0.1.1"]
        story.wait("the job runs again", lambda: len(story.lines("started")) == 4, 60.0)
        assert story.job(job).restarts == 1
        (story.dir / "go").touch()
        assert story.wait_end(job).state == "COMPLETED"
        story.wait("every repair is over", lambda: [c["step"] for c in story.cases(since=began)] == ["closed"], 90.0)
    finally:
        pair.uninstall()


def _versions(pair: Pair) -> list[str]:
    """Those of the heads that follow."""
    return [other["version"] for other in pair.heads()["others"]]
