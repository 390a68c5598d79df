"""A training that stops stepping is found, looked at, and brought back."""

import time

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
