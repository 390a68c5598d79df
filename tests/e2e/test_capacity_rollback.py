"""A minimum that is not there in time: back to the last good size, or to nothing."""

from collections.abc import Iterator

import pytest

from steward_bed.bed import Bed
from tests.e2e.capacity import PARTITION, Capacity, wish
from tests.e2e.groups_bed import Access, configure, rewrite
from tests.e2e.story import task_script

LIMIT_S = 30.0
"""Longer than a machine takes, and Slurm until it starts jobs on its node: up to 21 s while it pings a lost one."""
CRASHES = pytest.mark.parametrize("crash", [False, True], ids=["undisturbed", "head-killed"])


@pytest.fixture(scope="module")
def short_clock(groups_bed: tuple[Bed, Access]) -> Iterator[None]:
    """A minimum must be there within seconds."""
    bed, _ = groups_bed
    before = configure(bed, {"capacity": {"minimum_timeout_h": LIMIT_S / 3600}})
    yield
    rewrite(bed, before)


@pytest.fixture
def hasty(short_clock: None, capacity: Capacity) -> Capacity:
    return capacity


@CRASHES
def test_a_new_group_goes_back_to_nothing(hasty: Capacity, crash: bool) -> None:
    hasty.limit(2)
    hasty.create(wish(4, minimum=3))
    hasty.wait_current(2)
    job = hasty.submit(task_script(hasty), "-N1", "-p", PARTITION)
    hasty.wait("its user reads what it waits for", lambda: "minimum 3" in hasty.explain(str(job)))
    if crash:
        hasty.crash_head()
    hasty.wait("it is rolled back", lambda: hasty.events("group.rollback", since=hasty.began), LIMIT_S + 15.0)
    hasty.wait_members(0)
    found = hasty.wait_group("InService", 0)
    assert (found["TargetCount"], found["MinCount"]) == (0, 0)
    hasty.wait("no machine is left", lambda: not hasty.bed.status().nodes)
    assert "rolled back to 0" in hasty.explain("workers")
    hasty.wait("its user reads why it waits on", lambda: "rolled back to 0" in hasty.explain(str(job)))
    assert f"asks for 1 node, and partition {PARTITION} has 0 in service" in hasty.explain(str(job))


@CRASHES
def test_an_existing_group_goes_back_to_its_former_size_and_its_jobs_are_unharmed(hasty: Capacity, crash: bool) -> None:
    hasty.limit(3)
    hasty.create(wish(2, minimum=1))
    hasty.wait_group("InService", 2)
    before = hasty.instances()
    job = hasty.submit(task_script(hasty), "-N2", "-p", PARTITION)
    hasty.wait_state(job, "RUNNING", 40.0)
    hasty.update(wish(4, minimum=4))
    hasty.wait_current(3)
    if crash:
        hasty.crash_head()
    hasty.wait("it is rolled back", lambda: hasty.events("group.rollback", since=hasty.began), LIMIT_S + 15.0)
    hasty.wait_members(2)
    found = hasty.wait_group("InService", 2)
    assert (found["TargetCount"], found["MinCount"]) == (2, 1)
    assert hasty.instances() == before
    hasty.wait("the partition is open again", lambda: hasty.partition_state() == "up")
    assert (hasty.job(job).state, hasty.job(job).restarts) == ("RUNNING", 0)
    (hasty.dir / "go").touch()
    assert hasty.wait_end(job).state == "COMPLETED"
