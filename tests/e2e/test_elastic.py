"""Jobs that may grow: what a script is told, who starts what, and what a replica job is."""

import contextlib
import pwd
from pathlib import Path

from steward.adapters.node.elastic_start import CoordinatorPlace, ElasticStarter
from steward.model.elastic import replica_comment
from steward.model.ids import JobId
from steward_bed.faults import FaultKind
from tests.e2e.story import Story

USER = "nobody"
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


def _coordinator_uids(story: Story, run: int) -> list[int]:
    """Whose processes coordinate that run of this cluster, known by the log of each; those that have not become their
    user yet are left out."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            words = status.with_name("cmdline").read_bytes().split(b"\0")
            log = status.with_name("fd").joinpath("2").readlink()
            if b"coordinate" in words and str(run).encode() in words and log.is_relative_to(story.bed.spec.dir):
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

    story.wait("the coordinator of the run listens as its user", lambda: _coordinator_uids(story, base) == [uid], 60.0)
    story.hurt(FaultKind.KILL_HEAD)  # it would end a replica that it did not ask for
    place = CoordinatorPlace(
        run=JobId(base), uid=uid, folder=story.dir / "elastic", port=1, token=found["STEWARD_ELASTIC_TOKEN"]
    )
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
    story.wait("its coordinator ends with the base", lambda: _coordinator_uids(story, base) == [], 90.0)
