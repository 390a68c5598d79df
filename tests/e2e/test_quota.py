"""Teams share a cluster: quotas made with the `aws` command, lent, borrowed and taken back, looked at as users do."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from steward.testbed.bed import Bed
from tests.e2e.conftest import a_bed, own_place
from tests.e2e.groups_bed import Access, give_access
from tests.e2e.quota_bed import HARDWARE, SETTINGS, SLURM_CONF, SOON_S, TYPE, QuotaStory

GPUS = f"{TYPE}/gpu"
G, G2, M = "onlygputeam", "onlygputeam2", "mixquotatype"


@pytest.fixture(scope="module")
def quota_bed(only: ExitStack, request: pytest.FixtureRequest) -> Iterator[tuple[Bed, Access]]:
    only.close()
    with a_bed(
        request,
        nodes=2,
        steward=True,
        accounting=True,
        hardware=HARDWARE,
        slurm_conf=SLURM_CONF,
        settings=dict(SETTINGS),
    ) as bed:
        yield bed, give_access(bed)


@pytest.fixture
def story(quota_bed: tuple[Bed, Access], request: pytest.FixtureRequest) -> Iterator[QuotaStory]:
    bed, access = quota_bed
    with own_place(bed, request) as place:
        yield QuotaStory(bed=bed, dir=place, access=access)
        bed.run(["scancel", "--user=root"], check=False)


def three_teams(story: QuotaStory) -> None:
    """With the figures of HyperPod's own walk-through."""
    story.account(G, G2, M)
    two = {"InstanceType": TYPE, "Accelerators": 2}
    p5, c5 = {"InstanceType": "ml.p5.48xlarge", "Count": 3}, {"InstanceType": "ml.c5.2xlarge", "VCpu": 2}
    ids = [
        story.create(G, {**two, "VCpu": 48}, percent=50),
        story.create(G2, two, percent=10),
        story.create(M, two, p5, c5, percent=10),
    ]
    story.wait_in_force(*ids)
    assert story.limits(f"stw-{G}-g")["gres/gpu:l4"] == "2"
    assert story.limits(f"stw-{G}-b")["gres/gpu:l4"] == "0"
    listed = story.aws("list-compute-quotas", "--sort-by", "Name", "--sort-order", "Ascending")
    assert [each["Name"] for each in listed["ComputeQuotaSummaries"]] == sorted([G, G2, M])


def test_three_teams_share_two_machines_step_by_step(story: QuotaStory) -> None:
    three_teams(story)
    first = story.run_job(G, 2, 48, 96)
    story.wait_state(first, "RUNNING", SOON_S)
    story.wait_says(first, f"Quota of team {G}: covers it")

    second = story.run_job(G, 1, 12, 48)
    story.wait_state(second, "RUNNING", SOON_S)
    story.wait_says(second, "it runs with borrowed resources")
    assert story.job(second).fields["QOS"].split(",")[-1] == f"stw-{G}-b"
    story.wait("one GPU is borrowed", lambda: story.team(G)[GPUS]["borrowed"] == 1)
    assert story.team(G)[GPUS]["share"] == pytest.approx(1 / 6 / 10)

    third = story.run_job(G, 1, 12, 48)
    story.wait_says(third, "the team has reached its limit (3 GPUs")

    fourth = story.run_job(G2, 2, 24, 96)
    story.wait_state(fourth, "RUNNING", SOON_S)
    assert story.job(second).state == "RUNNING"

    fifth = story.run_job(G2, 1, 12, 48)
    story.wait_says(fifth, "short of 1 GPU")
    assert story.job(fifth).state == "PENDING"

    sixth = story.run_job(M, 2, 24, 96)
    story.wait_state(sixth, "RUNNING", SOON_S)
    story.wait(f"job {second} gave way", lambda: story.job(second).state == "PENDING")
    assert [story.job(job).state for job in (first, fourth)] == ["RUNNING", "RUNNING"]
    story.wait_says(second, f"gave way to job {sixth} of team {M}")
    assert story.limits(f"stw-{G}-b")["gres/gpu:l4"] == "0"

    story.bed.run(["scancel", str(sixth)])
    story.wait_state(third, "RUNNING", SOON_S)  # Slurm lets the one that gave way wait for two minutes


def test_a_quota_is_deleted_while_its_jobs_run_and_wait(story: QuotaStory) -> None:
    team = "leavers"
    story.account(team)
    id = story.create(team, {"InstanceType": TYPE, "Accelerators": 1}, percent=0)
    story.wait_in_force(id)
    runs = story.run_job(team, 1, 1, 1)
    story.wait_state(runs, "RUNNING", SOON_S)
    waits = story.run_job(team, 1, 1, 1)
    story.wait_says(waits, "it waits, short of 1 GPU")

    story.aws("delete-compute-quota", "--compute-quota-id", id)
    assert story.aws("describe-compute-quota", "--compute-quota-id", id)["Status"] == "Deleting"
    story.wait_state(waits, "RUNNING", SOON_S)
    assert story.job(runs).state == "RUNNING"
    story.bed.run(["scancel", str(runs), str(waits)])
    story.wait("its QOS are gone", lambda: not story.limits(f"stw-{team}-g"), SOON_S)
    story.wait("the quota is gone", lambda: team not in str(story.get("/v1/quotas")["teams"]), SOON_S)
