"""Rolling software updates: batch by batch, never under a job that still runs."""

import pytest

from steward.adapters.slurm.words import expand
from tests.e2e.capacity import CLUSTER, GROUP, PARTITION, Capacity, wish
from tests.e2e.story import task_script

BY_TWO = {"RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 2}}}


@pytest.mark.parametrize("crash", [False, True], ids=["undisturbed", "head-killed"])
def test_four_nodes_are_renewed_by_two_and_a_running_job_is_waited_for(capacity: Capacity, crash: bool) -> None:
    capacity.create(wish(4))
    capacity.wait_group("InService", 4)
    before = capacity.instances()
    job = capacity.submit(task_script(capacity), "-N1", "-p", PARTITION)
    capacity.wait_state(job, "RUNNING", 40.0)
    busy = capacity.job(job).batch_host
    capacity.api.update_cluster_software(
        ClusterName=CLUSTER, InstanceGroups=[{"InstanceGroupName": GROUP}], DeploymentConfig=BY_TWO
    )
    capacity.wait("the first batch is renewed", lambda: len(renewed(capacity, before)) >= 2, 60.0)
    if crash:
        capacity.crash_head()
    capacity.wait("only the busy node is left", lambda: renewed(capacity, before) == set(before) - {busy}, 60.0)
    assert (capacity.job(job).state, capacity.job(job).restarts) == ("RUNNING", 0)
    assert capacity.group()["SoftwareUpdateStatus"] == "InProgress"
    (capacity.dir / "go").touch()
    assert capacity.wait_end(job).state == "COMPLETED"
    capacity.wait("the update is done", lambda: capacity.group()["SoftwareUpdateStatus"] == "Succeeded", 60.0)
    capacity.wait_group("InService", 4)
    assert renewed(capacity, before) == set(before)
    batches = capacity.group_events("rollout.batch", since=capacity.began)
    assert [len(expand(text.rpartition(": ")[2].replace(", ", ","))) for text in batches] == [2, 2]


def renewed(capacity: Capacity, before: dict[str, str]) -> set[str]:
    """Nodes that serve on another instance than before."""
    running = {
        each["PrivateDnsHostname"] for each in capacity.members() if each["InstanceStatus"]["Status"] == "Running"
    }
    now = capacity.instances()
    return {node for node in running & before.keys() if now.get(node) != before[node]}
