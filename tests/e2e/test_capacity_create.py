"""A cluster is made from a file by the `aws` command, and leaves nothing when it is deleted."""

import time
from functools import partial
from itertools import pairwise

import pytest

from tests.e2e.capacity import CLUSTER, GROUP, PARTITION, Capacity, wish
from tests.e2e.story import task_script


@pytest.mark.parametrize("crash", [False, True], ids=["undisturbed", "head-killed"])
def test_a_controller_and_four_workers_come_one_by_one_from_a_file(capacity: Capacity, crash: bool) -> None:
    capacity.limit(1)
    file = capacity.cluster_file(count=4)
    assert capacity.aws("create-cluster", "--cli-input-json", f"file://{file}")["ClusterArn"].startswith("arn:aws:")
    seen = []
    for count in range(1, 5):
        capacity.limit(count)
        if crash and count == 3:
            capacity.crash_head()
        capacity.wait_current(count)
        capacity.wait_idle(count)
        seen.append(frozenset(capacity.instances()))
    assert all(before < after for before, after in pairwise(seen))
    told = capacity.aws("describe-cluster", "--cluster-name", CLUSTER)
    assert told["ClusterStatus"] == "InService"
    counts = {each["InstanceGroupName"]: (each["CurrentCount"], each["TargetCount"]) for each in told["InstanceGroups"]}
    assert counts == {"controller": (1, 1), GROUP: (4, 4)}
    listed = capacity.aws("list-cluster-nodes", "--cluster-name", CLUSTER)["ClusterNodeSummaries"]
    assert [each["InstanceStatus"]["Status"] for each in listed] == ["Running"] * 5
    assert len({each["InstanceId"] for each in listed}) == 5
    one = listed[-1]["InstanceId"]
    detail = capacity.aws("describe-cluster-node", "--cluster-name", CLUSTER, "--node-id", one)["NodeDetails"]
    assert detail["InstanceId"] == one


def test_jobs_run_on_all_four_nodes(capacity: Capacity) -> None:
    capacity.create(wish(4))
    capacity.wait_group(current=4)
    job = capacity.submit(capacity.script("hello.sh", "srun hostname\n"), "-N4", "-n4", "-p", PARTITION)
    assert capacity.wait_end(job).state == "COMPLETED"


def test_a_deleted_cluster_leaves_nothing(capacity: Capacity) -> None:
    capacity.create(wish(3))
    capacity.wait_group(current=3)
    deleted_at = time.time()
    capacity.aws("delete-cluster", "--cluster-name", CLUSTER)
    capacity.wait("no cluster is listed", lambda: not capacity.api.list_clusters()["ClusterSummaries"], 60.0)
    capacity.wait("no machine is left", lambda: not capacity.bed.status().nodes)
    capacity.wait("its partition is gone", lambda: not capacity.partition_state())
    assert "the node left its group" in capacity.explain("n1").lower()
    assert not [case for case in capacity.cases(since=capacity.began) if case["open"]]
    assert not capacity.events("incident", since=deleted_at)


def has_started(capacity: Capacity, times: int) -> bool:
    return len(capacity.lines("started")) == times


def test_a_cluster_is_made_again_after_it_was_deleted(capacity: Capacity) -> None:
    for number in (1, 2):
        capacity.create(wish(2))
        capacity.wait_group(current=2)
        job = capacity.submit(task_script(capacity), "-N2", "-p", PARTITION)
        capacity.wait("its script runs", partial(has_started, capacity, number), 40.0)
        capacity.bed.run(["scancel", str(job)])
        capacity.api.delete_cluster(ClusterName=CLUSTER)
        capacity.wait("no cluster is listed", lambda: not capacity.api.list_clusters()["ClusterSummaries"], 60.0)
