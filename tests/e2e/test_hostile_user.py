"""One ordinary user does all that he can to take nodes and jobs away from others, on real Slurm."""

import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from steward.adapters import process
from steward.model.ids import NodeName
from steward_bed.faults import FaultKind
from steward_bed.layout import Layout
from tests.e2e import hostile_relay, hostile_user
from tests.e2e.on_node import agent_of
from tests.e2e.story import Story, task_script

USER = "nobody"
SECONDS = 9
VICTIM = "n6"


def _program(story: Story, module: ModuleType = hostile_user) -> list[str]:
    """A copy that the user can read, run by the system's Python."""
    assert module.__file__ is not None
    path = story.dir / Path(module.__file__).name
    shutil.copy(module.__file__, path)
    path.chmod(0o755)
    return ["/usr/bin/python3", str(path)]


def test_one_user_takes_no_node_and_no_job_away_from_others(story: Story) -> None:
    """Half-open connections to slurmd, lines that the head would refuse, asks about another's job, and two jobs whose
    fields no list and no name is like: beside it a node dies, and its job runs again as ever."""
    began, task = time.time(), task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2", f"-x{VICTIM}")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    wait = story.script("wait.sh", "sleep 600\n")
    odd = story.submit(wait, "--hold", user=USER)
    named = story.submit(wait, "--hold", "--job-name=(null)", user=USER)
    story.bed.run(["scontrol", "update", f"jobid={odd}", "excnodelist=n1,"], user=USER)
    port = story.node_field(VICTIM, "Port")
    sockets = [str(story.bed.spec.dir / "run" / f"agent-n{number}.sock") for number in range(1, 7)]
    with ThreadPoolExecutor(1) as beside:
        evil = beside.submit(
            story.bed.run, [*_program(story), str(SECONDS), port, str(job), *sockets], user=USER, timeout_s=90.0
        )
        time.sleep(3.0)
        dead = story.job(job).batch_host
        hurt_at = story.hurt(FaultKind.KILL_NODE, dead)
        story.wait("its job runs again", lambda: len(story.lines("started")) == 4)
        assert "done" in evil.result().text
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait_case(dead, "closed", since=hurt_at)
    assert {case["node"] for case in story.cases(since=began) if case["marked"]} == {dead}
    assert story.node_state(VICTIM) == "IDLE"
    assert story.silent_agents() == []
    about = [event for event in story.events(since=began) if event["job"] == job]
    assert len(about) < 30, about
    assert len(story.events("ask.foreign", since=began)) <= len(sockets)
    story.bed.run(["scancel", str(odd), str(named)])


def test_a_users_script_in_its_coordinators_place_costs_the_agent_and_other_jobs_of_its_node_nothing(
    story: Story,
) -> None:
    """It says NaN, lists that are too long together, and what nests too deeply, again and again. Beside it a node of
    another user's job dies: the step runs again where it was asked for, by the agent that hears all this."""
    began, task = time.time(), task_script(story)
    story.dir.chmod(0o1777)
    argv = " ".join([*_program(story, hostile_relay), str(story.dir)])
    # the other job's output is a file of root's
    elastic = ("-N1", "-wn1", "--elastic=3,grace=5", "-o/dev/null")
    evil = story.submit(story.script("evil.sh", f"exec {argv}\n"), *elastic, user=USER)
    agent = agent_of(story.bed, "n1")
    train = story.script("train.sh", f"srun -N2 -n2 bash {task}\n")
    options = ("--auto-resume=1", "-N3", "-wn1,n2,n3", "--no-kill", "--ntasks-per-node=1")
    job = story.submit(train, *options)
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    kinds = sorted(hostile_relay.KINDS)
    story.wait("the agent has heard each word", lambda: {*story.lines("said")} >= {*kinds}, 40.0)
    seed = story.job(job).batch_host
    assert seed == "n1"
    story.hurt(FaultKind.KILL_NODE, next(node for node in nodes_of(story) if node != seed))
    story.wait("both tasks run again", lambda: len(story.lines("started")) == 4, 30.0)
    heard = len(story.lines("said"))
    story.wait("the agent still listens to the script", lambda: len(story.lines("said")) > heard + len(kinds), 40.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    assert story.job(job).restarts == 0, "its step ran again in place, by an answer that n1's agent carried"
    assert agent_of(story.bed, "n1") == agent, "the agent has not ended"
    assert "n1" not in story.silent_agents()
    assert not [case for case in story.cases("n1", since=began) if case["marked"]]
    assert story.job(evil).state == "RUNNING"
    (story.dir / "over").touch()
    story.wait_end(evil)


FILLS = """cd "$(dirname "$STEWARD_PROGRESS_FILE")" || exit 3
for number in $(seq 200); do : >$number || break; done 2>/dev/null
touch {folder}/filled
while [ ! -e {folder}/over ]; do sleep 0.2; done
"""


@contextmanager
def small(folder: Path) -> Iterator[None]:
    """It is a file system of its own with room for 64 files, as `run-steward-jobs.mount` makes a larger one."""
    options = "size=1M,nr_inodes=64,mode=0755"
    folder.mkdir(mode=0o755, exist_ok=True)
    process.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], timeout_s=10.0)
    try:
        yield
    finally:
        process.run(["umount", "--lazy", str(folder)], timeout_s=10.0)


def test_a_user_who_fills_the_folders_of_jobs_keeps_no_other_job_of_the_node_from_coming_back(story: Story) -> None:
    """The next job gets no folder there, and its step still runs again where a node dies."""
    task = task_script(story)
    story.dir.chmod(0o1777)
    folders = Layout(root=story.bed.spec.dir).node(NodeName("n1")) / "run/jobs"
    with small(folders):
        fills = story.script("fills.sh", FILLS.format(folder=story.dir))
        evil = story.submit(fills, "-N1", "-wn1", "--auto-resume=1", "-o/dev/null", user=USER)
        story.wait("the folders are full", lambda: (story.dir / "filled").exists())
        assert os.statvfs(folders).f_favail == 0
        train = story.script("train.sh", f"srun -N2 -n2 bash {task}\n")
        options = ("--auto-resume=1", "-N3", "-wn1,n2,n3", "--no-kill", "--ntasks-per-node=1")
        job = story.submit(train, *options)
        story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
        assert not list(folders.glob(f"{job}-*"))
        story.hurt(FaultKind.KILL_NODE, next(node for node in nodes_of(story) if node != "n1"))
        story.wait("both tasks run again", lambda: len(story.lines("started")) == 4, 30.0)
        (story.dir / "go").touch()
        assert story.wait_end(job).state == "COMPLETED"
        assert (story.job(job).restarts, story.job(evil).state) == (0, "RUNNING")
        assert "n1" not in story.silent_agents()
        (story.dir / "over").touch()
        story.wait_end(evil)


def nodes_of(story: Story) -> list[str]:
    """Where the tasks of the story run."""
    return [line.split()[0].split(":")[1] for line in story.lines("started")]
