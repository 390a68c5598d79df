"""The provider has no machines for a while: it is asked again, ever later, and everybody can see when."""

import re

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.capacity import CLUSTER, GROUP, Capacity, wish


@pytest.mark.parametrize("crash", [False, True], ids=["undisturbed", "head-killed"])
def test_a_refused_group_is_filled_when_there_is_capacity_again(capacity: Capacity, crash: bool) -> None:
    capacity.create(wish(1))
    capacity.wait_group("InService", 1)
    capacity.hurt(FaultKind.REFUSE_LAUNCH)
    capacity.update(wish(3))
    capacity.wait(
        "it was refused twice", lambda: re.search(r"failed ([2-9]|\d\d+) times \(capacity\)", capacity.explain(GROUP))
    )
    capacity.wait("the next try is told", lambda: "next try" in capacity.explain(GROUP))
    waiting = [each for each in capacity.members() if not each["InstanceId"]]
    assert len(waiting) == 2
    assert all("capacity" in each["InstanceStatus"]["Message"].lower() for each in waiting)
    if crash:
        capacity.crash_head()
        capacity.wait("it remembers", lambda: "(capacity)" in capacity.explain(GROUP))
    assert capacity.wait_group("InService", 1)["TargetCount"] == 3
    events = capacity.aws("list-cluster-events", "--cluster-name", CLUSTER, "--instance-group-name", GROUP)["Events"]
    assert any("capacity" in each["Description"] for each in events)
    capacity.hurt(FaultKind.ALLOW_LAUNCH)
    capacity.wait_group("InService", 3)
    assert not [line for line in capacity.explain(GROUP).splitlines() if "failed" in line]
