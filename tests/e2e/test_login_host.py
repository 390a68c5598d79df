"""From a login host: users ask for their jobs at `head.users_http`, and munged says who they are."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from steward.client import Client, NotThere
from steward_bed.bed import Bed
from steward_bed.beds import reset
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story

OWNER, STRANGER = "nobody", "daemon"
TOLD = "ValueError: bad learning rate of patient 4711"
"""A line that Steward knows as a fault of the job's own; only its user and admins may read it."""


@pytest.fixture(scope="module")
def private_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Its Slurm shows nobody the jobs of others."""
    yield from brought_up(request, nodes=1, steward=True, slurm_conf="PrivateData=jobs\n")


@pytest.fixture
def private(private_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    reset(private_bed)
    with own_place(private_bed, request) as place:
        yield Story(private_bed, place)


def address(story: Story) -> str:
    """For users alone."""
    head = tomllib.loads(Path(story.bed.env["STEWARD_CONFIG"]).read_text())["head"]
    host = urlsplit(story.bed.env.get("STEWARD_URL", "http://127.0.0.1")).hostname
    return f"http://{host}:{head['users_http'].rpartition(':')[2]}"


def client(story: Story, user: str) -> Client:
    """What `steward` asks with when `user` runs it on another machine; his credentials are munged's own."""
    cluster = tomllib.loads(Path(story.bed.env["STEWARD_CONFIG"]).read_text())["cluster"]
    socket = [f"--socket={cluster['munge_socket']}"] if "munge_socket" in cluster else []

    def prove(payload: bytes) -> str:
        return story.bed.run(["munge", *socket, "--string", payload.decode()], user=user).text.strip()

    return Client(address(story), prove)


def failed(story: Story) -> str:
    """A job of OWNER that failed by itself."""
    script = story.script("train.sh", f"echo 'Traceback (most recent call last):'; echo '{TOLD}'; sleep 2; exit 1\n")
    job = story.submit(script, "--auto-resume=1", "-N1", user=OWNER)
    story.wait_end(job)
    story.wait("it is explained", lambda: "not resumed" in story.explain(str(job)))
    return str(job)


def explained(asker: Client, job: str) -> str:
    return "\n".join(asker.explain_job(job)["lines"])


def jobs_of(asker: Client) -> list[str]:
    return [str(job["id"]) for job in asker.array("/v1/jobs")]


def test_a_user_reads_his_own_job_whole_and_others_read_what_slurm_shows(story: Story) -> None:
    job = failed(story)
    owner, stranger = (client(story, user) for user in (OWNER, STRANGER))
    own, others = explained(owner, job), explained(stranger, job)
    assert ("not resumed" in own, "not resumed" in others) == (True, True)
    assert (TOLD in own, TOLD in others) == (True, False)
    assert job in jobs_of(owner)
    assert job in jobs_of(stranger)
    assert owner.report(job=int(job))["jobs"][0]["user"] == OWNER
    assert len(owner.job_history(int(job))) == 1


def test_a_login_host_has_jobs_and_changes_nothing_not_even_for_root(story: Story) -> None:
    asked = ["steward", "--url", address(story)]
    assert story.bed.run([*asked, "jobs"]).text
    for words in (["status"], ["nodes"], ["explain", "n1"], ["pause", "why"]):
        refused = story.bed.run([*asked, *words], check=False)
        assert (refused.returncode, "run this on the controller" in refused.error_text) == (1, True), words
    assert not story.get("/v1/status")["paused"]


def test_where_slurm_hides_jobs_a_stranger_learns_nothing_of_them_and_their_user_and_root_do(private: Story) -> None:
    job = failed(private)
    owner, stranger, admin = (client(private, user) for user in (OWNER, STRANGER, ""))
    assert private.bed.run(["squeue", "-h", "-t", "all"], user=STRANGER).text.strip() == ""
    assert (jobs_of(stranger), jobs_of(owner), jobs_of(admin)) == ([], [job], [job])
    assert stranger.report()["jobs"] == []
    for look in (
        lambda: stranger.explain_job(job),
        lambda: stranger.report(job=int(job)),
        lambda: stranger.job_history(int(job)),
    ):
        with pytest.raises(NotThere):
            look()
    assert TOLD in explained(owner, job)
    assert TOLD in explained(admin, job)
    assert len(owner.report()["jobs"]) == len(owner.job_history(int(job))) == 1
