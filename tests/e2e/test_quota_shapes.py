"""Jobs of every shape are counted against their team's quota, and are evicted as a whole."""

from collections.abc import Iterator

import pytest

from tests.e2e.quota_bed import SOON_S, TYPE, QuotaStory

pytestmark = pytest.mark.quotas_stay

GPUS = f"{TYPE}/gpu"
ONE = ("--ntasks=1", "--mem=1G")


def states(quotas: QuotaStory, job: int) -> set[str]:
    """Of all parts or tasks of a job."""
    return set(quotas.bed.run(["squeue", "-h", "-r", "-j", str(job), "-o", "%T"]).text.split())


def in_use(quotas: QuotaStory, team: str) -> int:
    return int(quotas.team(team)[GPUS]["in_use"])


def test_gpus_count_however_they_were_asked_for(quotas: QuotaStory) -> None:
    """Typed or not, by node, by task or by job: five of them are five, and the sixth waits."""
    quotas.wait_in_force(quotas.gpus("owner", 5))
    words = ("--gres=gpu:1", "--gres=gpu:l4:1", "--gpus=1", "--gpus-per-node=l4:1", "--gpus-per-task=1")
    jobs = [quotas.asks("owner", word, "--nodes=1", *ONE) for word in words]
    for job in jobs:
        quotas.wait_state(job, "RUNNING", SOON_S)
    more = [quotas.asks("owner", word, "--nodes=1", *ONE) for word in words[:2]]
    for job in more:
        quotas.wait_says(job, "short of 1 GPU")
    quotas.wait("five GPUs are told as used", lambda: in_use(quotas, "owner") == 5, SOON_S)
    assert [quotas.job(job).state for job in more] == ["PENDING", "PENDING"]


def test_a_job_of_one_to_two_nodes_starts_on_as_many_as_its_team_may_have(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4))
    job = quotas.asks("owner", "--nodes=1-2", "--gres=gpu:l4:4", *ONE)
    quotas.wait_state(job, "RUNNING", SOON_S)
    assert quotas.job(job).fields["NumNodes"] == "1"


@pytest.fixture
def second(quotas: QuotaStory) -> Iterator[str]:
    """Another partition of the same nodes."""
    quotas.bed.run(["scontrol", "create", "partition=second", "nodes=n1,n2", "state=up"])
    yield "second"
    quotas.end(*quotas.jobs)
    quotas.wait("nothing is left", lambda: not quotas.bed.run(["squeue", "-h"]).text, SOON_S)
    quotas.bed.run(["scontrol", "delete", "partition=second"])


def lends(quotas: QuotaStory, second: str) -> tuple[int, int]:
    """Team guest runs a job of its own and one that borrows; each named both partitions."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    own = quotas.sleeps("guest", 4, f"--partition=main,{second}")
    quotas.wait_state(own, "RUNNING", SOON_S)
    lent = quotas.sleeps("guest", 4, f"--partition={second},main")
    quotas.wait_state(lent, "RUNNING", SOON_S)
    assert quotas.job(lent).fields["QOS"] == "stw-guest-b"
    return own, lent


def test_a_job_that_names_two_partitions_borrows_and_is_evicted_as_any(quotas: QuotaStory, second: str) -> None:
    own, lent = lends(quotas, second)
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    quotas.wait_says(lent, f"was evicted for job {mine} of team owner")
    assert quotas.job(own).state == "RUNNING"


def test_an_owners_job_that_names_two_partitions_takes_back_what_is_lent(quotas: QuotaStory, second: str) -> None:
    own, lent = lends(quotas, second)
    mine = quotas.sleeps("owner", 4, f"--partition=main,{second}")
    quotas.wait_state(mine, "RUNNING", SOON_S)
    quotas.wait_says(lent, f"was evicted for job {mine} of team owner")
    assert quotas.job(own).state == "RUNNING"


def test_all_parts_of_a_heterogeneous_job_borrow_and_are_evicted_together(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    own = quotas.sleeps("guest", 3)
    quotas.wait_state(own, "RUNNING", SOON_S)
    parts = ("--gres=gpu:l4:1", "--nodes=1", *ONE, ":", "--gres=gpu:l4:3", "--nodes=1", *ONE)
    lent = quotas.asks("guest", *parts)
    quotas.wait("both parts run", lambda: states(quotas, lent) == {"RUNNING"}, SOON_S)
    quotas.wait("seven GPUs are told as used", lambda: in_use(quotas, "guest") == 7, SOON_S)
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    quotas.wait("both parts wait again", lambda: states(quotas, lent) == {"PENDING"}, SOON_S)
    quotas.wait_says(lent, f"was evicted for job {mine} of team owner")
    assert quotas.job(own).state == "RUNNING"
    quotas.end(mine)
    quotas.wait("both parts run again", lambda: states(quotas, lent) == {"RUNNING"}, SOON_S)


def test_tasks_of_an_array_are_evicted_one_by_one(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    array = quotas.sleeps("guest", 1, "--array=0-8")
    quotas.wait("eight tasks run", lambda: quotas.running_tasks(array) == 8, SOON_S)
    ninth = f"{array}_8"
    quotas.wait("its user reads why the ninth waits", lambda: "short of 1 GPU" in quotas.explain(ninth), SOON_S)
    for left in (7, 6):
        mine = quotas.sleeps("owner", 1)
        quotas.wait_state(mine, "RUNNING", SOON_S)
        assert quotas.running_tasks(array) == left
    quotas.wait("all GPUs are told as used", lambda: in_use(quotas, "guest") == 6, SOON_S)


def test_an_allocation_without_a_script_is_cancelled_when_its_owner_comes(quotas: QuotaStory) -> None:
    """Slurm puts no such job back into the queue."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    own = quotas.sleeps("guest", 4)
    quotas.wait_state(own, "RUNNING", SOON_S)
    asked = ("--account=guest", "--gres=gpu:l4:4", "--nodes=1", "--mem=1G", "--job-name=shell")
    quotas.bed.run(["salloc", "--no-shell", *asked])
    (lent,) = map(int, quotas.bed.run(["squeue", "-h", "-n", "shell", "-o", "%A"]).text.split())
    quotas.jobs.append(lent)
    quotas.wait_state(lent, "RUNNING", SOON_S)
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    assert quotas.job(lent).state in ("CANCELLED", "PREEMPTED")
    quotas.wait_says(lent, f"was evicted for job {mine} of team owner")


def test_a_job_that_resumes_in_its_place_only_is_cancelled(quotas: QuotaStory) -> None:
    """Its user wants no requeue, so Slurm refuses one for ever."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    quotas.wait_state(quotas.sleeps("guest", 4), "RUNNING", SOON_S)
    lent = quotas.ignores_signals("guest", 4, "--no-requeue", "--auto-resume=1")
    quotas.wait_state(lent, "RUNNING", SOON_S)
    quotas.wait_state(quotas.sleeps("owner", 4), "RUNNING", SOON_S)
    assert quotas.job(lent).state in ("CANCELLED", "PREEMPTED")
