"""One ordinary user does all that he can to take nodes and jobs away from others, on real Slurm."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from steward_bed.faults import FaultKind
from tests.e2e import hostile_user
from tests.e2e.story import Story, task_script

USER = "nobody"
SECONDS = 9
VICTIM = "n6"


def _program(story: Story) -> list[str]:
    """A copy that the user can read, run by the system's Python."""
    path = story.dir / "hostile_user.py"
    shutil.copy(Path(hostile_user.__file__), path)
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
