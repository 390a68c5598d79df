"""Jobs that only some machines serve: nobody on the others is evicted for them, and one for machines that are planned
waits."""

import time
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import a_bed, own_jobs
from tests.e2e.groups_bed import Access, give_access
from tests.e2e.quota_bed import SETTINGS, SLURM_CONF, SOON_S, SWEEP_S, TYPE, QuotaStory

A100, P5 = "ml.p4de.24xlarge", "ml.p5.48xlarge"
BIG = "big"
_L4 = f"CPUs=48 RealMemory=196608 Gres=gpu:l4:4 Feature={TYPE}"
HARDWARE = f"{_L4},{BIG};{_L4};CPUs=96 RealMemory=1179648 Gres=gpu:a100:4 Feature={A100}"
_P5 = f"CPUs=192 RealMemory=2000000 Gres=gpu:h100:8 Feature={P5}"
PLANNED = f"""NodeName=planned-p5 NodeAddr=127.0.0.1 Port=9 {_P5} State=DOWN Reason=planned
PartitionName=all Nodes=n1,n2,n3,planned-p5 DefMemPerCPU=1024 MaxTime=INFINITE State=UP"""
SEEN_S = 2 * SWEEP_S
"""Longer than Steward may take to see a job."""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[tuple[QuotaStory, Access]]:
    """Two machines of four L4, of which the first is a big one, one of four A100; one of eight H100 is planned.

    Owner and guest own half of the L4 each, and all of the A100 each: more than is there. Future owns what is planned.
    """
    with a_bed(
        request,
        nodes=3,
        steward=True,
        accounting=True,
        hardware=HARDWARE,
        slurm_conf=f"{SLURM_CONF}\n{PLANNED}",
        settings=SETTINGS,
    ) as bed:
        access = give_access(bed)
        story = QuotaStory(bed=bed, dir=bed.shared, access=access)
        story.account("owner", "guest", "future")
        half = [{"InstanceType": TYPE, "Accelerators": 4}, {"InstanceType": A100, "Accelerators": 4}]
        story.wait_in_force(
            story.create("owner", *half, percent=0),
            story.create("guest", *half, percent=100),
            story.create("future", {"InstanceType": P5, "Count": 1}, percent=0),
            deadline_s=3 * SOON_S,
        )
        yield story, access


@pytest.fixture
def quotas(site: tuple[QuotaStory, Access], request: pytest.FixtureRequest) -> Iterator[QuotaStory]:
    """Nothing runs yet, and nothing afterwards."""
    with own_jobs(*site, request) as story:
        yield story


def gpus(quotas: QuotaStory, team: str, gres: str, *options: str) -> int:
    size = ("--partition=all", f"--gres=gpu:{gres}", "--nodes=1", "--ntasks=1", "--mem=1G")
    return quotas.asks(team, *size, *options)


def running(quotas: QuotaStory, *jobs: int) -> tuple[int, ...]:
    for job in jobs:
        quotas.wait_state(job, "RUNNING", SOON_S)
    return jobs


def waits_in_vain(quotas: QuotaStory, job: int) -> None:
    """Its user reads why, and nobody is told to go for it."""
    began = time.time()
    quotas.wait_says(job, "no node that it may use would have room for it")
    quotas.wait("Steward has seen it for long", lambda: time.time() > began + SEEN_S)
    assert [each for each in quotas.events("quota.evict") if f"for job {job} " in each["text"]] == []


def one_goes(quotas: QuotaStory, lent: tuple[int, ...], mine: int) -> None:
    """The same job without its odd shape: what is lent is there for it."""
    running(quotas, mine)
    assert [quotas.job(job).state for job in lent].count("RUNNING") == len(lent) - 1


def test_nobody_is_evicted_for_a_constraint_that_what_is_lent_does_not_meet(quotas: QuotaStory) -> None:
    running(quotas, gpus(quotas, "guest", "l4:4", "--nodelist=n1"))
    lent = running(quotas, *(gpus(quotas, "guest", "l4:1", "--nodelist=n2") for _ in range(4)))
    waits_in_vain(quotas, gpus(quotas, "owner", "l4:1", f"--constraint={BIG}"))
    one_goes(quotas, lent, gpus(quotas, "owner", "l4:1"))


def test_nobody_is_evicted_for_a_type_of_gpu_of_which_nothing_is_lent(quotas: QuotaStory) -> None:
    running(quotas, gpus(quotas, "guest", "a100:4"), gpus(quotas, "guest", "l4:4"))
    lent = running(quotas, *(gpus(quotas, "guest", "l4:1") for _ in range(4)))
    waits_in_vain(quotas, gpus(quotas, "owner", "a100:1"))
    one_goes(quotas, lent, gpus(quotas, "owner", "l4:1"))


def test_nobody_is_evicted_for_a_whole_machine_where_each_has_a_job_that_stays(quotas: QuotaStory) -> None:
    running(quotas, *(gpus(quotas, "guest", "l4:2", f"--nodelist={node}") for node in ("n1", "n2")))
    lent = running(quotas, *(gpus(quotas, "guest", "l4:2") for _ in range(2)))
    waits_in_vain(quotas, gpus(quotas, "owner", "l4:1", "--exclusive"))
    one_goes(quotas, lent, gpus(quotas, "owner", "l4:1"))


def test_nobody_is_evicted_for_a_total_on_two_machines_of_which_one_has_no_gpu_free(quotas: QuotaStory) -> None:
    """Slurm starts it on no machine that has none, though the other one has all that it asks for."""
    running(quotas, gpus(quotas, "guest", "l4:4", "--nodelist=n1"))
    lent = running(quotas, *(gpus(quotas, "guest", "l4:1", "--nodelist=n2") for _ in range(4)))
    mine = quotas.asks("owner", "--partition=all", "--gpus=l4:2", "--nodes=2", "--ntasks=2", "--mem=1G")
    waits_in_vain(quotas, mine)
    quotas.end(*lent[:2])
    quotas.wait("two GPUs are free", lambda: [quotas.job(job).state for job in lent[:2]] == ["CANCELLED"] * 2, SOON_S)
    waits_in_vain(quotas, mine)
    assert quotas.job(mine).state == "PENDING"


def test_a_job_for_machines_that_are_planned_waits_and_its_user_reads_why(quotas: QuotaStory) -> None:
    """slurm.conf declares one of them, as docs/quotas.md says: without it Slurm refuses the job."""
    job = gpus(quotas, "future", "h100:8")
    quotas.wait_says(job, f"The quota of team future covers the job, but no {P5} takes jobs now")
    assert quotas.job(job).state == "PENDING"
    assert quotas.node_state("planned-p5").startswith("DOWN")
    assert (quotas.node_field("planned-p5", "Reason").split()[0], quotas.cases("planned-p5")) == ("planned", [])
