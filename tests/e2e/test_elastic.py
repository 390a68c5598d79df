"""Jobs that may grow: what a script is told, who starts what, and what a replica job is."""

import contextlib
import importlib.util
import pwd
import sys
from pathlib import Path

import pytest

from steward.adapters.node.elastic_start import ElasticStarter, Place
from steward.model.elastic import replica_comment
from steward.model.ids import JobId
from steward.testbed.faults import FaultKind
from tests.e2e.elastic_processes import EXAMPLE, Line
from tests.e2e.elastic_processes import told as told_by
from tests.e2e.story import Story

USER = "nobody"
KEEP_EVERY = 20
TELLS = """
out=out.$STEWARD_ELASTIC_ROLE.$SLURM_JOB_ID
{ env | grep ^STEWARD_ELASTIC; id -u; echo "args=$*"; } >$out.new
mv $out.new $out
sleep 120
"""


def told(story: Story, role: str, job: int) -> dict[str, str]:
    """What the script of that job has found in its environment."""
    path = story.dir / f"out.{role}.{job}"
    story.wait(f"the script of {role} {job} runs", path.exists, 60.0)
    return dict(line.partition("=")[::2] for line in path.read_text().splitlines())


def _coordinator_uids(run: int) -> list[int]:
    """Whose processes coordinate that run; those that have not become their user yet are left out."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            words = status.with_name("cmdline").read_bytes().split(b"\0")
            if b"coordinate" in words and str(run).encode() in words and b"-m" in words:
                found += [int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("Uid:")]
    return [uid for uid in found if uid]


def test_a_replica_runs_the_bases_script_as_its_user_and_is_found_by_its_comment(story: Story) -> None:
    uid = pwd.getpwnam(USER).pw_uid
    story.dir.chmod(0o777)
    script = story.script("train.sh", TELLS)
    base = story.submit(script, "-N1", "--elastic=3,grace=20", "--job-name=my run", user=USER)
    found = told(story, "base", base)
    assert found["STEWARD_ELASTIC_RUN"] == str(base)
    assert found["STEWARD_ELASTIC"] == "3,grace=20"
    assert len(found["STEWARD_ELASTIC_TOKEN"]) == 32
    assert found[str(uid)] == ""

    story.wait("the coordinator of the run listens as its user", lambda: _coordinator_uids(base) == [uid], 60.0)
    story.hurt(FaultKind.KILL_HEAD)  # it would end a replica that it did not ask for
    place = Place(run=JobId(base), uid=uid, folder=story.dir / "elastic", port=1, token=found["STEWARD_ELASTIC_TOKEN"])
    starter = ElasticStarter(str(story.bed.env["SLURM_CONF"]))
    asked = {"nodes": "1", "comment": replica_comment(JobId(base), "r1"), "grace": "20", "address": "127.0.0.1:1"}
    for _ in range(2):  # the second one changes nothing
        starter.submit(place, asked)
    listed = story.bed.run(["squeue", "--noheader", "--format=%A %k %u %j %D"]).text.splitlines()
    (replica,) = [line for line in listed if f"steward-elastic:{base}:r1" in line]
    assert replica.split(" ", 1)[1] == f"steward-elastic:{base}:r1 {USER} my run.r 1"
    job = int(replica.split()[0])
    mine = told(story, "replica", job)
    assert (mine["STEWARD_ELASTIC_RUN"], mine["STEWARD_ELASTIC_TOKEN"]) == (str(base), place.token)
    assert mine[str(uid)] == ""
    assert mine["args"] == found["args"]
    assert "STEWARD_ELASTIC_SUBMIT" not in mine
    story.bed.run(["scancel", str(job)])
    story.wait("the replica is over", lambda: story.job(job).state == "CANCELLED", 60.0)
    story.bed.run(["scancel", str(base)])
    story.wait("its coordinator ends with the base", lambda: _coordinator_uids(base) == [], 90.0)


def steps_of(story: Story) -> list[Line]:
    return [line for line in told_by(story.dir / "run") if line["what"] == "step"]


def sizes_of(story: Story) -> list[int]:
    """In nodes, of each generation that began to train."""
    return [int(line["world"]) for line in told_by(story.dir / "run") if line["what"] == "begun"]


def trains_at(story: Story, size: int, after: int, deadline_s: float = 60.0) -> None:
    """A generation of that size, begun after so many others, has made a step."""

    def is_there() -> bool:
        begun = [line for line in told_by(story.dir / "run") if line["what"] == "begun"][after:]
        mine = {int(line["generation"]) for line in begun if line["world"] == size}
        return any(line["generation"] in mine for line in steps_of(story))

    story.wait(f"the run trains on {size} nodes (so far: {sizes_of(story)})", is_there, deadline_s)


def replicas_of(story: Story, run: int) -> dict[int, str]:
    """Its replica jobs that run: id -> node."""
    listed = story.bed.run(["squeue", "--noheader", "--states=RUNNING", "--format=%A|%k|%N"]).text.splitlines()
    words = [line.strip().split("|") for line in listed]
    return {int(id): node for id, comment, node in words if comment.startswith(f"steward-elastic:{run}:")}


@pytest.mark.timeout(600)
def test_a_training_grows_by_itself_and_gives_way_to_a_job_that_needs_the_node(story: Story) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.fail("torch is not installed: tools/setup torch")
    story.dir.chmod(0o777)
    train = story.script("train.sh", (EXAMPLE.with_name("train.sh")).read_text())
    env = f"ALL,PYTHON={sys.executable},TRAIN_DIR={EXAMPLE.parent}"
    options = ("-N2", "--exclude=n4,n5,n6", "--elastic=3,grace=15,settle=0,faulty=1,snooze=1,backoff=1")
    words = (str(story.dir / "run"), "--steps=100000", "--step-s=0.1", f"--keep-every={KEEP_EVERY}")
    base = story.submit(train, *options, f"--export={env}", arguments=words)
    trains_at(story, 2, after=0)
    trains_at(story, 3, after=1)  # n3 was idle
    assert list(replicas_of(story, base).values()) == ["n3"], "it shares no node with the run"

    options = ("-N1", "--exclusive", "--exclude=n4,n5,n6")
    other = story.submit(story.script("other.sh", "sleep 5"), *options)
    story.wait_end(other, 60.0)
    assert story.job(other).state == "COMPLETED"
    trains_at(story, 2, after=2)
    assert sizes_of(story)[:3] == [2, 3, 2]
    story.bed.run(["scancel", str(base)])
