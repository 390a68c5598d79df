"""Teams share a cluster: quotas made with the `aws` command, lent, borrowed and taken back, looked at as users do."""

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from steward.testbed.bed import Bed, BedError
from steward.testbed.faults import FaultKind
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
        story = QuotaStory(bed=bed, dir=place, access=access)
        yield story
        story.delete_quotas()


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


TRAINING = """
import hashlib, os, sys, time
path, result, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
at, state = 0, "seed"
if os.path.exists(path):
    at, state = int(open(path).read().split()[0]), open(path).read().split()[1]
while at < steps:
    state, at = hashlib.sha256(f"{state}:{at}".encode()).hexdigest(), at + 1
    open(path + ".new", "w").write(f"{at} {state}")
    os.replace(path + ".new", path)
    time.sleep(0.2)
open(result, "w").write(state)
"""
STEPS = 60


def trained(steps: int) -> str:
    state = "seed"
    for at in range(steps):
        state = hashlib.sha256(f"{state}:{at}".encode()).hexdigest()
    return state


def test_a_borrower_gives_way_comes_back_by_itself_and_computes_the_same(story: QuotaStory) -> None:
    story.wait_in_force(story.gpus("owner", 4), story.gpus("guest", 4, percent=100))
    story.wait_state(story.sleeps("guest", 4), "RUNNING", SOON_S)
    (story.dir / "train.py").write_text(TRAINING)
    words = f"{story.dir}/train.py {story.dir}/checkpoint {story.dir}/result {STEPS}"
    script = story.script("train.sh", f"srun {sys.executable} {words}\n")
    lent = story.submit(
        script, "--account=guest", "--gres=gpu:l4:4", "--nodes=1", "--ntasks=1", "--mem=1G", "--requeue"
    )
    story.wait("it has computed something", lambda: (story.dir / "checkpoint").exists(), SOON_S)

    mine = story.sleeps("owner", 4)
    story.wait_state(mine, "RUNNING", SOON_S)
    story.wait_says(lent, f"gave way to job {mine} of team owner")
    assert not (story.dir / "result").exists()
    story.end(mine)
    story.wait("the training is done", lambda: (story.dir / "result").exists(), 2 * SOON_S)
    assert (story.dir / "result").read_text() == trained(STEPS)
    assert story.job(lent).restarts == 1


def test_machines_that_are_not_lent_stay_their_owners(story: QuotaStory) -> None:
    story.wait_in_force(story.gpus("closed", 4, strategy="DontLend"), story.gpus("guest", 4, percent=100))
    story.wait_state(story.sleeps("guest", 4), "RUNNING", SOON_S)
    more = story.sleeps("guest", 1)
    story.wait_says(more, "short of 1 GPU")
    mine = story.sleeps("closed", 4)
    story.wait_state(mine, "RUNNING", SOON_S)
    assert story.job(more).state == "PENDING"


def test_idle_gpus_are_shared_by_weight_also_among_tasks_of_arrays(story: QuotaStory) -> None:
    """Six idle GPUs, weights 1 and 3: beside its own one each gets one or two, and four or five."""
    light, heavy = story.gpus("light", 1, percent=500, weight=10), story.gpus("heavy", 1, percent=500, weight=30)
    story.wait_in_force(story.gpus("owner", 6, strategy="Lend"), light, heavy)
    story.bed.run(["scontrol", "update", "nodename=ALL", "state=drain", "reason=both come first"])
    one, other = story.sleeps("light", 1, "--array=0-7"), story.sleeps("heavy", 1, "--array=0-7")
    story.bed.run(["scontrol", "update", "nodename=ALL", "state=resume"])
    story.wait("all GPUs are used", lambda: sum(map(story.running_tasks, (one, other))) == 8, 2 * SOON_S)
    assert (story.running_tasks(one), story.running_tasks(other)) in {(2, 6), (3, 5)}


def test_a_job_of_a_higher_class_goes_before_its_own_teams(story: QuotaStory) -> None:
    arn = story.get("/v1/quotas")["cluster_arn"]
    config = {
        "PriorityClasses": [{"Name": "high", "Weight": 90}, {"Name": "low", "Weight": 10}],
        "FairShare": "Enabled",
    }
    words = ("--name", "classes", "--cluster-arn", arn, "--scheduler-config", json.dumps(config))
    made = story.aws("create-cluster-scheduler-config", *words)["ClusterSchedulerConfigId"]
    story.wait_in_force(story.gpus("solo", 4))
    low = story.sleeps("solo", 4, "--comment=priority-class=low")
    story.wait_state(low, "RUNNING", SOON_S)
    high = story.sleeps("solo", 4, "--comment=priority-class=high")
    story.wait_state(high, "RUNNING", SOON_S)
    assert story.job(low).state == "PENDING"
    story.wait_says(low, f"gave way to job {high} of team solo, its own")
    story.aws("delete-cluster-scheduler-config", "--cluster-scheduler-config-id", made)


@pytest.mark.parametrize("name", ["a;b", "$(id)", "../up", "-flag", "root", "two words"])
def test_a_team_with_a_hostile_name_is_refused_and_nothing_is_made(story: QuotaStory, name: str) -> None:
    with pytest.raises(BedError):
        story.create(name, {"InstanceType": TYPE, "Accelerators": 1}, percent=0)
    assert story.get("/v1/quotas")["teams"] == []


def test_teams_with_dots_and_lines_in_their_names_have_their_limits(story: QuotaStory) -> None:
    team = "lab_7.vision-a"
    story.account(team)
    ids = [story.create(team, {"InstanceType": TYPE, "Accelerators": 1}, percent=0)]
    story.wait_in_force(*ids)
    assert story.limits(f"stw-{team}-g")["gres/gpu:l4"] == "1"
    story.wait_state(story.sleeps(team, 1), "RUNNING", SOON_S)


@pytest.mark.long
def test_an_owner_gets_his_own_back_once_while_slurmdbd_and_the_head_are_killed(story: QuotaStory) -> None:
    story.wait_in_force(story.gpus("owner", 4), story.gpus("guest", 4, percent=100))
    kept = story.sleeps("guest", 4)
    story.wait_state(kept, "RUNNING", SOON_S)
    lent = story.sleeps("guest", 4)
    story.wait_state(lent, "RUNNING", SOON_S)
    story.hurt(FaultKind.KILL_SLURMDBD)
    mine = story.sleeps("owner", 4)
    story.wait_state(mine, "RUNNING", 2 * SOON_S)
    story.hurt(FaultKind.KILL_HEAD)
    story.hurt(FaultKind.START_SLURMDBD)
    story.hurt(FaultKind.START_HEAD)
    story.wait("limits follow again", lambda: story.limits("stw-guest-b").get("gres/gpu:l4") == "0", 2 * SOON_S)
    assert [story.job(job).state for job in (kept, mine)] == ["RUNNING", "RUNNING"]
    story.end(mine)
    story.wait_state(lent, "RUNNING", 2 * SOON_S)
    assert (story.job(kept).restarts, story.job(lent).restarts) == (0, 1)
