"""Quotas of what few clusters have: MIG slices beside whole GPUs of the same machines, whole machines without GPUs with
their CPUs and memory, arrays of which some tasks may run at once, and jobs with parts on machines of two types."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.conftest import a_bed, own_jobs
from tests.e2e.groups_bed import Access, give_access
from tests.e2e.quota_bed import SETTINGS, SLURM_CONF, SOON_S, QuotaStory
from tests.e2e.test_quota_shapes import states

P4D, C5 = "ml.p4d.24xlarge", "ml.c5.2xlarge"
CORES = "CPUs=8 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2"
"""Slurm gives a job whole cores."""
HARDWARE = (
    f"CPUs=96 RealMemory=1179648 Gres=gpu:a100:2,gpu:1g.5gb:4 Feature={P4D};{CORES} RealMemory=16384 Feature={C5}"
)
PARTITIONS = "\n".join(
    f"PartitionName={name} Nodes={nodes} DefMemPerCPU=1024 MaxTime=INFINITE State=UP"
    for name, nodes in (("fast", "n1,n3"), ("plain", "n2,n4"))
)
WHOLE = [{"InstanceType": P4D, "Accelerators": 2}, {"InstanceType": C5, "VCpu": 8, "MemoryInGiB": 16}]
SLICES = {"InstanceType": P4D, "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 4}}


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[tuple[QuotaStory, Access]]:
    """Two machines of two GPUs and four slices, two of eight CPUs, and four teams.

    Owner and guest own half of the GPUs and one of the CPU machines each, lender and slicer half of the slices; guest
    and slicer may borrow the rest.
    """
    with a_bed(
        request,
        nodes=4,
        steward=True,
        accounting=True,
        hardware=HARDWARE,
        slurm_conf=f"{SLURM_CONF}\n{PARTITIONS}",
        settings=SETTINGS,
    ) as bed:
        access = give_access(bed)
        story = QuotaStory(bed=bed, dir=bed.shared, access=access)
        story.account("owner", "guest", "lender", "slicer")
        story.wait_in_force(
            story.create("owner", *WHOLE, percent=0),
            story.create("guest", *WHOLE, percent=100),
            story.create("lender", SLICES, percent=0),
            story.create("slicer", SLICES, percent=100),
            deadline_s=3 * SOON_S,
        )
        yield story, access


@pytest.fixture
def quotas(site: tuple[QuotaStory, Access], request: pytest.FixtureRequest) -> Iterator[QuotaStory]:
    """Nothing runs yet, and nothing afterwards."""
    with own_jobs(*site, request) as story:
        yield story


def fast(quotas: QuotaStory, team: str, gres: str, *options: str) -> int:
    """A job on one of the machines with GPUs."""
    size = ("--partition=fast", f"--gres={gres}", "--nodes=1", "--ntasks=1", "--mem=1G")
    return quotas.asks(team, *size, *options)


def plain(quotas: QuotaStory, team: str, cpus: int, *options: str) -> int:
    """A job on one of the machines without."""
    return quotas.asks(team, "--partition=plain", "--nodes=1", "--ntasks=1", f"--cpus-per-task={cpus}", *options)


def running(quotas: QuotaStory, *jobs: int) -> None:
    for job in jobs:
        quotas.wait_state(job, "RUNNING", SOON_S)


def one_waits(quotas: QuotaStory, jobs: list[int]) -> bool:
    return sorted(quotas.job(job).state for job in jobs) == ["PENDING"] + ["RUNNING"] * (len(jobs) - 1)


def test_slices_come_back_to_their_owner_and_whole_gpus_of_the_same_machines_are_left_alone(quotas: QuotaStory) -> None:
    slices = [fast(quotas, "slicer", "gpu:1g.5gb:2") for _ in range(4)]
    gpus = [fast(quotas, "guest", "gpu:a100:1") for _ in range(4)]
    running(quotas, *slices, *gpus)
    more = fast(quotas, "slicer", "gpu:1g.5gb:1")
    quotas.wait_says(more, "has reached its limit (8 1g.5gbs")
    mine = fast(quotas, "lender", "gpu:1g.5gb:3")
    running(quotas, mine)
    evicted = [job for job in slices if quotas.job(job).state != "RUNNING"]
    assert len(evicted) == 2
    for job in evicted:
        quotas.wait_says(job, f"was evicted for job {mine} of team lender")
    assert {quotas.job(job).state for job in gpus} == {"RUNNING"}


def test_a_whole_machine_comes_back_with_its_cpus_and_its_memory(quotas: QuotaStory) -> None:
    """What guest borrowed is two jobs, one of which has the memory."""
    own = plain(quotas, "guest", 8, "--mem=14G")
    running(quotas, own)
    lent = [plain(quotas, "guest", 1, "--mem=12G"), plain(quotas, "guest", 2, "--mem=1G")]
    running(quotas, *lent)
    more = plain(quotas, "guest", 1, "--mem=6G")
    quotas.wait_says(more, "the team has reached its limit (32 GiB of ml.c5.2xlarge)")
    mine = plain(quotas, "owner", 1, "--mem=8G")
    running(quotas, mine)
    quotas.wait_state(lent[0], "PENDING", SOON_S)
    assert [quotas.job(job).state for job in (own, lent[1])] == ["RUNNING", "RUNNING"]
    whole = quotas.asks("owner", "--partition=plain", "--nodes=1", "--ntasks=1", "--exclusive")
    quotas.end(mine)
    running(quotas, whole)
    quotas.wait("the other one waits, too", lambda: states(quotas, lent[1]) == {"PENDING"}, SOON_S)
    assert quotas.job(own).state == "RUNNING"


def test_an_array_takes_back_what_the_tasks_need_that_may_run_at_once(quotas: QuotaStory) -> None:
    lent = fast(quotas, "guest", "gpu:a100:1", "--array=0-5%4")
    quotas.wait("four tasks run", lambda: quotas.running_tasks(lent) == 4, SOON_S)
    mine = fast(quotas, "owner", "gpu:a100:1", "--array=0-3%1")
    quotas.wait("a task of the owner's runs", lambda: quotas.running_tasks(mine) == 1, SOON_S)
    quotas.wait("three others run", lambda: quotas.running_tasks(lent) == 3, SOON_S)
    quotas.bed.run(["scontrol", "update", f"jobid={mine}", "arraytaskthrottle=3"])
    quotas.wait("two tasks of the owner's run", lambda: quotas.running_tasks(mine) == 2, SOON_S)
    assert quotas.running_tasks(lent) == 2


def test_a_job_with_parts_in_two_partitions_takes_back_what_each_needs_and_goes_as_one(quotas: QuotaStory) -> None:
    gpus = [fast(quotas, "guest", "gpu:a100:2") for _ in range(2)]
    cpus = [plain(quotas, "guest", 8, "--mem=8G") for _ in range(2)]
    running(quotas, *gpus, *cpus)
    parts = (
        *("--partition=fast", "--gres=gpu:a100:2", "--nodes=1", "--ntasks=1", "--mem=1G", ":"),
        *("--partition=plain", "--nodes=1", "--ntasks=1", "--cpus-per-task=8", "--mem=8G"),
    )
    mine = quotas.asks("owner", *parts)
    quotas.wait("both parts run", lambda: states(quotas, mine) == {"RUNNING"}, SOON_S)
    for pair in (gpus, cpus):
        quotas.wait("one of two waits", partial(one_waits, quotas, pair), SOON_S)
    quotas.end_all()

    kept = [fast(quotas, "guest", "gpu:a100:2"), plain(quotas, "guest", 8, "--mem=8G")]
    running(quotas, *kept)
    lent = quotas.asks("guest", *parts)
    quotas.wait("both parts run", lambda: states(quotas, lent) == {"RUNNING"}, SOON_S)
    mine = plain(quotas, "owner", 4, "--mem=4G")
    running(quotas, mine)
    quotas.wait("both parts wait again", lambda: states(quotas, lent) == {"PENDING"}, SOON_S)
    quotas.wait_says(lent, f"was evicted for job {mine} of team owner")
    assert {quotas.job(job).state for job in kept} == {"RUNNING"}
