"""Teams share a cluster: quotas made with the `aws` command, lent, borrowed and taken back, looked at as users do."""

import hashlib
import json

import pytest
from botocore.exceptions import ClientError

from tests.e2e.quota_bed import GRACE_S, KILL_WAIT_S, SOON_S, TYPE, QuotaStory

GPUS = f"{TYPE}/gpu"
G, G2, M = "onlygputeam", "onlygputeam2", "mixquotatype"


@pytest.mark.parametrize("name", ["a;b", "$(id)", "../up", "-flag", "root", "two words"])
def test_a_team_with_a_hostile_name_is_refused_and_nothing_is_made(quotas: QuotaStory, name: str) -> None:
    with pytest.raises(ClientError, match="ValidationException"):
        quotas.create(name, {"InstanceType": TYPE, "Accelerators": 1}, percent=0)
    assert quotas.get("/v1/quotas")["teams"] == []


@pytest.mark.quotas_stay
def test_teams_with_dots_and_lines_in_their_names_have_their_limits(quotas: QuotaStory) -> None:
    team = "lab_7.vision-a"
    quotas.account(team)
    ids = [quotas.create(team, {"InstanceType": TYPE, "Accelerators": 1}, percent=0)]
    quotas.wait_in_force(*ids)
    assert quotas.limits(f"stw-{team}-g")["gres/gpu:l4"] == "1"
    quotas.wait_state(quotas.sleeps(team, 1), "RUNNING", SOON_S)


def three_teams(quotas: QuotaStory) -> None:
    """With the figures of HyperPod's own walk-through."""
    quotas.account(G, G2, M)
    two = {"InstanceType": TYPE, "Accelerators": 2}
    p5, c5 = {"InstanceType": "ml.p5.48xlarge", "Count": 3}, {"InstanceType": "ml.c5.2xlarge", "VCpu": 2}
    ids = [
        quotas.create(G, {**two, "VCpu": 48}, percent=50, by_command=True),
        quotas.create(G2, two, percent=10, by_command=True),
        quotas.create(M, two, p5, c5, percent=10, by_command=True),
    ]
    quotas.wait_in_force(*ids)
    assert quotas.limits(f"stw-{G}-g")["gres/gpu:l4"] == "2"
    assert quotas.limits(f"stw-{G}-b")["gres/gpu:l4"] == "0"
    listed = quotas.aws("list-compute-quotas", "--sort-by", "Name", "--sort-order", "Ascending")
    there = [each["Name"] for each in listed["ComputeQuotaSummaries"] if each["Status"] != "Deleting"]
    assert there == sorted([G, G2, M])


@pytest.mark.quotas_stay
def test_three_teams_share_two_machines_step_by_step(quotas: QuotaStory) -> None:
    three_teams(quotas)
    first = quotas.run_job(G, 2, 48, 96)
    quotas.wait_state(first, "RUNNING", SOON_S)
    quotas.wait_says(first, f"The quota of team {G} covers the job")

    second = quotas.run_job(G, 1, 12, 48)
    quotas.wait_state(second, "RUNNING", SOON_S)
    quotas.wait_says(second, "the job runs with borrowed resources")
    assert quotas.job(second).fields["QOS"].split(",")[-1] == f"stw-{G}-b"
    quotas.wait("one GPU is borrowed", lambda: quotas.team(G)[GPUS]["borrowed"] == 1)
    assert quotas.team(G)[GPUS]["share"] == pytest.approx(1 / 6 / 10)

    third = quotas.run_job(G, 1, 12, 48)
    quotas.wait_says(third, "the team has reached its limit (3 GPUs")

    fourth = quotas.run_job(G2, 2, 24, 96)
    quotas.wait_state(fourth, "RUNNING", SOON_S)
    assert quotas.job(second).state == "RUNNING"

    fifth = quotas.run_job(G2, 1, 12, 48)
    quotas.wait_says(fifth, "short of 1 GPU")
    assert quotas.job(fifth).state == "PENDING"

    sixth = quotas.run_job(M, 2, 24, 96)
    quotas.wait_state(sixth, "RUNNING", SOON_S)
    quotas.wait(f"job {second} was evicted", lambda: quotas.job(second).state == "PENDING")
    assert [quotas.job(job).state for job in (first, fourth)] == ["RUNNING", "RUNNING"]
    quotas.wait_says(second, f"was evicted for job {sixth} of team {M}")
    assert quotas.limits(f"stw-{G}-b")["gres/gpu:l4"] == "0"

    quotas.bed.run(["scancel", str(sixth)])
    quotas.wait_state(third, "RUNNING", SOON_S)  # Slurm lets the one that was evicted wait for two minutes


@pytest.mark.quotas_stay
def test_a_quota_is_deleted_while_its_jobs_run_and_wait(quotas: QuotaStory) -> None:
    team = "leavers"
    quotas.account(team)
    id = quotas.create(team, {"InstanceType": TYPE, "Accelerators": 1}, percent=0)
    quotas.wait_in_force(id)
    runs = quotas.run_job(team, 1, 1, 1)
    quotas.wait_state(runs, "RUNNING", SOON_S)
    waits = quotas.run_job(team, 1, 1, 1)
    quotas.wait_says(waits, "the job waits, short of 1 GPU")

    quotas.aws("delete-compute-quota", "--compute-quota-id", id)
    assert quotas.aws("describe-compute-quota", "--compute-quota-id", id)["Status"] == "Deleting"
    quotas.wait_state(waits, "RUNNING", SOON_S)
    assert quotas.job(runs).state == "RUNNING"
    quotas.bed.run(["scancel", str(runs), str(waits)])
    quotas.wait("its QOS are gone", lambda: not quotas.limits(f"stw-{team}-g"), SOON_S)
    quotas.wait("the quota is gone", lambda: team not in str(quotas.get("/v1/quotas")["teams"]), SOON_S)


@pytest.mark.quotas_stay
def test_a_team_whose_account_lost_the_sites_qos_can_submit_when_its_quota_is_gone(quotas: QuotaStory) -> None:
    """As the doctor advises against `--qos=normal`; Slurm takes no job of an account without any QOS."""
    id = quotas.gpus("closed", 1)
    quotas.wait_in_force(id)
    quotas.sacctmgr("modify", "account", "where", "name=closed", "set", "qos-=normal")
    quotas.wait_state(quotas.sleeps("closed", 1), "RUNNING", SOON_S)
    waits = quotas.sleeps("closed", 1)
    quotas.wait_says(waits, "the job waits, short of 1 GPU")
    quotas.delete(id)
    quotas.wait_state(waits, "RUNNING", SOON_S)
    quotas.wait_state(quotas.sleeps("closed", 1), "RUNNING", SOON_S)


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
STEPS = 30


def trained(steps: int) -> str:
    state = "seed"
    for at in range(steps):
        state = hashlib.sha256(f"{state}:{at}".encode()).hexdigest()
    return state


@pytest.mark.quotas_stay
def test_a_borrower_is_evicted_comes_back_by_itself_and_computes_the_same(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    quotas.wait_state(quotas.sleeps("guest", 4), "RUNNING", SOON_S)
    (quotas.dir / "train.py").write_text(TRAINING)
    words = f"{quotas.dir}/train.py {quotas.dir}/checkpoint {quotas.dir}/result {STEPS}"
    script = quotas.script("train.sh", f"srun {quotas.python} {words}\n")
    lent = quotas.submit(
        script, "--account=guest", "--gres=gpu:l4:4", "--nodes=1", "--ntasks=1", "--mem=1G", "--requeue"
    )
    quotas.wait("it has computed something", lambda: (quotas.dir / "checkpoint").exists(), SOON_S)

    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    quotas.wait_says(lent, f"was evicted for job {mine} of team owner")
    assert not (quotas.dir / "result").exists()
    quotas.end(mine)
    quotas.wait("the training is done", lambda: (quotas.dir / "result").exists(), 2 * SOON_S)
    assert (quotas.dir / "result").read_text() == trained(STEPS)
    assert quotas.job(lent).restarts == 1


@pytest.mark.quotas_stay
def test_an_owner_waits_no_longer_than_the_grace_the_time_to_kill_and_two_rounds_of_the_scheduler(
    quotas: QuotaStory,
) -> None:
    """Also for a borrower who ignores every signal. Slurm's clock counts; where Steward has to make the room itself
    (22.05), it has to see the job first."""
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    quotas.wait_state(quotas.sleeps("guest", 4), "RUNNING", SOON_S)
    lent = quotas.ignores_signals("guest", 4)
    quotas.wait_state(lent, "RUNNING", SOON_S)
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    quotas.wait_says(lent, f"was evicted for job {mine} of team owner")
    bound_s = GRACE_S + KILL_WAIT_S + 2 * quotas.round_s() + 1 + quotas.looks_s
    assert quotas.waited_s(mine) <= bound_s


@pytest.mark.quotas_stay
def test_a_job_that_was_evicted_twice_backs_off_from_a_third_time(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4, percent=100))
    own = quotas.sleeps("guest", 4)
    quotas.wait_state(own, "RUNNING", SOON_S)
    lent = quotas.sleeps("guest", 4)
    for times in (1, 2):
        quotas.wait_state(lent, "RUNNING", 2 * SOON_S)
        mine = quotas.sleeps("owner", 4)
        quotas.wait_state(mine, "RUNNING", SOON_S)
        quotas.wait_says(lent, f"was evicted for job {mine} of team owner")
        quotas.end(mine)
        assert quotas.job(lent).restarts == times
    quotas.wait_says(lent, "the job was evicted before, and may borrow again")
    assert quotas.job(lent).state == "PENDING"
    quotas.end(own)
    quotas.wait_state(lent, "RUNNING", SOON_S)  # its own team's quota covers it now


@pytest.mark.quotas_stay
def test_machines_that_are_not_lent_stay_their_owners(quotas: QuotaStory) -> None:
    quotas.wait_in_force(quotas.gpus("owner", 4, strategy="DontLend"), quotas.gpus("guest", 4, percent=100))
    quotas.wait_state(quotas.sleeps("guest", 4), "RUNNING", SOON_S)
    more = quotas.sleeps("guest", 1)
    quotas.wait_says(more, "short of 1 GPU")
    mine = quotas.sleeps("owner", 4)
    quotas.wait_state(mine, "RUNNING", SOON_S)
    assert quotas.job(more).state == "PENDING"


@pytest.mark.quotas_stay
def test_a_job_of_a_higher_class_goes_before_its_own_teams(quotas: QuotaStory) -> None:
    arn = quotas.get("/v1/quotas")["cluster_arn"]
    config = {
        "PriorityClasses": [{"Name": "high", "Weight": 90}, {"Name": "low", "Weight": 10}],
        "FairShare": "Enabled",
    }
    words = ("--name", "classes", "--cluster-arn", arn, "--scheduler-config", json.dumps(config))
    made = quotas.aws("create-cluster-scheduler-config", *words)["ClusterSchedulerConfigId"]
    try:
        quotas.wait_in_force(quotas.gpus("owner", 4), quotas.gpus("guest", 4))
        low = quotas.sleeps("guest", 4, "--comment=priority-class=low")
        quotas.wait_state(low, "RUNNING", SOON_S)
        high = quotas.sleeps("guest", 4, "--comment=priority-class=high")
        quotas.wait_state(high, "RUNNING", SOON_S)
        quotas.wait_state(low, "PENDING", SOON_S)
        quotas.wait_says(low, f"was evicted for job {high} of team guest, its own")
    finally:
        quotas.aws("delete-cluster-scheduler-config", "--cluster-scheduler-config-id", made)


@pytest.mark.quotas_stay
def test_idle_gpus_are_shared_by_weight_also_among_tasks_of_arrays(quotas: QuotaStory) -> None:
    """Six idle GPUs, weights 1 and 3: beside its own one each gets one or two, and four or five."""
    light, heavy = quotas.gpus("guest", 1, percent=500, weight=10), quotas.gpus("heavy", 1, percent=500, weight=30)
    quotas.wait_in_force(quotas.gpus("owner", 6, strategy="Lend"), light, heavy)
    one, other = (quotas.sleeps(team, 1, "--array=0-7", "--hold") for team in ("guest", "heavy"))
    quotas.bed.run(["scontrol", "release", f"{one},{other}"])  # one alone is lent all that is idle
    quotas.wait("all GPUs are used", lambda: sum(map(quotas.running_tasks, (one, other))) == 8, 2 * SOON_S)
    assert (quotas.running_tasks(one), quotas.running_tasks(other)) in {(2, 6), (3, 5)}
