"""Jobs that may grow: what a script is told, who starts what, and what a replica job is."""

import pwd

from steward.adapters.elastic_start import ElasticStarter, Place
from steward.model.elastic import replica_comment
from steward.model.ids import JobId
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

    place = Place(run=JobId(base), uid=uid, folder=story.dir / "elastic", port=1, token="abc")
    starter = ElasticStarter(str(story.bed.env["SLURM_CONF"]))
    asked = {"nodes": "1", "comment": replica_comment(JobId(base), "r1"), "grace": "20", "address": "127.0.0.1:1"}
    for _ in range(2):  # the second one changes nothing
        starter.submit(place, asked)
    listed = story.bed.run(["squeue", "--noheader", "--format=%A %k %u %j %D"]).text.splitlines()
    (replica,) = [line for line in listed if f"steward-elastic:{base}:r1" in line]
    assert replica.split(" ", 1)[1] == f"steward-elastic:{base}:r1 {USER} my run.r 1"
    job = int(replica.split()[0])
    mine = told(story, "replica", job)
    assert (mine["STEWARD_ELASTIC_RUN"], mine["STEWARD_ELASTIC_TOKEN"]) == (str(base), "abc")
    assert mine[str(uid)] == ""
    assert mine["args"] == found["args"]
    assert "STEWARD_ELASTIC_SUBMIT" not in mine
    starter.cancel(place, JobId(job))
    assert story.wait_end(job).state == "CANCELLED"
    story.bed.run(["scancel", str(base)])
