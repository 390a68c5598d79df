"""The commands of AWS' article on fine-grained quotas and of its guide to the `aws` command, word for word but for ids
and the ARN of the cluster: what they make limits jobs, and what they show is what was asked for."""

from typing import Any

import pytest

from steward_bed.bed import BedError
from tests.e2e.quota_bed import SOON_S, Made, QuotaStory

pytestmark = pytest.mark.quotas_stay

GPU_ONLY = "ComputeQuotaResources=[{InstanceType=ml.g6.12xlarge,Accelerators=2}]"
WITH_VCPU = "ComputeQuotaResources=[{InstanceType=ml.g6.12xlarge,Accelerators=2,VCpu=48}]"
MIXED = (
    "ComputeQuotaResources=[{InstanceType=ml.g6.12xlarge,Accelerators=2},"
    "{InstanceType=ml.p5.48xlarge,Count=3},{InstanceType=ml.c5.2xlarge,VCpu=2}]"
)
FUTURE = "ComputeQuotaResources=[{InstanceType=ml.p5.48xlarge,Count=2}]"
LENDS_AND_BORROWS = "ResourceSharingConfig={Strategy=LendAndBorrow,BorrowLimit=%d}"
CLASSES = (
    "PriorityClasses=[{Name=inference,Weight=90},{Name=experimentation,Weight=80},{Name=fine-tuning,Weight=50},"
    "{Name=training,Weight=60}],FairShare=Enabled"
)


def create(quotas: QuotaStory, team: str, resources: str, percent: int) -> str:
    quotas.account(team)
    words = (
        *("--name", f"{team}-quota", "--description", f"quota allocation of {team}"),
        *("--cluster-arn", quotas.get("/v1/quotas")["cluster_arn"]),
        *("--compute-quota-config", f"{resources},{LENDS_AND_BORROWS % percent},PreemptTeamTasks=LowerPriority"),
        *("--activation-state", "Enabled", "--compute-quota-target", f"TeamName={team},FairShareWeight=10"),
    )
    id = str(quotas.aws("create-compute-quota", *words)["ComputeQuotaId"])
    quotas.mine[team] = Made(id=id, wish={})
    return id


def shown(quotas: QuotaStory, id: str) -> Any:
    return quotas.aws("describe-compute-quota", "--compute-quota-id", id)


def test_the_quotas_of_the_article_are_made_shown_changed_and_deleted_by_its_commands(quotas: QuotaStory) -> None:
    vcpu = create(quotas, "onlygputeam", WITH_VCPU, 50)
    gpus = create(quotas, "onlygputeam2", GPU_ONLY, 10)
    mixed = create(quotas, "mixquotatype", MIXED, 10)
    quotas.wait_in_force(vcpu, gpus, mixed)

    listed = quotas.aws("list-compute-quotas", "--name-contains", "onlygpu", "--sort-by", "Name")
    assert {each["Name"] for each in listed["ComputeQuotaSummaries"]} == {"onlygputeam-quota", "onlygputeam2-quota"}
    found = shown(quotas, mixed)
    assert (found["Name"], found["ActivationState"]) == ("mixquotatype-quota", "Enabled")
    assert found["ComputeQuotaConfig"]["ResourceSharingConfig"] == {"Strategy": "LendAndBorrow", "BorrowLimit": 10}
    assert found["ComputeQuotaConfig"]["ComputeQuotaResources"] == [
        {"InstanceType": "ml.g6.12xlarge", "Accelerators": 2},
        {"InstanceType": "ml.p5.48xlarge", "Count": 3},
        {"InstanceType": "ml.c5.2xlarge", "VCpu": 2.0},
    ]

    quotas.wait_state(quotas.sleeps("onlygputeam2", 2), "RUNNING", SOON_S)
    more = quotas.sleeps("onlygputeam2", 1)
    quotas.wait_says(more, "the team has reached its limit (2 GPUs")
    config = f"{GPU_ONLY.replace('=2}', '=3}')},{LENDS_AND_BORROWS % 50}"
    words = ("--compute-quota-id", gpus, "--target-version", "1", "--compute-quota-config", config)
    assert quotas.aws("update-compute-quota", *words)["ComputeQuotaVersion"] == 2
    quotas.wait_state(more, "RUNNING", SOON_S)
    with pytest.raises(BedError, match="ConflictException"):
        quotas.aws("update-compute-quota", *words)

    quotas.end(*quotas.jobs)
    quotas.aws("delete-compute-quota", "--compute-quota-id", gpus)
    quotas.wait("it is gone", lambda: "onlygputeam2" not in str(quotas.get("/v1/quotas")["teams"]), SOON_S)


def test_a_quota_for_machines_that_are_planned_lets_its_jobs_wait_and_gives_nothing_of_others(
    quotas: QuotaStory,
) -> None:
    quotas.wait_in_force(create(quotas, "future", FUTURE, 50))
    job = quotas.asks("future", "--gres=gpu:1", "--nodes=1", "--mem=1G")
    quotas.wait_says(job, "Its quota is of ml.p5.48xlarge, of which the cluster has no node")
    assert quotas.job(job).state == "PENDING"


def test_the_priority_classes_of_the_guide_order_a_teams_own_jobs(quotas: QuotaStory) -> None:
    arn = quotas.get("/v1/quotas")["cluster_arn"]
    words = ("--name", "cluster-policy", "--cluster-arn", arn, "--scheduler-config", CLASSES)
    id = quotas.aws("create-cluster-scheduler-config", *words)["ClusterSchedulerConfigId"]
    try:
        (listed,) = quotas.aws("list-cluster-scheduler-configs")["ClusterSchedulerConfigSummaries"]
        assert (listed["Name"], listed["ClusterSchedulerConfigId"]) == ("cluster-policy", id)
        classes = quotas.aws("describe-cluster-scheduler-config", "--cluster-scheduler-config-id", id)
        assert {"Name": "fine-tuning", "Weight": 50} in classes["SchedulerConfig"]["PriorityClasses"]

        quotas.wait_in_force(create(quotas, "researchers", GPU_ONLY, 10))
        trains = quotas.sleeps("researchers", 2, "--comment=priority-class=training")
        quotas.wait_state(trains, "RUNNING", SOON_S)
        serves = quotas.sleeps("researchers", 2, "--comment=priority-class=inference")
        quotas.wait_state(serves, "RUNNING", SOON_S)
        quotas.wait_says(trains, f"was evicted for job {serves} of team researchers, its own")

        changed = f"{CLASSES.replace('Weight=60', 'Weight=95')},IdleResourceSharing=Enabled"
        words = ("--cluster-scheduler-config-id", id, "--target-version", "1", "--scheduler-config", changed)
        assert quotas.aws("update-cluster-scheduler-config", *words)["ClusterSchedulerConfigVersion"] == 2
        quotas.wait_state(trains, "RUNNING", SOON_S)
    finally:
        quotas.aws("delete-cluster-scheduler-config", "--cluster-scheduler-config-id", id)


def test_a_team_of_one_machine_runs_a_job_on_two_until_their_owner_wants_his_back(quotas: QuotaStory) -> None:
    """The article's job that is larger than its team: one part of it is owned, the other borrowed."""
    machine = "ComputeQuotaResources=[{InstanceType=ml.g6.12xlarge,Count=1}]"
    quotas.wait_in_force(create(quotas, "scientists", machine, 100), create(quotas, "engineers", machine, 50))
    size = ("--gres=gpu:l4:4", "--ntasks-per-node=1", "--mem=1G")
    large = quotas.asks("scientists", "--nodes=2", *size)
    quotas.wait_state(large, "RUNNING", SOON_S)
    second = quotas.asks("scientists", "--nodes=1", *size)
    quotas.wait_says(second, "the team has reached its limit")
    quotas.end(second)
    owner = quotas.asks("engineers", "--nodes=1", *size)
    quotas.wait_state(owner, "RUNNING", SOON_S)
    quotas.wait_says(large, f"was evicted for job {owner} of team engineers")
    quotas.end(owner)
    quotas.wait_state(large, "RUNNING", 2 * SOON_S)
