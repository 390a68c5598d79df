"""Fewer nodes: by count the idle ones go, by name those that are named."""

import time

import pytest
from botocore.exceptions import ClientError

from tests.e2e.capacity import CLUSTER, GROUP, PARTITION, Capacity, wish
from tests.e2e.story import task_script


@pytest.mark.parametrize("crash", [False, True], ids=["undisturbed", "head-killed"])
def test_from_four_to_two_the_idle_nodes_go_and_a_job_on_the_others_ends_well(capacity: Capacity, crash: bool) -> None:
    capacity.create(wish(4))
    capacity.wait_group("InService", 4)
    job = capacity.submit(task_script(capacity), "-N2", "-p", PARTITION)
    capacity.wait_state(job, "RUNNING", 40.0)
    busy = {each["PrivateDnsHostname"] for each in capacity.members()} - capacity.idle_nodes()
    before, updated_at = capacity.instances(), time.time()
    capacity.aws(
        "update-cluster", "--cluster-name", CLUSTER, "--instance-groups", f"file://{capacity.groups_file(wish(2))}"
    )
    if crash:
        capacity.crash_head()
    capacity.wait_members(2)
    capacity.wait("two machines are left", lambda: len(capacity.bed.status().nodes) == 2)
    assert capacity.instances() == {node: before[node] for node in busy}
    assert (capacity.job(job).state, capacity.job(job).restarts) == ("RUNNING", 0)
    (capacity.dir / "go").touch()
    assert capacity.wait_end(job).state == "COMPLETED"
    assert not capacity.events("incident", since=updated_at)


def test_99_ids_are_taken_with_a_verdict_for_each_and_100_are_refused(capacity: Capacity) -> None:
    capacity.create(wish(3))
    capacity.wait_group("InService", 3)
    instances = capacity.instances()
    controller = capacity.instances("controller")["controller-1"]
    victim, stays = sorted(instances)[0], sorted(instances)[1:]
    job = capacity.submit(task_script(capacity), "-N1", f"-w{victim}", "-p", PARTITION, "--requeue")
    capacity.wait_state(job, "RUNNING", 40.0)
    unknown = [f"i-{number:017x}" for number in range(97)]
    with pytest.raises(ClientError, match="99") as refused:
        capacity.api.batch_delete_cluster_nodes(ClusterName=CLUSTER, NodeIds=[*unknown, *instances.values()])
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    ids = [*unknown, controller, instances[victim]]
    assert len(ids) == 99
    answer = capacity.api.batch_delete_cluster_nodes(ClusterName=CLUSTER, NodeIds=ids)
    assert answer["Successful"] == [instances[victim]]
    codes = {each["NodeId"]: each["Code"] for each in answer["Failed"]}
    assert codes == dict.fromkeys(unknown, "NodeIdNotFound") | {controller: "NodeIdInUse"}
    capacity.wait_members(2)
    capacity.wait_state(job, "PENDING")
    assert "Slurm put it back into the queue, as it does when a node of it is taken out" in capacity.explain(str(job))
    assert capacity.instances() == {node: instances[node] for node in stays}
    assert capacity.wait_group("InService", 2)["TargetCount"] == 2
    with pytest.raises(ClientError) as nothing:
        capacity.api.batch_delete_cluster_nodes(ClusterName=CLUSTER, NodeIds=unknown)
    assert nothing.value.response["Error"]["Code"] == "ValidationException"
    assert len(capacity.instances(GROUP)) == 2
