"""A partition stays closed until the minimum of its group is there; jobs wait, and know why."""

from collections.abc import Callable

import pytest

from tests.e2e.capacity import GROUP, PARTITION, Capacity, wish
from tests.e2e.story import task_script

CRASHES: dict[str, Callable[[Capacity], None]] = {
    "undisturbed": lambda _: None,
    "head-killed": Capacity.crash_head,
    "slurmctld-restarted": Capacity.restart_slurmctld,
}


@pytest.mark.parametrize("crash", CRASHES.values(), ids=CRASHES)
def test_jobs_wait_for_the_third_of_four_nodes_and_are_told_why(
    capacity: Capacity, crash: Callable[[Capacity], None]
) -> None:
    capacity.limit(2)
    capacity.create(wish(4, minimum=3))
    capacity.wait_current(2)
    capacity.wait("the partition is closed", lambda: capacity.partition_state() == "down")
    job = capacity.submit(task_script(capacity), "-N1", "-p", PARTITION)
    crash(capacity)
    capacity.wait("the job waits for its partition", lambda: capacity.job(job).fields.get("Reason") == "PartitionDown")
    capacity.wait("explain tells why", lambda: "minimum 3" in capacity.explain(str(job)))
    assert capacity.group()["Status"] == "Creating"
    assert (capacity.partition_state(), capacity.job(job).state) == ("down", "PENDING")
    capacity.limit(3)
    capacity.wait_group("InService", 3)
    capacity.wait("the partition is open", lambda: capacity.partition_state() == "up")
    capacity.wait_state(job, "RUNNING", 40.0)
    assert "closed" not in capacity.explain(GROUP)
    (capacity.dir / "go").touch()
    assert capacity.wait_end(job).state == "COMPLETED"


def test_a_larger_minimum_closes_the_partition_and_leaves_its_jobs_alone(capacity: Capacity) -> None:
    capacity.limit(2)
    capacity.create(wish(2, minimum=2))
    capacity.wait_group("InService", 2)
    job = capacity.submit(task_script(capacity), "-N2", "-p", PARTITION)
    capacity.wait_state(job, "RUNNING", 40.0)
    capacity.update(wish(4, minimum=4))
    capacity.wait_group("Updating", 2)
    capacity.wait("the partition is closed", lambda: capacity.partition_state() == "down")
    assert capacity.job(job).state == "RUNNING"
    capacity.limit(4)
    capacity.wait_group("InService", 4)
    capacity.wait("the partition is open", lambda: capacity.partition_state() == "up")
    (capacity.dir / "go").touch()
    assert capacity.wait_end(job).state == "COMPLETED"
    assert capacity.job(job).restarts == 0


def test_what_an_admin_sets_on_a_partition_stands_and_is_reported(capacity: Capacity) -> None:
    capacity.create(wish(2))
    capacity.wait_group("InService", 2)
    capacity.wait("the partition is open", lambda: capacity.partition_state() == "up")
    capacity.wait("Steward has seen it open", lambda: "Slurm shows it UP" in capacity.explain(GROUP))
    capacity.bed.run(["scontrol", "update", f"partitionname={PARTITION}", "state=drain"])
    capacity.wait("it is reported", lambda: capacity.events("gate.yielded", since=capacity.began))
    capacity.update(wish(3))
    capacity.wait_current(3)
    assert capacity.partition_state() == "drain"
    assert "it was set by hand" in capacity.explain(GROUP)
