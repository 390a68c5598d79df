"""A partition of a group made through the API: closed until the minimum is there, jobs wait in it, and it stays so."""

from steward_bed.faults import FaultKind
from tests.e2e.capacity import PARTITION, Capacity, wish

_AFTER_RESTART_S = 90.0
"""A slurmctld that has just started lets up to half a minute go by before it looks at jobs that wait."""


def a_closed_gate(capacity: Capacity) -> None:
    """One machine serves of the two that are the least."""
    capacity.limit(1)
    capacity.create(wish(3, 2))
    capacity.wait_group("Creating", 1)
    capacity.wait("the partition is closed", lambda: capacity.partition_state() == "down")


def a_job(capacity: Capacity) -> int:
    return capacity.submit(capacity.script("job", "sleep 1\n"), f"--partition={PARTITION}")


def is_waiting(capacity: Capacity, job: int) -> bool:
    seen = capacity.job(job)
    return (seen.state, seen.fields.get("Reason")) == ("PENDING", "PartitionDown")


def open_gate(capacity: Capacity) -> None:
    capacity.hurt(FaultKind.ALLOW_LAUNCH)
    capacity.wait("the partition is open", lambda: capacity.partition_state() == "up", 60.0)


def restart_slurmctld(capacity: Capacity) -> None:
    capacity.hurt(FaultKind.RESTART_SLURMCTLD)
    capacity.wait("slurmctld is back", capacity.partition_state)


def told(capacity: Capacity, kind: str) -> list[str]:
    return [event["text"] for event in capacity.events(kind, since=capacity.began)]


def test_jobs_wait_before_a_closed_partition_and_run_when_the_minimum_is_there(capacity: Capacity) -> None:
    a_closed_gate(capacity)
    job = a_job(capacity)
    capacity.wait("the job waits", lambda: is_waiting(capacity, job))

    open_gate(capacity)
    assert capacity.wait_end(job).state == "COMPLETED"
    assert len(told(capacity, "gate.opened")) == 1


def test_a_restart_of_slurmctld_neither_opens_nor_closes(capacity: Capacity) -> None:
    a_closed_gate(capacity)
    job = a_job(capacity)
    restart_slurmctld(capacity)
    assert capacity.partition_state() == "down"
    capacity.wait("the job waits", lambda: is_waiting(capacity, job))

    open_gate(capacity)
    restart_slurmctld(capacity)
    assert capacity.partition_state() == "up"
    assert capacity.wait_end(job, _AFTER_RESTART_S).state == "COMPLETED"
    assert not told(capacity, "gate.yielded")


def test_an_admin_may_open_it_before_its_time(capacity: Capacity) -> None:
    a_closed_gate(capacity)
    capacity.bed.run(["scontrol", "update", f"partitionname={PARTITION}", "state=up"])
    capacity.wait("Steward tells that it yields", lambda: told(capacity, "gate.yielded"), 30.0)
    job = a_job(capacity)

    assert capacity.wait_end(job).state == "COMPLETED"
    assert capacity.partition_state() == "up"
    assert len(told(capacity, "gate.yielded")) == 1
