"""A training that stops stepping is found, looked at, and brought back."""

import json
import time

import pytest

from steward.adapters.process import Completed
from tests.e2e.story import Story

TRAIN = """
import faulthandler, json, os, pathlib, signal, time

progress = pathlib.Path(os.environ["STEWARD_PROGRESS_FILE"])
faulthandler.register(signal.SIGUSR1, file=open(f"{os.environ['STEWARD_STACKS_FILE']}.{os.getpid()}", "a"))
again = os.environ["STEWARD_RESUME_COUNT"] != "0"

def tell(step):
    draft = progress.with_suffix(".tmp")
    draft.write_text(json.dumps({"step": step, "checkpoint": f"/ckpt/{step}", "checkpoint_step": step}))
    draft.replace(progress)

def collective_that_never_ends():
    with open("stuck", "a") as out:
        print(os.getpid(), file=out)
    while True:
        time.sleep(1)

for step in range(1, 5):
    tell(step)
    time.sleep(0.3)
if not again:
    collective_that_never_ends()
with open("ended", "a") as out:
    print(os.environ["STEWARD_RESUME_COUNT"], os.environ["STEWARD_LAST_STEP"], file=out)
"""

STEPS = """
import json, os, pathlib, time

progress = pathlib.Path(os.environ["STEWARD_PROGRESS_FILE"])
for step in range(1, 5):
    draft = progress.with_suffix(".tmp")
    draft.write_text(json.dumps({"step": step}))
    draft.replace(progress)
    with open("steps", "a") as out:
        print(step, file=out)
    for _ in range(30):  # of time in which it is not suspended
        time.sleep(0.1)
"""


def test_a_training_that_stops_stepping_is_found_its_stacks_kept_and_it_is_resumed(story: Story) -> None:
    (story.dir / "train.py").write_text(TRAIN)
    script = story.script("train.sh", f"srun -n1 python3 {story.dir}/train.py\n")
    job = story.submit(script, "--auto-resume=any:1,age=0,hang=10,stacks=USR1", "-N2")
    story.wait("it hangs", lambda: story.lines("stuck"), 15.0)

    story.wait("that is found", lambda: _told(story, job, "job.hang"), 20.0)
    story.wait("its stacks are there, or late", lambda: _told(story, job, "job.decided"), 25.0)
    story.wait("it is resumed and ends well", lambda: story.lines("ended") == ["1 4"], 15.0)
    assert story.wait_end(job).state == "COMPLETED"
    assert story.job(job).restarts == 1
    assert "no step since step 4" in _told(story, job, "job.decided")[0]
    kept = _bundle(story, f"{job}-0-4").text
    assert "collective_that_never_ends" in kept
    assert "waits in" in kept


def test_a_training_that_was_suspended_is_not_taken_for_one_that_hangs(story: Story) -> None:
    (story.dir / "steps.py").write_text(STEPS)
    script = story.script("steps.sh", f"srun -n1 python3 {story.dir}/steps.py\n")
    job = story.submit(script, "--auto-resume=any:1,age=0,hang=10", "-N1")
    story.wait("it steps", lambda: story.lines("steps") == ["1", "2"], 15.0)
    story.bed.run(["scontrol", "suspend", str(job)])
    time.sleep(14.0)  # longer than it may take for a step
    story.bed.run(["scontrol", "resume", str(job)])
    assert story.wait_end(job).state == "COMPLETED"
    assert story.lines("steps") == ["1", "2", "3", "4"]
    assert _told(story, job, "job.hang") == []
    assert story.job(job).restarts == 0


def _told(story: Story, job: int, kind: str) -> list[str]:
    return [event["text"] for event in story.events(kind) if event["job"] == job]


def _bundle(story: Story, name: str) -> Completed:
    """What the head has kept, of all nodes."""
    places = ["/var/lib/steward", str(story.bed.shared.parent)]
    return story.bed.run(["find", *places, "-path", f"*/bundles/{name}/*", "-exec", "cat", "{}", "+"], check=False)


RANKS = """
import ctypes, os, pathlib, signal, sys, time

rank, again = int(os.environ["SLURM_PROCID"]), os.environ["STEWARD_RESUME_COUNT"] != "0"
with open(f"ran.{rank}", "a") as out:
    print(os.environ["SLURMD_NODENAME"], file=out)
began = time.monotonic()
while time.monotonic() < began + (1.0 if again else 25.0):  # steps that use some CPU
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        pass
    time.sleep(0.2)
if rank == 1 and not again:
    pathlib.Path("stopped").touch()
    if sys.argv[1] == "signal":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif ctypes.CDLL(None).vfork() == 0:  # its parent waits in the kernel, in state D
        while True:
            time.sleep(1)
mine, other = (pathlib.Path(f"done.{number}") for number in (rank, 1 - rank))
mine.touch()
while not other.exists():  # the collective
    time.sleep(0.5)
"""


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("how", "text"), [("signal", "stopped by a signal"), ("kernel", "blocked in the kernel")])
def test_a_job_of_which_one_rank_is_stopped_runs_again_without_that_ranks_node(
    story: Story, how: str, text: str
) -> None:
    """It tells no step: that it hangs, and whose fault it is, is seen from outside."""
    (story.dir / "ranks.py").write_text(RANKS)
    script = story.script("ranks.sh", f"srun -N2 -n2 --kill-on-bad-exit=0 python3 {story.dir}/ranks.py {how}\n")
    job = story.submit(script, "--auto-resume=1,hang=30", "-N2", "--exclusive")
    story.wait("a rank is stopped", lambda: (story.dir / "stopped").exists(), 60.0)
    story.wait("that is found", lambda: _told(story, job, "job.hang"), 75.0)
    story.wait("both ranks run again", lambda: all(len(story.lines(f"ran.{rank}")) == 2 for rank in (0, 1)), 45.0)
    assert story.wait_end(job).state == "COMPLETED"
    culprit = story.lines("ran.1")[0]
    assert culprit not in (story.lines("ran.0")[1], story.lines("ran.1")[1])
    (told,) = _told(story, job, "job.hang")
    assert f"rank 1 of step 0 ({culprit}, process " in told
    assert text in told
    assert f"{culprit}: rank 1 of step 0" in _told(story, job, "job.decided")[0]


MOVES = """
import os, pathlib, socket, sys, threading, time

what, seconds = sys.argv[1], float(sys.argv[2])
until = time.monotonic() + 3.0
while time.monotonic() < until:  # what never used CPU has not begun
    pass

def pump(bytes_per_s):
    listener = socket.create_server(("127.0.0.1", 0))
    to, served = socket.create_connection(listener.getsockname()), listener.accept()[0]

    def read():
        while served.recv(1 << 22, socket.MSG_WAITALL):
            pass

    threading.Thread(target=read, daemon=True).start()
    return to, bytes(bytes_per_s)

if what == "waits" or (what == "downloads" and os.environ["SLURM_PROCID"] != "0"):
    time.sleep(seconds)
else:  # few large pieces: next to no CPU
    to, piece = pump({"downloads": 1_000_000, "moves": 5_000_000}[what])
    end = time.monotonic() + seconds
    pathlib.Path(what).touch()
    while time.monotonic() < end:
        to.sendall(piece)
        time.sleep(1.0)
"""


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_job_whose_ranks_all_wait_is_told_beside_a_user_who_moves_much_and_one_that_downloads_is_not(
    story: Story,
) -> None:
    (story.dir / "moves.py").write_text(MOVES)
    jobs: dict[str, int] = {}
    there: list[str] = []
    for what in ("moves", "downloads", "waits"):
        script = story.script(f"{what}.sh", f"srun -n2 python3 {story.dir}/moves.py {what} 600\n")
        mode = [] if what == "moves" else ["--auto-resume=1,hang=30"]
        jobs[what] = story.submit(script, *mode, "-N1", "-n2", *there)
        if what == "moves":
            there = [f"--nodelist={story.wait_state(jobs[what], 'RUNNING').batch_host}"]
            story.wait("its network is busy", lambda: (story.dir / "moves").exists(), 30.0)
    story.wait("the job that hangs is told", lambda: _told(story, jobs["waits"], "job.hang"), 240.0)
    (told,) = _told(story, jobs["waits"], "job.hang")
    assert "2 ranks using neither CPU nor GPU" in told
    for what in ("downloads", "moves"):  # they began before it
        assert _told(story, jobs[what], "job.hang") == []
        assert "do no work" not in story.explain(str(jobs[what]))
    for job in jobs.values():
        story.bed.run(["scancel", str(job)])


RULES = {
    "enabled": True,
    "logMonitoringConfiguration": [
        {"name": "steps", "logPattern": "step [0-9]+", "expectedRecurringFrequencyInSeconds": 20},
        {"name": "speed", "logPattern": "tokens/s ([0-9.]+)", "metricThreshold": 100, "operator": "lt"},
    ],
}

WRITES = """
import sys, time

for step in range(1, 160):
    print(f"step {step} tokens/s {5000 if step < 20 else 12.5}", flush=True)
    time.sleep(0.5)
while True:  # it works, and writes no more
    time.sleep(0.02)
    sum(range(100000))
"""


@pytest.mark.long
@pytest.mark.timeout(500)
def test_a_jobs_own_rules_for_its_output_are_read_and_told_as_hyperpods_users_write_them(story: Story) -> None:
    (story.dir / "rules.json").write_text(json.dumps(RULES))
    (story.dir / "bad.json").write_text('{"enabled": true, "logMonitoringConfiguration": [{"name": "a"}]}')
    (story.dir / "writes.py").write_text(WRITES)
    for path in story.dir.iterdir():
        path.chmod(0o644)
    script = story.script("writes.sh", f"srun -n1 python3 {story.dir}/writes.py\n")
    good, bad = (
        story.submit(script, "-N1", f"--export=ALL,HYPERPOD_HANG_RULES={story.dir}/{name}.json")
        for name in ("rules", "bad")
    )
    story.wait("rules that cannot be used are told", lambda: _told(story, bad, "job.rule"), 90.0)
    assert "rule 'a': logPattern is no text of 1 to 400 characters" in _told(story, bad, "job.rule")[0]
    story.wait("the slow number is told", lambda: _told(story, good, "job.rule"), 120.0)
    assert "12.5 is below 100" in _told(story, good, "job.rule")[0]
    story.wait("the line that is late is told", lambda: _told(story, good, "job.hang"), 180.0)
    (text,) = _told(story, good, "job.hang")
    assert "no line came in its output for which its own rule 'steps' allows 20 s" in text
    assert _told(story, bad, "job.hang") == []
    explained = story.bed.run(["steward", "explain", str(good)], check=False).text
    assert "Its output is watched by its own rules (2 rules)." in explained
    for job in (good, bad):
        story.bed.run(["scancel", str(job)])
