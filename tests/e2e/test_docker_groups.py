"""Groups whose nodes no slurm.conf names: they register themselves, and are forgotten."""

from tests.e2e.capacity import CLUSTER, EXTRA, PARTITION, Capacity, wish


def test_a_group_without_names_of_its_own_has_nodes_that_register_themselves(capacity: Capacity) -> None:
    capacity.create(wish(2, minimum=2, name=EXTRA))
    capacity.wait_group(current=2, name=EXTRA)
    capacity.wait("both take jobs", lambda: capacity.idle_nodes() == {"extra-1", "extra-2"})
    job = capacity.submit(capacity.script("hello.sh", "srun hostname\n"), "-N2", "-n2", "-p", PARTITION)
    assert capacity.wait_end(job).state == "COMPLETED"


def test_a_group_is_deleted_with_its_nodes_and_the_other_one_stays(capacity: Capacity) -> None:
    capacity.create(wish(2), wish(1, name=EXTRA))
    capacity.wait_group(current=2)
    capacity.wait_group(current=1, name=EXTRA)
    capacity.aws("update-cluster", "--cluster-name", CLUSTER, "--instance-groups-to-delete", EXTRA)
    capacity.wait("the group is gone", lambda: not capacity.group(EXTRA), 60.0)
    capacity.wait("its node is forgotten", lambda: "extra-1" not in capacity.all_nodes())
    assert capacity.wait_group(current=2)["TargetCount"] == 2
    assert capacity.partition_state() == "up"
